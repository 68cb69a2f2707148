//go:build unix

package weir_test

import (
	"testing"

	"github.com/weir-go/weir"
)

// What is allocated for each record by the whole consumer, from a server in another process: next to nothing, since everything that is
// allocated is for a page.
func TestAllocationsPerRecord(t *testing.T) {
	c := readCase{"", false, 1000, 1024, 48, 6, 144, 0}
	p := serveBench(t, c.config())
	for name, opts := range map[string]weir.Options{"default": {}, "reused buffers": reuse} {
		s := readByWeir(t, benchClient(p.Address), c, opts)
		t.Logf("%s: %.3f allocations a record", name, s.allocs())
		if s.allocs() > 0.1 {
			t.Errorf("%s: %.3f allocations for each of %d records, want at most 0.1", name, s.allocs(), s.records)
		}
	}
}
