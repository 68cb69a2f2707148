package keyed

import (
	"container/heap"
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/mono"
)

// The mutex is held during the methods of this file, unless their comments say otherwise.

// stop makes the runner begin nothing new. If err is not nil, Run ends with it.
func (r *Runner) stop(err error) {
	if !r.stops {
		r.stops = true
		r.endsNow()
		if r.timer != nil {
			r.timer.Stop()
		}
	}
	if r.err == nil {
		r.err = err
	}
}

// pump begins calls that may begin. The mutex must not be held.
func (r *Runner) pump() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin()
}

// begin starts a goroutine that calls user code, if a call may begin. When that goroutine runs, it
// calls begin again to start the next one. In the meantime the running goroutines may take all
// remaining calls. Few goroutines are therefore made if the handler is fast.
func (r *Runner) begin() {
	if r.stops || r.starts {
		return
	}
	c := r.mayBegin(false)
	if c == nil {
		return
	}
	c.runs(mono.Now())
	r.starts = true
	r.going.Add(1)
	go r.work(c)
}

// started records that a new goroutine runs. The mutex must not be held.
func (r *Runner) started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts = false
	r.begin()
}

// mayBegin returns the next call, or nil if no call may begin. has is set if the goroutine has a
// slot. The call keeps that slot if it needs a slot.
func (r *Runner) mayBegin(has bool) *Call {
	lane, oldest := r.span.MayBegin()
	own := oldest && !r.owned
	if lane == nil || !own && !has && !r.Slots.take(r) {
		return nil
	}
	r.span.Begin(lane)
	c := lane.call
	if c == nil { // otherwise the call was paused
		c = r.call(lane)
	}
	c.slot, c.own = !own, own
	r.owned = r.owned || own
	return c
}

// call returns a call with the records of a lane.
func (r *Runner) call(lane *Lane) *Call {
	last := len(r.spare) - 1
	if last < 0 {
		c := &Call{runner: r}
		c.Delivery.From = r.From
		r.all, r.spare, last = append(r.all, c), append(r.spare, c), 0
	}
	c := r.spare[last]
	r.spare = r.spare[:last]
	c.begin(lane, r.behind)
	r.Host.Begin(c, lane.Records)
	return c
}

// work calls user code until no call may begin. The mutex must not be held.
func (r *Runner) work(c *Call) {
	defer r.going.Done()
	defer func() {
		if c != nil { // the user code has ended the goroutine
			r.settle(c, Step{After: time.Now(), Ends: true, Stop: r.Goexit})
		}
	}()
	r.started()
	for now := time.Now(); c != nil; {
		s := r.Host.Step(c, now)
		c, now = r.settle(c, s), s.After
	}
}

// settle applies the result of a step and returns the next call. The mutex must not be held.
func (r *Runner) settle(c *Call, step Step) (next *Call) {
	done := c.Delivery.Done()

	r.mu.Lock()
	if c.resting > 0 {
		c.resting = 0
		r.span.Work()
	}
	slot := c.slot
	c.works = false
	r.done(c, done)
	ends := step.Ends || r.stops && !step.Over
	switch {
	case ends:
		r.span.Pause(c.lane) // without a later Resume
		c.lane = nil
		if step.Ends {
			r.stop(step.Stop)
		}
	case step.Over:
		r.span.Return(c.lane)
		c.lane = nil
		r.spare = append(r.spare, c)
	case step.Pause == 0:
		c.runs(mono.Of(step.After))
		next, slot = c, false // the call keeps its slot
	default:
		r.pause(c, step.Pause)
	}
	if next == nil && c.own {
		c.own, r.owned = false, false
	}
	if next == nil && !r.stops {
		if next = r.mayBegin(slot && !r.Slots.contended()); next != nil {
			next.runs(mono.Of(step.After))
			slot = slot && !next.slot
		}
		r.begin()
	}
	r.tellChange()
	wakes := r.parked && (r.stops || r.span.Len() == 0)
	r.parked = r.parked && !wakes
	r.mu.Unlock()

	if ends {
		c.Delivery.Close()
	}
	if slot {
		r.Slots.give()
	}
	if step.Stop != nil {
		r.Host.Fail(step.Stop)
	}
	if wakes {
		r.Host.Wake()
	}
	return next
}

// rest releases the slot of a call that waits for older records, so that other calls can begin.
// Otherwise the waiting calls could hold all slots, and the older records could not get one. The
// caller must call the returned function after the wait. The mutex must not be held.
func (r *Runner) rest(c *Call, use uint64) (goOn func()) {
	gives := false
	r.mu.Lock()
	if c.use != use || c.lane == nil || c.State != health.InHandler {
		r.mu.Unlock()
		return func() {}
	}
	if c.resting++; c.resting == 1 {
		r.span.Rest()
		r.owned = r.owned && !c.own
		gives, c.slot, c.own = c.slot, false, false
		r.begin()
	}
	r.mu.Unlock()
	if gives {
		r.Slots.give()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if c.use != use || c.resting == 0 { // the call is over
			return
		}
		if c.resting--; c.resting == 0 {
			r.span.Work()
		}
	}
}

func (r *Runner) done(c *Call, done int) {
	if n := done - c.noted; n > 0 {
		before := r.span.Bytes()
		r.span.Done(c.lane, n)
		c.noted = done
		if n := before - r.span.Bytes(); n > 0 {
			r.share.Give(n)
		}
	}
}

// tellChange makes the loop check again whether there is room.
func (r *Runner) tellChange() {
	if r.looks {
		r.looks = false
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}
}

// pause makes a call wait before it continues.
func (r *Runner) pause(c *Call, d time.Duration) {
	r.span.Pause(c.lane)
	c.State, c.Since = health.HandlerFailed, mono.Now()
	c.due = c.Since.Add(d)
	heap.Push(&r.paused, c)
	r.wakeAt()
}

// wakeAt sets the timer for the end of the first pause.
func (r *Runner) wakeAt() {
	if len(r.paused) == 0 || r.stops {
		return
	}
	wait := mono.Until(r.paused[0].due)
	if r.timer == nil {
		r.timer = time.AfterFunc(wait, r.resume)
	} else {
		r.timer.Reset(wait)
	}
}

// resume continues the calls whose pauses are over. The mutex must not be held.
func (r *Runner) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for now := mono.Now(); len(r.paused) > 0 && r.paused[0].due.Sub(now) <= 0; {
		r.span.Resume(heap.Pop(&r.paused).(*Call).lane)
	}
	r.wakeAt()
	r.begin()
}

// pauses is a heap of waiting calls, sorted by the end of their pauses.
type pauses []*Call

func (p pauses) Len() int           { return len(p) }
func (p pauses) Less(i, j int) bool { return p[i].due < p[j].due }
func (p pauses) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pauses) Push(c any)        { *p = append(*p, c.(*Call)) }
func (p *pauses) Pop() any {
	last := len(*p) - 1
	c := (*p)[last]
	(*p)[last] = nil
	*p = slices.Delete(*p, last, last+1)
	return c
}
