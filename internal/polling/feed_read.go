package polling

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/internal/wire/codec"
)

// A turn is one attempt to read. In each turn, the scheduler calls the methods begin and finish. In
// a wave, it calls the method ask between them. It passes them a conn for the call to Kinesis.
// Different goroutines may call begin and finish. If begin returns false, the turn is over.

// begin reserves the memory for the read. It returns false if no read is made in this turn.
func (f *Feed) begin(l *conn) bool {
	owner := f.owner()
	ended := owner.Context().Err() != nil // takes the owner's mutex
	f.mu.Lock()
	if f.held || f.state != scheduled {
		f.mu.Unlock()
		f.ungrant()
		return false
	}
	if ended { // even if the handler has not noticed yet
		f.state, f.held = parked, true
		f.rouse()
		f.mu.Unlock()
		f.ungrant()
		return false
	}
	defer f.mu.Unlock()
	now := mono.Now()
	// The read is due later than the scheduler's wheel could represent, so schedule it again.
	if due := f.poll.due; !due.IsZero() && due.Sub(now) > tick {
		f.sched.at(f, due)
		return false
	}
	if !f.admit(now) {
		return false
	}
	f.state, f.short = turning, false
	if f.trying.IsZero() {
		f.trying = now
	}
	_, f.end = l.context(owner.Calls())
	f.poll.began = now
	if f.poll.iterator == "" {
		f.from(health.Positioning, now)
	} else {
		f.from(health.Requesting, now)
	}
	return true
}

// ask sends the request and leaves the answer to finish, if that is possible now. It reports
// whether it sent the request.
func (f *Feed) ask(l *conn) bool {
	return f.poll.iterator != "" && f.poll.Caller.Ask(l.ctx, f.request(l))
}

// finish completes the read and schedules the next one. It also sends the request if ask has not.
func (f *Feed) finish(l *conn) {
	ctx := l.ctx
	tip, err := f.read(ctx, l)
	var wait time.Duration
	read := err == nil
	if err != nil && ctx.Err() == nil {
		wait, err = f.judge(ctx, err)
	}

	// Err takes the owner's mutex, so it is called before f.mu is locked. If reading ends after
	// this check, the next turn notices it.
	ended := ctx.Err() != nil || !tip && f.owner().Context().Err() != nil
	f.mu.Lock()
	defer f.mu.Unlock()
	now := mono.Now()
	// From here on, the next turn may own the feed.
	f.end = nil
	if f.state == turning {
		f.state = parked
	}
	if read || f.short { // the handler has something to do
		f.trying = 0
	}
	f.light = false
	switch {
	case ended:
		f.held = true
	case err != nil:
		f.wrong().ends = err
		f.from(health.ReadFailed, now)
	case wait > 0:
		f.poll.due = later(f.poll.due, now.Add(wait))
		f.from(health.ReadFailed, now)
	case f.state == over:
		f.from(health.Ended, now)
	case !f.roomy():
		f.from(health.AwaitingHandler, now)
	case f.needs > 0:
		f.from(health.AwaitingMemory, now)
	case tip:
		f.from(health.AtTip, now)
		f.light = now.Sub(f.poll.began) < slow && f.poll.Caller.Splits()
	default:
		f.from(health.Pacing, now)
	}
	if f.state == parked && f.ends() == nil {
		f.resume()
	}
	if f.held || f.ends() != nil {
		f.rouse()
	}
}

// read reads an answer in parts and queues the parts.
func (f *Feed) read(ctx context.Context, l *conn) (tip bool, err error) {
	defer f.ungrant()
	p := &f.poll
	if p.iterator == "" {
		err := p.open(ctx, &l.line, &l.retry)
		f.retried(l)
		if err != nil {
			return false, err
		}
		f.mu.Lock()
		f.now(health.Requesting)
		f.mu.Unlock()
	}
	next := f.part()
	request := f.request(l)
	rest, err := p.Caller.Read(ctx, request, &next.wire)
	f.retried(l)
	got, begun := taken{asked: request.Limit, whole: rest == nil}, p.From
	for err == nil {
		next.Page, err = p.check(ctx, &next.wire)
		if err == nil {
			err = p.deliver(&next.wire, next.Page)
		}
		if err != nil {
			break
		}
		last := next.wire.Last
		got.bytes += next.Bytes
		got.records += len(next.Records)
		got.memory += max(next.wire.Held(), next.Bytes)
		page := next.Page
		f.deliver(next, last)
		next = nil
		if last {
			tip = p.schedule(got.bytes, page)
			got.tip = tip
			f.adapt(nil, got)
			return tip, nil
		}
		if err = f.await(ctx, rest.Left()); err == nil {
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
			p.iterator = "" // it belongs to the beginning of the answer
		}
	}
	f.adapt(err, got)
	// The whole answer counts towards the shard's read limit, even if only a part of it arrived.
	size := got.bytes
	if rest != nil {
		size = max(size, int(min(rest.Size(), mostAnswer)))
	}
	p.due = p.began.Add(p.spacing(size))
	if errors.Is(err, errSlow) {
		return false, nil
	}
	return false, err
}

// retried counts a retry of the call.
func (f *Feed) retried(l *conn) {
	if f.poll.retried(&l.retry) {
		f.mu.Lock()
		f.wrong().retried++
		f.mu.Unlock()
	}
}

// request returns the request for the read. It locks the mutex to read granted, because a turn that
// begins during a read of Last returns the granted bytes.
func (f *Feed) request(l *conn) wire.Request {
	f.mu.Lock()
	granted := int(f.granted)
	f.mu.Unlock()
	r := f.poll.request(&l.retry)
	r.Limit, r.Window, r.Line = int(min(f.limit, f.poll.Limit)), max(window, granted), &l.line
	if f.needs > 0 {
		r.Limit = 1
		if f.share.HasReserve() { // the window is as large as the answer
			r.Window = codec.MostBody
		}
	}
	return r
}

// part returns an empty part from the pool.
func (f *Feed) part() *part {
	p := partPool.Get().(*part)
	p.f, p.wire.Memory = f, f
	return p
}

// drop releases a part that was not delivered.
func (p *part) drop() {
	p.wire.Reset()
	*p = part{wire: p.wire}
	p.wire.Memory = nil
	partPool.Put(p)
}

// deliver queues a part unless it is empty.
func (f *Feed) deliver(p *part, last bool) {
	f.mu.Lock()
	if last {
		f.atTip = p.Behind == 0
		f.behind = p.Behind
	} else {
		f.atTip = false
		// Kinesis sends the lag at the end of an answer. Earlier parts get the lag of the previous
		// answer. If that lag was 0, their lag is unknown.
		if p.Behind = f.behind; p.Behind == 0 {
			p.Behind = -1
		}
	}
	f.trying = mono.Now()
	f.fine()
	if p.End {
		f.state = over
	}
	tip := f.Tips && last && p.Behind <= 0
	if f.gone || (len(p.Records) == 0 && !p.End && !tip) {
		f.mu.Unlock()
		p.drop()
		return
	}
	p.Wire, p.Lender, p.bytes = &p.wire, p, p.wire.Held()
	if p.bytes == 0 {
		p.bytes = p.Bytes
	}
	end := &f.queue
	for *end != nil {
		end = &(*end).next
	}
	*end = p
	f.parts++
	f.bytes += int32(p.bytes)
	f.rouse()
	f.mu.Unlock()
}

// await waits for room in the queue and for the memory of an answer's next part. left is the number
// of bytes that remain of the answer, or -1 if unknown. await keeps an answer on its connection
// only for a short time, because other reads may need the connection.
func (f *Feed) await(ctx context.Context, left int64) error {
	need := window
	if left >= 0 { // plus bytes of the previous part, and rounding
		need = int(min(left+left/4+4<<10, window))
	}
	bound := patience
	if f.sched.busy() {
		bound = haste
	}
	var timer, again *time.Timer
	room := make(chan struct{}, 1)
	defer func() {
		f.mu.Lock()
		f.room = nil
		f.now(health.Requesting)
		f.mu.Unlock()
		if timer != nil {
			timer.Stop()
			again.Stop()
		}
	}()
	for {
		f.mu.Lock()
		fits := f.fits()
		if fits && f.grant(need) {
			f.mu.Unlock()
			return nil
		}
		f.room = room
		f.now(health.AwaitingHandler)
		if fits {
			f.now(health.AwaitingMemory)
		}
		f.mu.Unlock()
		if timer == nil {
			timer, again = time.NewTimer(bound), time.NewTimer(tick)
		}
		again.Reset(tick) // returned memory causes no signal
		select {
		case <-room:
		case <-again.C:
		case <-timer.C:
			if fits {
				return &codec.NoMemoryError{Bytes: need}
			}
			return errSlow
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// judge returns the wait after a failed read, or an error that ends reading, like [Poll.judge]. A
// lack of memory is not a failure. In that case adapt has already chosen the parameters of the next
// read.
func (f *Feed) judge(ctx context.Context, failed error) (time.Duration, error) {
	short := shortage(failed)
	if short == nil {
		f.mu.Lock()
		wrong := f.wrong()
		wrong.last = failed
		wrong.attempt++
		if streams.Throttled(failed) {
			wrong.throttled++
		} else {
			wrong.failed++
		}
		f.mu.Unlock()
		return f.poll.judge(ctx, failed)
	}
	// Kinesis counts this answer against its limit.
	f.poll.due = later(f.poll.due, f.poll.began.Add(f.poll.spacing(min(short.Bytes, mostAnswer))))
	return 0, nil
}
