// Package loopback keeps pages in a browser from asking servers that listen on this machine alone.
package loopback

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Allows reports whether req may be answered. On a connection to a loopback address, a Host that is
// a name other than localhost may be one that a page in a browser has pointed at this machine. Any
// address is fine: nobody can point one at another machine, and what is deployed beside a worker
// that listens on all interfaces may pass a probe for the pod's address on over loopback.
func Allows(req *http.Request) bool {
	local, _ := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return answersTo(local, req.Host)
}

// answersTo reports whether a request that came to a local address, nil where that is not known,
// may ask for a host.
func answersTo(local net.Addr, host string) bool {
	if local == nil {
		return true
	}
	at, err := netip.ParseAddrPort(local.String())
	// without a Host it is no browser
	if err != nil || !at.Addr().Unmap().IsLoopback() || host == "" {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	_, err = netip.ParseAddr(host)
	return err == nil
}
