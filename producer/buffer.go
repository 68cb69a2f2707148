package producer

import (
	"context"
	"slices"
)

// buffer bounds what a producer holds. Calls of Put that find no room wait in line. The producer's
// mutex guards it.
type buffer struct {
	mostRecords, mostBytes int
	records, bytes         int
	line                   []*place
	spare                  []*place // for the next calls that wait
}

// place is a call of Put that waits for room.
type place struct {
	given Pending
	taken *Pending      // the record once it is accepted
	ready chan struct{} // has one element when the wait is over
}

// mostSpare limits the places that are kept for other calls.
const mostSpare = 100

// free makes a place available to other calls. The place must already have left the line.
func (b *buffer) free(p *place) {
	select {
	case <-p.ready:
	default:
	}
	p.given, p.taken = Pending{}, nil
	if len(b.spare) < mostSpare {
		b.spare = append(b.spare, p)
	}
}

// take reserves room for a record. It fails if there is no room or if other calls already wait.
func (b *buffer) take(bytes int) bool {
	if len(b.line) > 0 || !b.room(bytes) {
		return false
	}
	b.records++
	b.bytes += bytes
	return true
}

func (b *buffer) room(bytes int) bool {
	return b.records < b.mostRecords && b.bytes+bytes <= b.mostBytes
}

// wait adds a place to the line.
func (b *buffer) wait(given *Pending) *place {
	var p *place
	if n := len(b.spare); n > 0 {
		p, b.spare = b.spare[n-1], b.spare[:n-1]
	} else {
		p = &place{ready: make(chan struct{}, 1)}
	}
	p.given = *given
	b.line = append(b.line, p)
	return p
}

// give frees the room that a record has used.
func (b *buffer) give(bytes int) {
	b.records--
	b.bytes -= bytes
}

// next reserves room for the first place in line and removes that place from the line. It returns
// nil if there is no room or no place.
func (b *buffer) next() *place {
	if len(b.line) == 0 || !b.room(b.line[0].given.size()) {
		return nil
	}
	p := b.line[0]
	b.line = slices.Delete(b.line, 0, 1)
	b.records++
	b.bytes += p.given.size()
	return p
}

// leave removes a place from the line.
func (b *buffer) leave(p *place) {
	if i := slices.Index(b.line, p); i >= 0 {
		b.line = slices.Delete(b.line, i, i+1)
	}
}

// close wakes all waiting calls.
func (b *buffer) close() {
	for _, p := range b.line {
		p.ready <- struct{}{}
	}
	b.line = nil
}

// admit accepts waiting records as long as there is room. The caller holds the mutex.
func (p *Producer) admit() {
	for at := p.buffer.next(); at != nil; at = p.buffer.next() {
		at.taken = p.accept(&at.given)
		at.ready <- struct{}{}
	}
}

// await waits until the record of a place is accepted, and returns it. If ctx ends first, await
// removes the place from the line.
func (p *Producer) await(ctx context.Context, at *place) (*Pending, error) {
	select {
	case <-at.ready:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.buffer.free(at)
	switch {
	case at.taken != nil:
		return at.taken, nil
	case p.closing:
		return nil, ErrClosed
	case p.core.stopped:
		return nil, ErrStopped
	default:
		p.buffer.leave(at)
		p.admit() // a smaller record may fit
		return nil, context.Cause(ctx)
	}
}
