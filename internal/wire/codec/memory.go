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

// memory is the reused memory of a page.
type memory struct {
	body    []byte
	records []Record
	poison  bool
	lent    atomic.Uint64 // increases when it is lent to a page and when it is returned
}

// memories are pools by body size, four for each doubling. A small answer does not use the memory
// of a large one, and at most a fifth is unused.
var memories [56]sync.Pool

// Sizes of the smallest and of the largest pooled body in bytes.
const (
	LeastBody = 4 << 10
	MostBody  = 32 << 20
)

// memoryClass returns the pool for bodies of n bytes, at most MostBody, and the size of the bodies
// in that pool.
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

// release returns memory that was lent as number lent, together with the page's slice of records,
// which may have grown. It does so only once, even if the page was copied and both copies are
// released.
func (m *memory) release(lent uint64, records []Record) {
	if !m.lent.CompareAndSwap(lent, lent+1) {
		return
	}
	m.records = records[:0]
	if m.poison {
		// Never reused: a reader that keeps it too long sees nonsense and not the data of another
		// page.
		for i := range m.body {
			m.body[i] = Poisoned
		}
		return
	}
	class, _ := memoryClass(len(m.body))
	memories[class].Put(m)
}

// Poisoned is the byte that overwrites the bodies of released pages in test mode. It is not text,
// and as a number it is large and negative.
const Poisoned = 0xdb

// Memory limits the bytes of answers. Pages take bytes before they make room for an answer, and
// give them back when they no longer need the room. Pages that share it may use it concurrently.
type Memory interface {
	// TryTake takes between least and most bytes, without waiting, and returns how many. It returns
	// 0 if fewer than least are available.
	TryTake(least, most int) int
	// TakeExcess takes n bytes that are in use already.
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

// NoMemoryError says that [Page.Memory] did not provide the memory for an answer. The answer was
// dropped.
type NoMemoryError struct {
	Bytes int  // minimum that was needed
	One   bool // a single record needs them, so requesting fewer records does not help
}

// Error states the number of bytes.
func (e *NoMemoryError) Error() string {
	return fmt.Sprintf("no memory is free for %d bytes of an answer", e.Bytes)
}

// Release returns the page's memory if pages are reused ([Bodies.Reuse]). From then on its records
// and all copies of them must not be used. Without reuse the page only drops its records, and
// copies stay valid. In both cases the page is ready for the next call. Releasing twice is
// harmless. A page that is never released is left to the garbage collector.
func (p *Page) Release() {
	if p.memory != nil {
		p.memory.release(p.lent, p.Records)
	}
	p.settle()
	*p = Page{Memory: p.Memory}
}

// Reset is like Release, but keeps the slice of the records for the next call.
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

// ErrTooLarge is wrapped by the error about an answer that is larger than [Bodies.Most]. Requesting
// fewer records helps.
var ErrTooLarge = errors.New("the answer is too large")

// unknownBody is how much is read first of an answer of unknown length.
const unknownBody = 64 << 10

// Bodies configures how bodies are read.
type Bodies struct {
	Reuse  bool // memory is reused once a page is released
	Poison bool // released memory is overwritten and never reused
	Most   int  // maximum size of a body in bytes
}

// Read reads an answer of length bytes (-1 for unknown) into memory that belongs to the page p from
// then on.
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

// larger returns room for n bytes and replaces the page's memory. The new room begins with a copy
// of needed.
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
			if rd.Reuse { // the largest class for which it is enough
				low := bits.Len(uint(got)) - 3
				most = got >> low << low
			}
		}
	}
	return rd.make(most, p), nil
}

// Wait makes room for n bytes of p. It waits for p.Memory, which is a [WaitingMemory].
func (rd *Bodies) Wait(ctx context.Context, n int, p *Page) ([]byte, error) {
	size := rd.size(n)
	if err := p.Memory.(WaitingMemory).Take(ctx, size); err != nil {
		return nil, err
	}
	p.held += size
	return rd.make(n, p), nil
}

// size returns how much memory room for n bytes needs.
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

// Incomplete returns the error about a body that ended with err after n bytes.
func Incomplete(n int, err error) error {
	return fmt.Errorf("the answer broke off after %d bytes: %w", n, err)
}
