//go:build unix

package bench

import (
	"testing"

	"github.com/weir-go/weir"
)

// The test runs the whole consumer over TLS, with the server in another process. It must allocate
// almost nothing per record, because all allocations are per answer of GetRecords. More than half
// of them are in crypto/tls, for each read of the connection. A slower answer needs more reads, so
// a busy machine causes more allocations. The test therefore uses the best of several rounds.
func TestAllocationsPerRecord(t *testing.T) {
	if raceDetector {
		t.Skip("allocations under the race detector prove nothing: sync.Pool drops some items at random")
	}
	const rounds = 3
	c := readCase{"", true, 1000, 1024, 64, 24, 400, 0, 4} // until connections are open
	config := c.config()
	config.Keys = 10_000 // so a batch of one key has one record
	p := serveBench(t, config)
	for _, m := range []struct {
		name string
		opts weir.Options
		most float64
	}{
		{"reused buffers", reuse, 0.1},
		{"default", weir.Options{}, 0.1}, // each part needs new memory
		{"keys in parallel", weir.Options{Concurrency: weir.Concurrency{Keys: 64}}, 0.2},
	} {
		best := 1.0
		for round := 0; round < rounds && best > m.most; round++ {
			if err := p.Reset(); err != nil {
				t.Fatal(err)
			}
			s := readByWeir(t, benchClient(p.Address), c, m.opts)
			t.Logf("%s: %.3f allocations a record; %d connections", m.name, s.allocs(), serverStats(t, p).Accepted)
			best = min(best, s.allocs())
		}
		if best > m.most {
			t.Errorf("%s: %.3f allocations a record, want at most %.2f", m.name, best, m.most)
		}
	}
}
