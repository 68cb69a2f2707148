package codec

import (
	"context"
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

// Bytes of the smallest and of the largest body that there is memory for.
const (
	LeastBody = 4 << 10
	MostBody  = 32 << 20
)

// memoryClass returns the pool for bodies of n bytes, at most MostBody, and how many bytes those
// in it have room for.
func memoryClass(n int) (class, size int) {
	n = max(n, LeastBody)
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

// release gives memory back that was lent as number lent, with the records of the page, whose
// slice may have grown. It does so once, also if the page was copied and both are released.
func (m *memory) release(lent uint64, records []Record) {
	if !m.lent.CompareAndSwap(lent, lent+1) {
		return
	}
	m.records = records[:0]
	if m.poison {
		// Never used again, so that whoever still looks at it sees nonsense and not the data of
		// another page.
		for i := range m.body {
			m.body[i] = Poisoned
		}
		return
	}
	class, _ := memoryClass(len(m.body))
	memories[class].Put(m)
}

// Poisoned fills the bodies of released pages in the test mode: no text, and as a number large
// and negative.
const Poisoned = 0xdb

// Memory bounds the bytes of answers. Pages take bytes before they make room for an answer, and
// give them back when they no longer need the room. It may be used concurrently by pages that share
// it.
type Memory interface {
	// TryTake takes between least and most bytes, without waiting, and returns how many; 0 if there
	// are not as many as least.
	TryTake(least, most int) int
	// TakeExcess takes n bytes for what is there already.
	TakeExcess(n int)
	// Give gives n bytes back.
	Give(n int)
}

// WaitingMemory is a [Memory] that can wait.
type WaitingMemory interface {
	Memory
	// Take takes n bytes, and waits for them as long as ctx lasts.
	Take(ctx context.Context, n int) error
}

// NoMemoryError says that [Page.Memory] did not give what an answer needs. The answer was given
// up.
type NoMemoryError struct {
	Bytes int  // that were needed at least
	One   bool // a single record needs them, so asking for fewer records does not help
}

// Error says how many bytes.
func (e *NoMemoryError) Error() string {
	return fmt.Sprintf("no memory is free for %d bytes of an answer", e.Bytes)
}

// Release gives the page's memory back when pages are reused ([Bodies.Reuse]): from then on its
// records, and all copies of them, must not be touched. Otherwise the page only drops its records,
// and copies of them stay valid. The page is ready for the next call either way. Releasing twice is
// harmless, and a page that is never released is left to the garbage collector.
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

// ErrTooLarge is wrapped by the error about an answer that is larger than [Bodies.Most]. Asking
// for fewer records helps.
var ErrTooLarge = errors.New("the answer is too large")

// unknownBody is what is read at first of an answer that does not say how long it is.
const unknownBody = 64 << 10

// Bodies says how bodies are read.
type Bodies struct {
	Reuse  bool // memory is used again once a page is released
	Poison bool // released memory is filled with nonsense and never used again
	Most   int  // bytes that a body may have
}

// Read reads an answer of length bytes, -1 for unknown, into memory for the page p, which owns it
// from then on.
func (rd *Bodies) Read(r io.Reader, length int64, p *Page) ([]byte, error) {
	if length > int64(rd.Most) {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrTooLarge, length, rd.Most)
	}
	if length >= 0 {
		b, err := rd.Room(int(length), int(length), p)
		if err != nil {
			return nil, err
		}
		n, err := io.ReadFull(r, b)
		if err != nil {
			return nil, Incomplete(n, err)
		}
		return b, nil
	}
	b, err := rd.Room(min(LeastBody, rd.Most), min(unknownBody, rd.Most), p)
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
			return nil, Incomplete(n, err)
		case n < len(b):
		case n == rd.Most:
			if more, err := io.ReadFull(r, make([]byte, 1)); more == 0 && errors.Is(err, io.EOF) {
				return b, nil
			}
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, rd.Most)
		default:
			if b, err = rd.larger(2*len(b), b, p); err != nil {
				return nil, err
			}
		}
	}
}

// larger returns room for n bytes in place of what the page has. The new room begins with a copy of
// needed.
func (rd *Bodies) larger(n int, needed []byte, p *Page) ([]byte, error) {
	had, lent, held := p.memory, p.lent, p.held
	n = min(n, rd.Most)
	next, err := rd.Room(n, n, p)
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

// Room returns between least and most bytes that belong to p from then on.
func (rd *Bodies) Room(least, most int, p *Page) ([]byte, error) {
	if p.Memory != nil {
		got := p.Memory.TryTake(max(rd.size(least), 1), max(rd.size(most), 1))
		if got == 0 {
			return nil, &NoMemoryError{Bytes: rd.size(least)}
		}
		p.held += got
		if got < rd.size(most) {
			most = got
			if rd.Reuse { // the largest class that it is enough for
				low := bits.Len(uint(got)) - 3
				most = got >> low << low
			}
		}
	}
	return rd.make(most, p), nil
}

// Wait makes room for n bytes of p, whose Memory is a [WaitingMemory] and is waited for.
func (rd *Bodies) Wait(ctx context.Context, n int, p *Page) ([]byte, error) {
	size := rd.size(n)
	if err := p.Memory.(WaitingMemory).Take(ctx, size); err != nil {
		return nil, err
	}
	p.held += size
	return rd.make(n, p), nil
}

// size is how much memory room for n bytes needs.
func (rd *Bodies) size(n int) int {
	if rd.Reuse {
		_, n = memoryClass(n)
	}
	return n
}

// make makes room for n bytes that belong to p from then on.
func (rd *Bodies) make(n int, p *Page) []byte {
	if !rd.Reuse {
		return make([]byte, n)
	}
	m := newMemory(n, rd.Poison)
	p.memory, p.lent, p.Records = m, m.lent.Load(), m.records[:0]
	return m.body[:n]
}

// Incomplete is the error about a body that ended with err after n bytes.
func Incomplete(n int, err error) error {
	return fmt.Errorf("the answer broke off after %d bytes: %w", n, err)
}
