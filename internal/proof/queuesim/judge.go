package queuesim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/queue"
)

// call is a running call of a handler.
type call struct {
	life  *life
	ctx   context.Context
	began time.Time
	parts []part
}

// part is one record to handle: a plain record, or one of an aggregate.
type part struct {
	record *record
	sub    int
}

// broken notes a broken promise. The caller holds the mutex.
func (w *world) broken(format string, args ...any) {
	if w.problem == "" {
		w.problem = fmt.Sprintf("%v: ", time.Since(w.began).Round(time.Millisecond)) + fmt.Sprintf(format, args...)
	}
}

// subs returns the numbers of the parts of a record as the process sees them.
func (l *life) subs(r *record) []int {
	if r.parts == 0 || l.options.KeepPacked {
		return []int{0}
	}
	subs := make([]int, r.parts)
	for i := range subs {
		subs[i] = i + 1
	}
	return subs
}

// settled reports whether the process has done a part, or its filter has dropped it.
func (l *life) settled(p part) bool { return l.done[p] || l.dropped[p] }

// complete reports whether the process has settled all parts of a record.
func (l *life) complete(r *record) bool {
	return !slices.ContainsFunc(l.subs(r), func(sub int) bool { return !l.settled(part{r, sub}) })
}

// delivered checks a delivery before it happens: no handler may still have the record.
func (w *world) delivered(r *record, to *life, now time.Time) {
	for _, c := range r.calls {
		if c.ctx.Err() == nil && !c.life.stalled(now) && !r.late && !c.life.crashed {
			w.broken("%s is delivered to %s, but the context of the handler in %s has not ended", r.id, to.name, c.life.name)
		}
	}
	w.deliveries++
}

// expired checks the end of a hold.
func (w *world) expired(r *record, now time.Time) {
	l := r.holder
	why := r.excused
	switch {
	case why != "":
	case l.crashed:
		why = "its process crashed"
	case l.disturbed.After(r.since):
		why = "the process had trouble with its calls"
	case r.late:
		why = "its answer was late"
	case l.failed[r.id]:
		why = "it failed"
	case now.Sub(r.since) >= l.options.MaxHold-time.Second:
		why = "its longest hold is over"
	case !l.stopAsked.IsZero() && !now.Before(l.stopAsked.Add(l.options.StopTimeout)):
		why = "the process stopped too slow a handler"
	}
	if why == "" {
		w.broken("the hold of %s in %s ended without a reason", r.id, l.name)
	}
	w.holdsEnded++
}

// buried checks a record that the queue makes a dead letter.
func (w *world) buried(r *record) {
	w.deadLetters++
	if w.profile.healthy {
		w.broken("%s is a dead letter of the queue, and no handler failed", r.id)
	}
	if r.own*2 > w.service.most {
		w.broken("%s is a dead letter of the queue: weir spent %d of its %d receives", r.id, r.own, w.service.most)
	}
}

// mayRelease checks that a process may make a record visible.
func (w *world) mayRelease(r *record, l *life, now time.Time) {
	if r.holder != l {
		return
	}
	w.releases++
	for _, c := range r.calls {
		if c.life == l && c.ctx.Err() == nil {
			w.broken("%s releases %s while its handler has it", l.name, r.id)
		}
	}
	switch {
	case l.complete(r):
		w.broken("%s releases %s, which is handled", l.name, r.id)
	case l.refused[r.id]: // it was set aside
	case l.failed[r.id] && l.stopAsked.IsZero() && l.options.OnFailure.MaxAttempts == 0:
		w.broken("%s releases %s, which failed, and does not wait", l.name, r.id)
	case l.failed[r.id]:
	case l.stopAsked.IsZero():
		w.broken("%s releases %s without a reason", l.name, r.id)
	case !now.Before(l.stopAsked.Add(l.options.StopTimeout)): // there was no time to handle it
	case w.service.most > 0 && r.count*2 > w.service.most:
		w.broken("%s releases %s, which has spent %d of %d receives", l.name, r.id, r.count, w.service.most)
	default:
		r.own++
	}
}

// mayAcknowledge checks that a process has done the record that it acknowledges.
func (w *world) mayAcknowledge(r *record, l *life) {
	for _, sub := range l.subs(r) {
		if !l.settled(part{r, sub}) {
			w.broken("%s acknowledges %s, whose part %d is neither done nor dropped", l.name, r.id, sub)
			return
		}
	}
}

// acknowledged notes an acknowledgement whose answer has arrived.
func (l *life) acknowledged(handle string) {
	r, _ := l.service.find(handle)
	if r == nil {
		return
	}
	l.acks++
	for _, sub := range l.subs(r) {
		delete(l.done, part{r, sub}) // if it comes again, it is handled again
	}
}

// arrived checks the memory of a process after an answer.
func (l *life) arrived(got []*record) {
	for _, r := range got {
		l.held[r] = true
	}
	var bytes int64
	waiting := 0
	for r := range l.held {
		running := slices.ContainsFunc(r.calls, func(c *call) bool { return c.life == l })
		if !running && (r.holder != l || l.complete(r)) {
			delete(l.held, r)
			continue
		}
		if !l.complete(r) {
			bytes += int64(len(r.data))
		}
		if !running && !l.failed[r.id] && !l.complete(r) {
			waiting++
		}
	}
	l.mostHeld = max(l.mostHeld, bytes)
	if limit := l.options.MaxBytes; limit > 0 && bytes > limit {
		l.broken("%s holds %d MiB, MaxBytes is %d MiB", l.name, bytes>>20, limit>>20)
	}
	l.mostWaiting = max(l.mostWaiting, waiting)
	l.mostInFlight = max(l.mostInFlight, l.consumer.Counts().InFlight)
	if most := 20*l.options.Concurrency + 100; waiting > most {
		l.broken("%s has fetched %d records that wait, with %d handlers", l.name, waiting, l.options.Concurrency)
	}
	// 64 calls with ten acknowledgements each may be in flight.
	if most := 26*l.options.Concurrency + 500 + 640; l.mostInFlight > most {
		l.broken("%s has %d records in flight, with %d handlers", l.name, l.mostInFlight, l.options.Concurrency)
	}
}

// begin notes the begin of a handler call.
func (l *life) begin(ctx context.Context, records []queue.Record) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &call{life: l, ctx: ctx, began: time.Now()}
	if l.crashed {
		return c
	}
	for i := range records {
		r := l.service.records[records[i].ID]
		p := part{r, records[i].Sub}
		c.parts = append(c.parts, p)
		if l.done[p] {
			l.broken("%s handles %s again after it succeeded", l.name, records[i].Key())
		}
		if l.drops(p) || l.refuses(p) {
			l.broken("%s handles %s, which its filter does not pass", l.name, records[i].Key())
		}
		if l.running[p] {
			l.broken("%s handles %s twice at the same time", l.name, records[i].Key())
		}
		l.running[p] = true
		if key := records[i].PartitionKey; l.options.OrderByKey && key != "" {
			if l.keys[key]++; l.keys[key] > 1 {
				l.broken("%s handles two records of the key %s at the same time", l.name, key)
			}
		}
		if !slices.Contains(r.calls, c) {
			r.calls = append(r.calls, c)
		}
		l.calls[p]++
		w := l.world
		if w.handled[p] {
			w.again++
		}
	}
	l.inCalls++
	if l.inCalls > l.options.Concurrency {
		l.broken("%s has %d handler calls, Concurrency is %d", l.name, l.inCalls, l.options.Concurrency)
	}
	return c
}

// end notes the end of a handler call. failed has the parts that failed.
func (l *life) end(c *call, failed map[part]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.crashed {
		for _, p := range c.parts {
			p.record.calls = slices.DeleteFunc(p.record.calls, func(o *call) bool { return o == c })
		}
		return
	}
	l.inCalls--
	for _, p := range c.parts {
		r := p.record
		delete(l.running, p)
		r.calls = slices.DeleteFunc(r.calls, func(o *call) bool { return o == c })
		if key := l.keyOf(p); l.options.OrderByKey && key != "" {
			l.keys[key]--
		}
		if failed[p] {
			l.failed[r.id] = true
			continue
		}
		l.successes++
		l.done[p] = true
		l.world.handled[p] = true
	}
	if c.ctx.Err() == nil {
		return
	}
	cause := context.Cause(c.ctx)
	stopping := !l.stopAsked.IsZero() && !time.Now().Before(l.stopAsked.Add(l.options.StopTimeout))
	switch {
	case errors.Is(cause, queue.ErrHoldLost):
		l.world.contextsEnded++
	case errors.Is(cause, weir.ErrStopping) && stopping:
	default:
		l.broken("the context of a handler in %s ended with %v", l.name, cause)
	}
}

// keyOf returns the partition key of a part as the process sees it.
func (l *life) keyOf(p part) string {
	if p.sub > 0 {
		return partKey(p.record.id, p.sub)
	}
	return p.record.key
}

// stored checks a dead letter that has become durable, and notes that its record is done.
func (l *life) stored(p part, attempts int) {
	l.letters++
	if l.crashed {
		return
	}
	if !l.failed[p.record.id] {
		l.broken("%s stores a dead letter of %s, which never failed there", l.name, p.record.id)
	}
	if l.dropped[p] {
		l.broken("%s stores a dead letter of %s, which its filter dropped", l.name, p.record.id)
	}
	l.done[p] = true
	l.world.handled[p] = true
}

// ended checks the result of Run.
func (l *life) ended(err error, took time.Duration) {
	n := l.consumer.Counts()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.crashed {
		return
	}
	slack := 2*time.Second + time.Millisecond
	if l.disturbed.After(l.stopAsked) {
		slack += time.Minute // it was frozen
	}
	if took > l.options.StopTimeout+slack {
		l.broken("%s stopped after %v, StopTimeout is %v", l.name, took, l.options.StopTimeout)
	}
	abandoned := errors.Is(err, weir.ErrAbandoned)
	unacked := errors.Is(err, queue.ErrNotAcknowledged)
	switch {
	case err == nil:
	case abandoned && took < l.options.StopTimeout, unacked && !l.profile.faults && n.HoldsLost == 0, !abandoned && !unacked:
		l.broken("%s stopped with %v", l.name, err)
	}
	if !abandoned && n.Handled != l.successes {
		l.broken("%s counts %d handled records, and the handler succeeded with %d", l.name, n.Handled, l.successes)
	}
	if err == nil && took < l.options.StopTimeout && n.Filtered != l.droppings {
		l.broken("%s counts %d dropped records, and the filter dropped %d", l.name, n.Filtered, l.droppings)
	}
	if n.InFlight != 0 || n.Handling != 0 || n.Bytes != 0 {
		l.broken("%s has ended, and counts %d records in flight, %d calls and %d bytes", l.name, n.InFlight, n.Handling, n.Bytes)
	}
}

// finish checks that nothing is lost when the queue should be empty.
func (w *world) finish() {
	w.service.settle(time.Now())
	if len(w.service.live) > 0 {
		r := w.service.live[0]
		holder := "no process"
		if r.holder != nil {
			holder = r.holder.name
		}
		w.broken("%d records are not handled in the end, such as %s, which %s has", len(w.service.live), r.id, holder)
	}
	for _, r := range w.service.records {
		if r.dead && !w.fates[r.id].fails() && w.profile.healthy {
			w.broken("%s is a dead letter", r.id)
		}
	}
}
