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

// memories are pools by the size of the body, four for each doubling, so that a small answer does
// not hold the memory of a large one and at most a fifth is spare.
var memories [56]sync.Pool

const (
	leastBody = 4 << 10
	mostBody  = 32 << 20
)

// memoryClass returns the pool for bodies of n bytes, at most mostBody, and how many bytes those in
// it have room for.
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

// release gives memory back that was lent as number lent, with the records of the page, whose slice
// may have grown. It does so once, also if the page was copied and both are released.
func (m *memory) release(lent uint64, records []Record) {
	if !m.lent.CompareAndSwap(lent, lent+1) {
		return
	}
	m.records = records[:0]
	if m.poison {
		// Never used again, so that whoever still looks at it sees nonsense and not the data of
		// another page.
		for i := range m.body {
			m.body[i] = poisoned
		}
		return
	}
	class, _ := memoryClass(len(m.body))
	memories[class].Put(m)
}

// poisoned fills the bodies of released pages in the test mode: no text, and as a number large and
// negative.
const poisoned = 0xdb

// Memory is asked before room is made for an answer, and told when that is not needed any more. It
// may be used concurrently by pages that share it.
type Memory interface {
	// TryTake takes between least and most bytes, without waiting, and returns how many; 0 if there
	// are not as many as least.
	TryTake(least, most int) int
	// TakeExcess takes n bytes for what is there already.
	TakeExcess(n int)
	// Give gives n bytes back.
	Give(n int)
}

// NoMemoryError says that [Page.Memory] did not give what an answer needs. The answer was given up;
// asking for fewer records may help.
type NoMemoryError struct{ Bytes int } // that would have been needed at least

// Error says how many bytes.
func (e *NoMemoryError) Error() string {
	return fmt.Sprintf("no memory is free for %d bytes of an answer", e.Bytes)
}

// Release gives the page's memory back when pages are reused ([Options.Reuse]): from then on its
// records, and all copies of them, must not be touched. Otherwise the page only lets go of its
// records, whoever still has them. The page is ready for the next call either way. Releasing twice
// is harmless, and a page that is never released is left to the garbage collector.
func (p *Page) Release() {
	if p.memory != nil {
		p.memory.release(p.lent, p.Records)
	}
	p.settle()
	*p = Page{Memory: p.Memory}
}

// Reset is Release, but keeps the slice of the records for the next call.
func (p *Page) Reset() {
	if p.memory != nil {
		p.Release()
		return
	}
	p.finish(p.begin())
	p.settle()
}

// settle gives back what the page has taken from its Memory.
func (p *Page) settle() {
	if p.held > 0 {
		p.Memory.Give(p.held)
		p.held = 0
	}
}

// empty makes the page ready for the next call. The slice of its records is used again.
func (p *Page) empty() { p.Reset() }

// ErrTooLarge is wrapped by the error about an answer that is larger than [Options.MaxBody]. Asking
// for fewer records helps.
var ErrTooLarge = errors.New("the answer is too large")

// unknownBody is what is read at first of an answer that does not say how long it is.
const unknownBody = 64 << 10

// reading says how bodies are read.
type reading struct {
	reuse, poison bool
	most          int // bytes
}

// body reads an answer of length bytes, -1 for unknown, into memory for the page p, which owns it
// from then on.
func (rd *reading) body(r io.Reader, length int64, p *Page) ([]byte, error) {
	if length > int64(rd.most) {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrTooLarge, length, rd.most)
	}
	if length >= 0 {
		b, err := rd.room(int(length), int(length), p)
		if err != nil {
			return nil, err
		}
		n, err := io.ReadFull(r, b)
		if err != nil {
			return nil, incomplete(n, err)
		}
		return b, nil
	}
	b, err := rd.room(min(leastBody, rd.most), min(unknownBody, rd.most), p)
	if err != nil {
		return nil, err
	}
	for n := 0; ; {
		var more int
		more, err = r.Read(b[n:])
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
			if b, err = rd.larger(b, b, p); err != nil {
				return nil, err
			}
		}
	}
}

// larger returns twice the room of b, which begins with what is still needed of b.
func (rd *reading) larger(b, needed []byte, p *Page) ([]byte, error) {
	had, lent, held := p.memory, p.lent, p.held
	n := min(2*len(b), rd.most)
	next, err := rd.room(n, n, p)
	if err != nil {
		return nil, err
	}
	copy(next, needed)
	if had != nil {
		had.release(lent, had.records)
	}
	if held > 0 {
		p.Memory.Give(held)
		p.held -= held
	}
	return next, nil
}

// room returns between least and most bytes that belong to p from then on.
func (rd *reading) room(least, most int, p *Page) ([]byte, error) {
	if p.Memory != nil {
		got := p.Memory.TryTake(max(rd.size(least), 1), max(rd.size(most), 1))
		if got == 0 {
			return nil, &NoMemoryError{rd.size(least)}
		}
		p.held += got
		if got < rd.size(most) {
			most = got
			if rd.reuse { // the largest class that it is enough for
				low := bits.Len(uint(got)) - 3
				most = got >> low << low
			}
		}
	}
	return rd.make(most, p), nil
}

// size is how much memory room for n bytes needs.
func (rd *reading) size(n int) int {
	if rd.reuse {
		_, n = memoryClass(n)
	}
	return n
}

// make makes room for n bytes that belong to p from then on.
func (rd *reading) make(n int, p *Page) []byte {
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
