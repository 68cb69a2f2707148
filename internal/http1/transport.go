package http1

import (
	"errors"
	"net/http"
)

// FromTransport returns options that do what a transport's settings say. An error says which of
// them this client does not do. Proxies are left out of account: whoever uses the options has to
// ask the transport's Proxy, if there is one.
func FromTransport(t *http.Transport) (Options, error) {
	switch {
	//nolint:staticcheck // deprecated, but old programs set it
	case t.DialTLS != nil || t.DialTLSContext != nil:
		return Options{}, errors.New("it dials TLS in its own way")
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
