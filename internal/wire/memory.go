package wire

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"
)

// memory is what a page lives in when it is reused.
type memory struct {
	body    []byte
	records []Record
	poison  bool
	lent    atomic.Uint64 // grows when it is lent to a page and when it is given back
}

// memories are pools by the size of the body, four for each doubling, so that a small answer does not hold the memory of a
// large one and at most a fifth is spare.
var memories [56]sync.Pool

const (
	leastBody = 4 << 10
	mostBody  = 32 << 20
)

// memoryClass returns the pool for bodies of n bytes, at most mostBody, and how many bytes those in it have room for.
func memoryClass(n int) (class, size int) {
	n = max(n, leastBody)
	low := bits.Len(uint(n-1)) - 3 // all but the three highest bits
	quarters := (n-1)>>low + 1     // 5 to 8
	return (low-9)*4 + quarters - 5, quarters << low
}

// newMemory returns memory with room for a body of n bytes.
func newMemory(n int, poison bool) *memory {
	class, size := memoryClass(n)
	m, _ := memories[class].Get().(*memory)
	if m == nil {
		m = &memory{body: make([]byte, size)}
	}
	m.poison = poison
	m.lent.Add(1)
	return m
}

// release gives memory back that was lent as number lent, with the records of the page, whose slice may have grown. It does so
// once, also if the page was copied and both are released.
func (m *memory) release(lent uint64, records []Record) {
	if !m.lent.CompareAndSwap(lent, lent+1) {
		return
	}
	m.records = records[:0]
	if m.poison {
		// Never used again, so that whoever still looks at it sees nonsense and not the data of another page.
		for i := range m.body {
			m.body[i] = poisoned
		}
		return
	}
	class, _ := memoryClass(len(m.body))
	memories[class].Put(m)
}

// poisoned fills the bodies of released pages in the test mode: no text, and as a number large and negative.
const poisoned = 0xdb

// Release gives the page's memory back when pages are reused ([Options.Reuse]): from then on its records, and all copies of
// them, must not be touched. Otherwise the page only lets go of its records, whoever still has them. The page is ready for the
// next call either way. Releasing twice is harmless, and a page that is never released is left to the garbage collector.
func (p *Page) Release() {
	if p.memory != nil {
		p.memory.release(p.lent, p.Records)
	}
	*p = Page{}
}

// empty makes the page ready for the next call. The slice of its records is used again.
func (p *Page) empty() {
	if p.memory != nil {
		p.Release()
		return
	}
	p.finish(p.begin())
}

// ErrTooLarge is wrapped by the error about an answer that is larger than [Options.MaxBody]. Asking for fewer records helps.
var ErrTooLarge = errors.New("the answer is too large")

// unknownBody is what is read at first of an answer that does not say how long it is.
const unknownBody = 64 << 10

// reading says how bodies are read.
type reading struct {
	reuse, poison bool
	most          int // bytes
}

// body reads an answer of length bytes, -1 for unknown, into memory for the page p, which owns it from then on.
func (rd *reading) body(r io.Reader, length int64, p *Page) ([]byte, error) {
	if length > int64(rd.most) {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrTooLarge, length, rd.most)
	}
	if length >= 0 {
		b := rd.room(int(length), p)
		n, err := io.ReadFull(r, b)
		if err != nil {
			return nil, incomplete(n, err)
		}
		return b, nil
	}
	b := rd.room(min(unknownBody, rd.most), p)
	for n := 0; ; {
		more, err := r.Read(b[n:])
		n += more
		switch {
		case errors.Is(err, io.EOF):
			return b[:n], nil
		case err != nil:
			return nil, incomplete(n, err)
		case n < len(b):
		case n == rd.most:
			if more, err := io.ReadFull(r, make([]byte, 1)); more == 0 && errors.Is(err, io.EOF) {
				return b, nil
			}
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, rd.most)
		default:
			old, had, lent := b, p.memory, p.lent
			b = rd.room(min(2*len(old), rd.most), p)
			copy(b, old)
			if had != nil {
				had.release(lent, had.records)
			}
		}
	}
}

// room returns n bytes that belong to p from then on.
func (rd *reading) room(n int, p *Page) []byte {
	if !rd.reuse {
		return make([]byte, n)
	}
	m := newMemory(n, rd.poison)
	p.memory, p.lent, p.Records = m, m.lent.Load(), m.records[:0]
	return m.body[:n]
}

func incomplete(n int, err error) error {
	return fmt.Errorf("the answer broke off after %d bytes: %w", n, err)
}
