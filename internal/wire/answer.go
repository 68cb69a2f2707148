package wire

import (
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/weir-go/weir/internal/http1"
	"github.com/weir-go/weir/internal/wire/codec"
)

// answer is an HTTP answer whose head was read and whose body was not read yet. It comes from
// net/http or from package http1.
type answer struct {
	status int
	length int64 // of the body; -1 if unknown
	body   io.ReadCloser
	lean   *http1.Response // exactly one of lean and full is set
	full   *http.Response
	url    *url.URL // the URL that lean came from
	target []string // target of the request; nil for GetRecords
}

func fullAnswer(resp *http.Response) answer {
	return answer{status: resp.StatusCode, length: resp.ContentLength, body: resp.Body, full: resp}
}

func leanAnswer(resp *http1.Response, from *url.URL) answer {
	return answer{status: resp.Status, length: resp.Length, body: resp, lean: resp, url: from}
}

// field returns the value of a header field. Call it before the body is closed.
func (a *answer) field(name string) string {
	if a.lean == nil {
		return a.full.Header.Get(name)
	}
	switch b := a.lean.Field(name); string(b) {
	case codec.CBORType: // no allocation in the usual case
		return codec.CBORType
	case codec.JSONType:
		return codec.JSONType
	default:
		return string(b)
	}
}

// encoding returns the content encoding of the body. It returns "" for a body without an encoding.
// Callers reject any other value.
func (a *answer) encoding() string {
	if e := a.field("Content-Encoding"); e != "identity" {
		return e
	}
	return ""
}

func (a *answer) requestID() string {
	if id := a.field("X-Amzn-Requestid"); id != "" {
		return id
	}
	return a.field("X-Amz-Requestid")
}

// response converts the answer to an http.Response, for errors. Call it before the body is closed.
func (a *answer) response() *http.Response {
	if a.lean == nil {
		return a.full
	}
	of := a.target
	if of == nil {
		of = targetValue
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: a.lean.Header(), ContentLength: a.length, Body: http.NoBody,
		Request: &http.Request{
			Method: http.MethodPost, URL: a.url, Host: a.url.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"X-Amz-Target": of},
		},
	}
}
