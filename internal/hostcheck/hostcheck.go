// Package hostcheck keeps pages in browsers from reaching what listens on this machine alone: it
// says which hosts may be asked for.
package hostcheck

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Allows reports whether a request may be answered: over loopback only one that asks for localhost,
// for an address, or for one of the names.
func Allows(req *http.Request, names ...string) bool {
	local, _ := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return allows(local, req.Host, names...)
}

// allows reports whether a request with a Host header may be answered. local is the local address
// of its connection, nil if unknown. Over loopback only localhost, IP addresses and the given names
// are allowed, because a web page may have pointed its domain at this machine. IP addresses are
// safe, because a web page cannot point one at another machine. They are needed, because a
// container next to a program that listens on all interfaces may forward a probe for the pod's
// address over loopback.
func allows(local net.Addr, host string, names ...string) bool {
	if local == nil {
		return true
	}
	at, err := netip.ParseAddrPort(local.String())
	// without a Host it is no browser
	if err != nil || !at.Addr().Unmap().IsLoopback() || host == "" {
		return true
	}
	return Named(host, names...)
}

// Named reports whether a request asks for localhost, for an address, or for one of the names,
// wherever it came to. None of them is a name that a page could have pointed here.
func Named(host string, names ...string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	name := strings.TrimSuffix(host, ".")
	if strings.EqualFold(name, "localhost") || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}
