package keyed

import (
	"container/heap"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/supervise"
)

// The methods of this file are called with the mutex held, except those that say otherwise.

// stop has nothing new be begun. With an error Run ends.
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

// pump begins what may be begun. It is called without the mutex.
func (r *Runner) pump() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin()
}

// begin has a goroutine call the user's code with what may be begun, which has another one do the
// same when it runs. Until then those that are at work may come to all there is: where the handler
// is quick, few are made.
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

// started notes that a goroutine that was made runs. It is called without the mutex.
func (r *Runner) started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts = false
	r.begin()
}

// mayBegin returns what a call may begin with, nil if there is nothing. has says that the goroutine
// has a slot, which it keeps if that is needed.
func (r *Runner) mayBegin(has bool) *Call {
	lane, oldest := r.span.MayBegin()
	own := oldest && !r.owned
	if lane == nil || !own && !has && !r.Slots.take(r) {
		return nil
	}
	r.span.Begin(lane)
	c := lane.call
	if c == nil { // else it was paused
		c = r.call(lane)
	}
	c.slot, c.own = !own, own
	r.owned = r.owned || own
	return c
}

// call makes a call of the records of a lane.
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

// work calls the user's code until nothing may be begun. It is called without the mutex.
func (r *Runner) work(c *Call) {
	defer r.going.Done()
	defer func() {
		if c != nil { // the user's code has ended the goroutine
			r.settle(c, Step{After: time.Now(), Ends: true, Stop: r.Goexit})
		}
	}()
	r.started()
	for now := time.Now(); c != nil; {
		s := r.Host.Step(c, now)
		c, now = r.settle(c, s), s.After
	}
}

// settle applies the result of a step, and returns the next call. It is called without the
// mutex.
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
		r.span.Pause(c.lane) // for good
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
		next, slot = c, false // it keeps the one that it has
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

// rest has others begin while a call waits until what is older is done: else calls that wait could
// have all slots that the older ones need. It returns what is to follow. It is called without the
// mutex.
func (r *Runner) rest(c *Call, use uint64) (goOn func()) {
	gives := false
	r.mu.Lock()
	if c.use != use || c.lane == nil || c.State != supervise.Handling {
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

// tellChange has the loop look again whether there is room.
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
	c.State, c.Since = supervise.Retrying, mono.Now()
	c.due = c.Since.Add(d)
	heap.Push(&r.paused, c)
	r.wakeAt()
}

// wakeAt sets the timer for the first pause.
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

// resume continues the calls whose pauses are over. It is called without the mutex.
func (r *Runner) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for now := mono.Now(); len(r.paused) > 0 && r.paused[0].due.Sub(now) <= 0; {
		r.span.Resume(heap.Pop(&r.paused).(*Call).lane)
	}
	r.wakeAt()
	r.begin()
}

// pauses are calls that wait, a heap by when that is over.
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
