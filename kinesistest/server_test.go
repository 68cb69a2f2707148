package kinesistest

import (
	"net"
	"testing"

	"github.com/weir-go/weir/kinesistest/internal/memnet"
)

func TestNamesOfAServer(t *testing.T) {
	one := &Server{hosts: allowedHosts(Config{Addr: "10.1.2.3:80", Hosts: []string{"Kinesis", "a.example."}})}
	all := &Server{hosts: allowedHosts(Config{Addr: "0.0.0.0:80"}), anywhere: everywhere(&net.TCPAddr{IP: net.IPv6zero})}
	for host, want := range map[string]struct{ one, all bool }{
		"localhost:80": {true, true}, "127.0.0.1": {true, true}, "[::1]:80": {true, true}, "[::1]": {true, true}, "x.localhost": {true, true},
		"10.1.2.3:80": {true, true}, "kinesis:80": {true, false}, "KINESIS.": {true, false}, "A.example:1": {true, false},
		// An IP address is safe, because no website can use one as its host name.
		"192.168.1.2:80": {false, true}, "[fe80::1]:80": {false, true},
		"evil.example": {}, "127.0.0.1.evil.example:80": {}, "localhost.evil.example": {}, "10.1.2.3.evil.example": {}, "": {}, ":80": {},
		"0x7f000001": {}, "2130706433": {}, "127.1": {}, "127.0.0.1@evil.example": {}, memoryHost: {},
	} {
		if a, b := one.knows(host), all.knows(host); a != want.one || b != want.all {
			t.Errorf("%q: %v and %v, want %v and %v", host, a, b, want.one, want.all)
		}
	}
}

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
