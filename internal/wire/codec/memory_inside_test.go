package codec

import (
	"testing"
)

// If copies of a page are released, the memory is returned once. It is not returned while another
// page has it.
func TestMemoryIsGivenBackOnce(t *testing.T) {
	rd := &Bodies{Reuse: true, Most: MostBody}
	var first Page
	_, _ = rd.Room(5000, 5000, &first)
	copied := first
	m := first.memory
	lent := m.lent.Load()
	first.Release()
	copied.Release()
	if m.lent.Load() != lent+1 {
		t.Fatalf("given back %d times", m.lent.Load()-lent)
	}
	copied = Page{memory: m, lent: lent, Records: make([]Record, 7)}
	m.lent.Add(1) // lent to another page
	if copied.Release(); m.lent.Load() != lent+2 || cap(m.records) == 7 {
		t.Error("taken from another page")
	}
}

// The memory for a size is at least that size, with little unused space.
func TestMemoryClasses(t *testing.T) {
	last := 0
	for n := 1; n <= MostBody; n += 1 + n/7 {
		class, size := memoryClass(n)
		again, same := memoryClass(size)
		if size < n || (n > LeastBody && size > n+n/4) || class < 0 || class >= len(memories) || class < last || again != class || same != size {
			t.Fatalf("%d bytes: class %d of %d bytes, which is in class %d of %d", n, class, size, again, same)
		}
		last = class
	}
	if class, size := memoryClass(MostBody); size != MostBody || class != len(memories)-1 {
		t.Errorf("the largest is class %d of %d bytes", class, size)
	}
}
