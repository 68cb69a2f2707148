package http1

import (
	"errors"
	"net/http"
)

// FromTransport returns options for a transport's settings. It returns an error that names a
// setting that this client does not support. It ignores proxies: the caller must call the
// transport's Proxy function, if there is one.
func FromTransport(t *http.Transport) (Options, error) {
	switch {
	//nolint:staticcheck // deprecated, but old programs set it
	case t.DialTLS != nil || t.DialTLSContext != nil:
		return Options{}, errors.New("it has a DialTLS function")
	//nolint:staticcheck // deprecated, but old programs set it
	case t.Dial != nil && t.DialContext == nil:
		return Options{}, errors.New("it dials without a context")
	case t.DisableKeepAlives:
		return Options{}, errors.New("it keeps no connections")
	case t.Protocols != nil && !t.Protocols.HTTP1():
		return Options{}, errors.New("it does not speak HTTP/1.1")
	}
	return Options{
		DialContext:         t.DialContext,
		TLS:                 t.TLSClientConfig,
		TLSHandshakeTimeout: t.TLSHandshakeTimeout,
		HeaderTimeout:       t.ResponseHeaderTimeout,
		IdleTimeout:         t.IdleConnTimeout,
		MaxConns:            t.MaxConnsPerHost,
		MaxHead:             int(min(max(t.MaxResponseHeaderBytes, 0), 1<<20)),
	}, nil
}
