package kinesistest

import "net/http"

// Whole is what the clients of a server make of a transport.
func Whole(t *http.Transport) http.RoundTripper { return wholeBody{t} }
