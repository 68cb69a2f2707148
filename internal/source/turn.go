package source

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/wire"
)

// turn makes one read and has the next one scheduled. The scheduler calls it.
func (f *Feed) turn() {
	f.mu.Lock()
	if f.held || f.state != scheduled {
		f.mu.Unlock()
		return
	}
	f.state, f.short = turning, false
	if f.status.Trying.IsZero() {
		f.status.Trying = time.Now()
	}
	f.mu.Unlock()

	tip, err := f.read(f.ctx)
	var wait time.Duration
	read := err == nil
	if err != nil && f.ctx.Err() == nil {
		wait, err = f.judge(err)
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == turning {
		f.state = parked
	}
	if read || f.short { // or the handler has something to do
		f.status.Trying = time.Time{}
	}
	switch {
	case f.ctx.Err() != nil: // though its handler may not know yet
		f.held = true
	case err != nil:
		f.err = err
		f.doing(BackingOff)
	case wait > 0:
		f.poll.due = time.Now().Add(wait)
		f.doing(BackingOff)
	case f.state == over:
		f.doing(Ended)
	case f.needs > 0:
		f.doing(AwaitingMemory)
	case !f.roomy():
		f.doing(AwaitingHandler)
	case tip:
		f.doing(AtTip)
	default:
		f.doing(Pacing)
	}
	if f.state == parked && f.err == nil && f.needs == 0 {
		f.resume()
	}
	if f.held || f.err != nil || (f.needs > 0 && len(f.queue) == 0) {
		f.rouse()
	}
}

// read reads an answer, part by part, and puts what it brings into the queue.
func (f *Feed) read(ctx context.Context) (tip bool, err error) {
	defer f.ungrant()
	p := &f.poll
	p.began = time.Now()
	if p.iterator == "" {
		f.now(Positioning)
		if err := p.open(ctx); err != nil {
			return false, err
		}
	}
	f.now(Reading)
	request := p.request()
	request.Limit, request.Window = min(f.limit, p.Limit), max(window, f.granted)
	next := f.part()
	rest, err := p.Caller.Read(ctx, request, &next.wire)
	size, records, begun := 0, 0, p.From
	for err == nil {
		next.Page, err = p.check(ctx, &next.wire)
		if err == nil {
			err = p.deliver(&next.wire, next.Page)
		}
		if err != nil {
			break
		}
		last := next.wire.Last
		size += next.Bytes
		records += len(next.Records)
		page := next.Page
		f.deliver(next, last)
		next = nil
		if last {
			f.adapt(nil, records, size)
			return p.schedule(size, page), nil
		}
		if err = f.await(ctx); err == nil {
			next = f.part()
			err = rest.Next(&next.wire)
		}
	}
	if next != nil {
		next.drop()
	}
	if rest != nil {
		rest.Close()
		if p.From != begun {
			p.iterator = "" // it is one of the beginning of the answer
		}
	}
	f.adapt(err, records, size)
	if errors.Is(err, errSlow) {
		// The service counts all of the answer.
		if n := rest.Size(); n > int64(size) {
			size = int(min(n, 10<<20))
		}
		p.due = p.began.Add(spacing(size))
		return false, nil
	}
	return false, err
}

// part is an empty one.
func (f *Feed) part() *part {
	p := partPool.Get().(*part)
	p.f, p.wire.Memory = f, f
	return p
}

// drop is release for a part that was not delivered.
func (p *part) drop() {
	p.wire.Reset()
	*p = part{wire: p.wire}
	p.wire.Memory = nil
	partPool.Put(p)
}

// deliver puts a part into the queue, unless there is nothing in it.
func (f *Feed) deliver(p *part, last bool) {
	f.mu.Lock()
	if last {
		f.atTip = p.Behind == 0
		f.status.Behind = p.Behind
	} else {
		f.atTip = false
		// How far an answer is behind stands at its end.
		if p.Behind = f.status.Behind; p.Behind == 0 {
			p.Behind = -1
		}
	}
	f.status.Err, f.status.Attempt, f.status.Trying = nil, 0, time.Now()
	f.poll.retry.reset()
	if p.End {
		f.state = over
	}
	if f.gone || (len(p.Records) == 0 && !p.End) {
		f.mu.Unlock()
		p.drop()
		return
	}
	p.part, p.bytes = p, p.wire.Held()
	if p.bytes == 0 {
		p.bytes = p.Bytes
	}
	f.queue = append(f.queue, p)
	f.parts++
	f.bytes += p.bytes
	f.rouse()
	f.mu.Unlock()
}

// await waits for room in the queue, but does not let an answer hang on its connection for long, nor others wait for it.
func (f *Feed) await(ctx context.Context) error {
	f.mu.Lock()
	if f.roomy() {
		f.mu.Unlock()
		return nil
	}
	f.doing(AwaitingHandler)
	room := make(chan struct{}, 1)
	f.room = room
	f.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var err error
	if f.sched.busy() {
		err = errSlow
	} else {
		select {
		case <-room:
		case <-timer.C:
			err = errSlow
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = nil
	f.doing(Reading)
	return err
}

// adapt sets the limit of the next read by what became of this one.
func (f *Feed) adapt(err error, records, bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	short := (*wire.NoMemoryError)(nil)
	most := f.poll.Limit
	limit := min(f.limit, most)
	switch {
	case err == nil && f.hungry && records >= limit && limit < most:
		f.limit = faster(limit, most)
	case errors.Is(err, errSlow):
		f.limit = slower(limit, window*7/8, records, bytes)
	case errors.As(err, &short) && records > 0:
		f.limit = slower(limit, window/4, records, bytes)
	case errors.As(err, &short) && limit > 1:
		have := f.share.TryTake(1, short.Bytes)
		f.share.Give(have)
		f.limit = slower(limit, have, limit, short.Bytes)
	}
	f.hungry = false
}

// judge decides what a failed read means, as [Poll.judge] does. A lack of memory is no failure, but waited for: for the handler, if that has
// something, else for other shards.
func (f *Feed) judge(failed error) (time.Duration, error) {
	short := (*wire.NoMemoryError)(nil)
	if !errors.As(failed, &short) {
		f.mu.Lock()
		f.status.Err = failed
		f.status.Attempt++
		f.mu.Unlock()
		return f.poll.judge(f.ctx, failed)
	}
	f.poll.due = f.poll.began.Add(spacing(short.Bytes))
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.parts > 0:
		f.short = true
	case f.limit == 1 || short.Bytes <= 64<<10: // asking for less does not help
		f.limit = 1
		f.needs = short.Bytes
	}
	return 0, nil
}

func (f *Feed) now(d Doing) {
	f.mu.Lock()
	f.doing(d)
	f.mu.Unlock()
}

// The feed is its pages' [wire.Memory]: what was waited for is taken first.

// TryTake takes between least and most bytes, or none.
func (f *Feed) TryTake(least, most int) int {
	f.mu.Lock()
	if n := f.granted; n >= least {
		n = min(n, most)
		f.granted -= n
		f.mu.Unlock()
		return n
	}
	f.mu.Unlock()
	return f.share.TryTake(least, most)
}

// Owe takes what is there already.
func (f *Feed) Owe(n int) { f.share.Owe(n) }

// Give gives back.
func (f *Feed) Give(n int) { f.share.Give(n) }

// ungrant gives back what was waited for and not needed.
func (f *Feed) ungrant() {
	f.mu.Lock()
	n := f.granted
	f.granted = 0
	f.mu.Unlock()
	f.share.Give(n)
}
