package serve

import (
	"net"
	"strings"
	"testing"
)

func TestHealthAddresses(t *testing.T) {
	for given, want := range map[string]string{
		"8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080", "0.0.0.0:8080": "0.0.0.0:8080", "[::]:80": "[::]:80", "localhost:0": "localhost:0",
		"x": "", "1:2:3": "", ":99999": "", "-1": "",
	} {
		got, err := Addr("--health", given)
		if (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
}

func TestHealthChecksForOthersAreNoted(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1": false, "::1": false, "0.0.0.0": true, "::": true, "10.1.2.3": true} {
		if note := Note("health", &net.TCPAddr{IP: net.ParseIP(addr), Port: 80}, "/livez"); strings.Contains(note, "anyone with access") != want || !strings.Contains(note, "/livez") {
			t.Errorf("%s: %s", addr, note)
		}
	}
}
