package hostcheck

import (
	"net"
	"testing"
)

func TestAllowsWhatNobodyElseCanPointHere(t *testing.T) {
	t.Parallel()
	loopback, other := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}
	for _, c := range []struct {
		name  string
		local net.Addr
		host  string
		want  bool
	}{
		{"localhost", loopback, "localhost:4568", true},
		{"localhost with its dot", loopback, "LOCALHOST.", true},
		{"an address", loopback, "127.0.0.1:4568", true},
		{"an address of IPv6", loopback, "[::1]:4568", true},
		{"another address", loopback, "10.1.2.3", true},
		{"a name that was pointed here", loopback, "evil.example:4568", false},
		{"a name that was allowed", loopback, "weir.example:443", true},
		{"one that ends like it", loopback, "evil-weir.example", false},
		{"no browser", loopback, "", true},
		{"not over loopback", other, "evil.example", true},
		{"nobody knows over what", nil, "evil.example", true},
	} {
		if got := allows(c.local, c.host, "weir.example"); got != c.want {
			t.Errorf("%s: allows(%v, %q) = %t", c.name, c.local, c.host, got)
		}
	}
}
