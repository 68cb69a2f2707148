//go:build unix

package weir_test

import (
	"testing"

	"github.com/weir-go/weir"
)

// What is allocated for each record by the whole consumer, from a server in another process: next to nothing, since everything that is
// allocated is for a page.
func TestAllocationsPerRecord(t *testing.T) {
	c := readCase{"", false, 1000, 1024, 24, 6, 96, 0}
	p := serveBench(t, c.config())
	for _, m := range []struct {
		name string
		opts weir.Options
		most float64
	}{{"reused buffers", reuse, 0.1}, {"default", weir.Options{}, 0.13}} { // the default makes the memory of each part anew
		s := readByWeir(t, benchClient(p.Address), c, m.opts)
		t.Logf("%s: %.3f allocations a record", m.name, s.allocs())
		if s.allocs() > m.most {
			t.Errorf("%s: %.3f allocations for each of %d records, want at most %.2f", m.name, s.allocs(), s.records, m.most)
		}
	}
}
