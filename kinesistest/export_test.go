package kinesistest

import "net/http"

// Whole wraps a transport like the clients of a server.
func Whole(t *http.Transport) http.RoundTripper { return wholeBody{t} }
