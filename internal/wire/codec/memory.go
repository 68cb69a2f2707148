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

// memory is the reusable memory of a page.
type memory struct {
	body    []byte
	records []Record
	poison  bool
	lent    atomic.Uint64 // incremented when the memory is lent to a page and when it is returned
}

// memories contains a pool for each size class of bodies. There are four classes per doubling. A
// small answer therefore does not occupy memory for a large one. At most a fifth of the memory is
// unused, except for bodies below LeastBody.
var memories [56]sync.Pool

// These are the sizes of the smallest and of the largest pooled body in bytes.
const (
	LeastBody = 4 << 10
	MostBody  = 32 << 20
)

// memoryClass returns the size class for bodies of n bytes and the size of bodies in that class. n
// must be at most MostBody.
func memoryClass(n int) (class, size int) {
	n = max(n, LeastBody)
	low := bits.Len(uint(n-1)) - 3 // all but the three highest bits
	quarters := (n-1)>>low + 1     // 5 to 8
	return (low-9)*4 + quarters - 5, quarters << low
}

// newMemory returns memory with room for a body of n bytes. It may come from a pool.
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

// release returns memory to its pool, together with the page's slice of records, which may have
// grown. lent identifies the loan. If copies of a page are released, only the first release has an
// effect.
func (m *memory) release(lent uint64, records []Record) {
	if !m.lent.CompareAndSwap(lent, lent+1) {
		return
	}
	m.records = records[:0]
	if m.poison {
		// Poisoned memory is never reused. A program that keeps a record for too long sees
		// nonsense, not the data of another page.
		for i := range m.body {
			m.body[i] = Poisoned
		}
		return
	}
	class, _ := memoryClass(len(m.body))
	memories[class].Put(m)
}

// Poisoned is the byte that overwrites the bodies of released pages in test mode. It is not text.
// As a number it is large and negative.
const Poisoned = 0xdb

// Memory limits the memory for answers. A page takes bytes before it allocates memory for an
// answer, and returns them when it no longer needs the memory. Pages that share a Memory may use it
// concurrently.
type Memory interface {
	// TryTake takes between least and most bytes without waiting, and returns their number. It
	// returns 0 if less than least bytes are available.
	TryTake(least, most int) int
	// TakeExcess takes n bytes that are already in use, even above the limit.
	TakeExcess(n int)
	// Give returns n bytes.
	Give(n int)
}

// WaitingMemory is a [Memory] that can wait.
type WaitingMemory interface {
	Memory
	// Take takes n bytes. It waits for them until ctx ends.
	Take(ctx context.Context, n int) error
}

// NoMemoryError is returned if [Page.Memory] did not provide the memory for an answer. The answer
// was dropped.
type NoMemoryError struct {
	Bytes int  // the minimum that was needed
	One   bool // one record needs them, so a request for fewer records would not help
}

// Error returns a text with the number of bytes.
func (e *NoMemoryError) Error() string {
	return fmt.Sprintf("no memory is free for %d bytes of an answer", e.Bytes)
}

// Release releases the page's memory. With [Bodies.Reuse] the memory is returned to a pool, and the
// page's records and all copies of them must no longer be used. Without reuse the page only drops
// its records, and copies stay valid. In both cases the page is ready for the next call. It is
// harmless to release a page twice. The garbage collector frees a page that is never released.
func (p *Page) Release() {
	if p.memory != nil {
		p.memory.release(p.lent, p.Records)
	}
	p.settle()
	*p = Page{Memory: p.Memory}
}

// Reset is like Release, but without reuse it keeps the slice of records for the next call.
func (p *Page) Reset() {
	if p.memory != nil {
		p.Release()
		return
	}
	p.finish(p.begin())
	p.settle()
}

// settle returns the bytes that the page has taken from its Memory.
func (p *Page) settle() {
	if p.held > 0 {
		p.Memory.Give(p.held)
		p.held = 0
	}
}

// ErrTooLarge is wrapped by the error for an answer that is larger than [Bodies.Most]. A request
// for fewer records can avoid it.
var ErrTooLarge = errors.New("the answer is too large")

// unknownBody is the initial room for an answer of unknown length.
const unknownBody = 64 << 10

// Bodies configures the memory of bodies.
type Bodies struct {
	Reuse  bool // reuse memory after a page is released
	Poison bool // overwrite released memory and never reuse it
	Most   int  // maximum size of a body in bytes
}

// Read reads an answer into memory that then belongs to the page p. length is its length, or -1 if
// unknown.
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

// larger replaces the page's memory by memory for n bytes. The new memory begins with a copy of
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

// Room returns memory for between least and most bytes. It belongs to the page p.
func (rd *Bodies) Room(least, most int, p *Page) ([]byte, error) {
	if p.Memory != nil {
		got := p.Memory.TryTake(max(rd.size(least), 1), max(rd.size(most), 1))
		if got == 0 {
			return nil, &NoMemoryError{Bytes: rd.size(least)}
		}
		p.held += got
		if got < rd.size(most) {
			most = got
			if rd.Reuse { // use the largest class that fits into got
				low := bits.Len(uint(got)) - 3
				most = got >> low << low
			}
		}
	}
	return rd.make(most, p), nil
}

// Wait returns memory for n bytes that belongs to p. It waits for p.Memory, which must be a
// [WaitingMemory].
func (rd *Bodies) Wait(ctx context.Context, n int, p *Page) ([]byte, error) {
	size := rd.size(n)
	if err := p.Memory.(WaitingMemory).Take(ctx, size); err != nil {
		return nil, err
	}
	p.held += size
	return rd.make(n, p), nil
}

// size returns the size of the memory for n bytes.
func (rd *Bodies) size(n int) int {
	if rd.Reuse {
		_, n = memoryClass(n)
	}
	return n
}

// make allocates n bytes that belong to p.
func (rd *Bodies) make(n int, p *Page) []byte {
	if !rd.Reuse {
		return make([]byte, n)
	}
	m := newMemory(n, rd.Poison)
	p.memory, p.lent, p.Records = m, m.lent.Load(), m.records[:0]
	return m.body[:n]
}

// Incomplete returns the error for a body that ended with err after n bytes.
func Incomplete(n int, err error) error {
	return fmt.Errorf("the answer broke off after %d bytes: %w", n, err)
}
