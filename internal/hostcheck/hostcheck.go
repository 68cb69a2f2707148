// Package hostcheck determines which hosts a request may name. It keeps web pages in browsers from
// reaching servers that only listen on this machine.
package hostcheck

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Allows reports whether a request may be answered. Over loopback, the request must name localhost,
// an IP address, or one of the names as its host.
func Allows(req *http.Request, names ...string) bool {
	local, _ := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return allows(local, req.Host, names...)
}

// allows reports whether a request with a Host header may be answered. local is the local address
// of its connection, or nil if unknown. Over loopback, only localhost, IP addresses and the given
// names are allowed, because a web page may have pointed its domain at this machine.
//
// IP addresses are safe, because a web page cannot make an IP address lead to another machine. They
// are also needed: a container next to a program that listens on all interfaces may forward a probe
// for the pod's address over loopback.
func allows(local net.Addr, host string, names ...string) bool {
	if local == nil {
		return true
	}
	at, err := netip.ParseAddrPort(local.String())
	// A request without a Host header does not come from a browser.
	if err != nil || !at.Addr().Unmap().IsLoopback() || host == "" {
		return true
	}
	return Named(host, names...)
}

// Named reports whether a Host header is localhost, an IP address, or one of the names. A web page
// cannot point any of these at this machine. Named does not depend on the connection.
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
