package kinesistest

import "net/http"

// Whole wraps a transport in the same way as the transports of a server's clients.
func Whole(t *http.Transport) http.RoundTripper { return wholeBody{t, new(receives)} }
