package producer

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// tick is the resolution of the dispatcher's timers. Shards that are due at about the same time
// then share a request.
const tick = 5 * time.Millisecond

// dispatch sends due records until the producer is closed and each record has its outcome.
func (p *Producer) dispatch() {
	defer close(p.over)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		p.mu.Lock()
		again := p.step(now)
		over := p.closing && p.core.open == 0
		p.mu.Unlock()
		if over {
			break
		}
		var due <-chan time.Time
		if !again.IsZero() {
			timer.Reset(max(0, again.Sub(now)).Truncate(tick) + tick)
			due = timer.C
		}
		select {
		case <-p.wake:
		case <-due:
		}
	}
	p.cancel(ErrClosed) // ends a listing
	p.calls.Wait()
	if p.wire != nil {
		p.wire.Close()
	}
}

// step starts the requests that are due, and returns when to call it again. The caller holds the
// mutex.
func (p *Producer) step(now time.Time) (again time.Time) {
	for p.mayRequest() && p.requests < p.options.MaxRequests {
		var r *request
		if r, again = p.core.next(now); r == nil {
			break
		}
		p.requests++
		p.calls.Go(func() { p.send(r) })
	}
	switch {
	case p.aborted:
		p.core.failWaiting(ErrClosed)
	case p.core.stopped:
		p.core.failWaiting(ErrStopped)
	}
	if at := p.look(now); again.IsZero() || !at.IsZero() && at.Before(again) {
		again = at
	}
	p.finish()
	return again
}

// mayRequest reports whether requests may start. The caller holds the mutex.
func (p *Producer) mayRequest() bool { return !p.aborted && !p.core.stopped }

// send makes the call of a request and processes the answer.
func (p *Producer) send(r *request) {
	began := time.Now()
	a := p.call(r)
	now := time.Now()
	a.took = now.Sub(began)
	if a.err != nil && p.ctx.Err() != nil {
		a.err = ErrClosed // Close canceled the call
	}
	if classifyCall(a.err) == unsigned {
		p.refreshCredentials()
	}
	p.mu.Lock()
	done := p.core.answered(r, a, now)
	p.requests--
	p.finish()
	p.mu.Unlock()
	p.signal()
	p.tellRequest(r, done, began, a.took)
	r.free()
}

// refreshCredentials makes the client fetch its credentials again.
func (p *Producer) refreshCredentials() {
	c, ok := p.client.(interface{ Options() kinesis.Options })
	if !ok {
		return
	}
	if cache, ok := c.Options().Credentials.(interface{ Invalidate() }); ok {
		cache.Invalidate()
	}
}

// finish passes on the records that have their outcome. The caller holds the mutex.
func (p *Producer) finish() {
	if p.core.stopped {
		p.buffer.close()
	}
	for _, rec := range p.core.ended {
		if p.aborted && rec.err != nil {
			p.remaining.add(rec)
		}
		if rec.waiting != nil {
			close(rec.waiting)
		}
		if rec.done != nil {
			p.callbacks.push(rec)
		} else {
			p.release(rec)
		}
	}
	clear(p.core.ended)
	p.core.ended = p.core.ended[:0]
}

// release frees the room of a record. The caller holds the mutex.
func (p *Producer) release(rec *Pending) {
	p.held--
	p.buffer.give(rec.size())
	p.admit()
	for i := 0; i < len(p.flushes); i++ {
		f := p.flushes[i]
		if rec.number > f.upTo {
			continue
		}
		if f.left--; f.left == 0 {
			close(f.ended)
			p.flushes = slices.Delete(p.flushes, i, i+1)
			i--
		}
	}
}
