// Package kinesistest is an embedded Amazon Kinesis Data Streams: a server for
// tests and for development, as net/http/httptest is for HTTP.
package kinesistest
