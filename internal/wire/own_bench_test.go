package wire

import (
	"crypto/x509"
	"testing"
)

// BenchmarkOwnCall measures calls on the path OwnCall, over this package's HTTP client and over
// net/http. Like BenchmarkRead, it compares them with the time in which net/http receives and drops
// the same bytes.
func BenchmarkOwnCall(b *testing.B) {
	compare(b, []benchCase{{"1KiBx10", 10, 1024, 250}, {"1KiBx1000", 1000, 1024, 12}}, []benchMode{
		{"limit", limitMode},
		{"own", callerMode(Options{Path: OwnCall, Reuse: true}, false)},
		{"own-net/http", overNetHTTP},
		{"parts", callerMode(Options{Path: OwnCall, Reuse: true}, true)},
	})
}

// overNetHTTP makes calls on the path OwnCall over net/http.
func overNetHTTP(tb testing.TB, url string, roots *x509.CertPool) func() func() (int, error) {
	tb.Helper()
	c, err := NewCaller(benchClient(url, roots), Options{Path: OwnCall, Reuse: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	c.lean = nil
	return reads(c, Options{Reuse: true}, false)
}
