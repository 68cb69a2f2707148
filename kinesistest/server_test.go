package kinesistest

import (
	"net"
	"testing"

	"github.com/weir-go/weir/kinesistest/internal/memnet"
)

func TestReachable(t *testing.T) {
	for want, addr := range map[string]net.Addr{
		"127.0.0.1:1": &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1},
		"[::1]:2":     &net.TCPAddr{IP: net.IPv6loopback, Port: 2},
		"127.0.0.1:3": &net.TCPAddr{IP: net.IPv4zero, Port: 3},
		"127.0.0.1:4": &net.TCPAddr{IP: net.IPv6zero, Port: 4},
		"10.1.2.3:5":  &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 5},
		"name":        memnet.Addr("name"),
	} {
		if got := reachable(addr); got != want {
			t.Errorf("%v is reachable at %s, want %s", addr, got, want)
		}
	}
}
