package sim

import (
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
)

// leftover contains the records that a failed call of a handler left undone. They must be handled
// again before other records.
type leftover struct {
	epoch     uint64
	ids       []judge.ID // all records of the call
	low, high int        // bounds on the number of done records
	attempt   int        // number of the failed attempt at the first remaining record
	end, idle bool
}

// habitOf decides what a handler does before it succeeds or fails. It returns nil if the handler
// does nothing.
func (w *world) habitOf(c *call, b *weir.Batch, ids []judge.ID) *habit {
	n := len(ids)
	if bad := w.badAt(ids); bad != nil {
		n = bad.index // records after the bad one are not done before it
	}
	if n == 0 {
		return nil
	}
	strikes := func(f Fault) bool {
		d := w.dice(c, string(f))
		return w.also(c, &d, f)
	}
	d := w.dice(c, "habit")
	v := habit{early: d.chance(.5), dice: dice{d.next()}}
	upTo := 1 + d.below(n)
	if d.chance(.3) {
		upTo = n
	}
	how, change := d.below(len(noters)), 1+d.below(len(changers)-1)
	if w.crosses.has(featRecordForm) {
		how %= 3 // noters that do not wait, and cannot fail when the record is done
	}
	if strikes(HandlerChanges) {
		v.change = change
	}
	if strikes(HandlerNotes) && w.sink.isSimple() { // with partitions, Done fails
		v.done, v.how = upTo, how
	}
	// With reused buffers, a record is valid only during the call.
	if strikes(HandlerLeaves) && !w.reuses && w.letters == nil && w.sink == nil {
		v.leaves = upTo
	}
	if strikes(HandlerConfuses) {
		v.confuses = true
	}
	if strikes(HandlerKeeps) && !w.reuses {
		v.keeps = true
	}
	if v.change == 0 && v.done == 0 && v.leaves == 0 && !v.confuses && !v.keeps {
		return nil
	}
	return &v
}

// ofHabits contains the faults of a handler that come after its habit.
var ofHabits = []Fault{HandlerSlow, HandlerFails, HandlerPanics, CrashInHandler, HandlerStops, HandlerCancels, HandlerExits}

// goesOn decides how a handler continues after its habit.
func (w *world) goesOn(c *call, h *handling) {
	l, d := c.life, w.dice(c, "goes on")
	if h.upTo > 0 && h.saved == nil {
		w.judge.Acked(h.judge, h.upTo)
	}
	f := w.pick(c, &d, ofHabits...)
	if f == "" && !w.calm.Load() && d.chance(.4) {
		f = []Fault{HandlerFails, HandlerPanics, HandlerCancels}[d.below(3)]
	}
	if h.saved != nil && f == "" { // a handler that returns the checkpoint's error fails
		f = HandlerFails
	}
	if f == "" && w.badAt(h.judge.IDs) != nil {
		f = HandlerFails
	}
	if f == HandlerExits && l.pulls {
		f = HandlerPanics
	}
	if w.crosses.has(featRecordForm) && h.done() > 0 && (f == HandlerFails || f == HandlerPanics || f == HandlerCancels) {
		f = "" // otherwise the failure would count for the next record, which the handler did not receive
	}
	bad := (*badly)(nil)
	if f == HandlerFails && w.crosses != nil {
		if bad = w.badAt(h.judge.IDs); bad == nil || d.chance(.5) {
			bad = w.failsSomewhere(&d, h.judge.IDs)
		}
	}
	w.note(l, "handle goes on", c.about, c.n, string(f)+bad.String())
	if before, after := w.crashes(c); before || after {
		w.crash(l, string(CrashWaits))
		return
	}
	took := d.often(0, time.Second)
	v := verdict{kind: f, bad: bad}
	if f == HandlerSlow {
		took, v.kind, v.bad = d.span(time.Second, longestHandler), "", w.badAt(h.judge.IDs)
		w.judge.Fault(l.who, w.wall().Add(took))
	}
	w.after(took, func() {
		if f == CrashInHandler {
			w.crash(l, string(f))
			return
		}
		w.answer(c, reply{value: v})
	})
}

// leaves notes which records a failed call leaves undone. named is the number of records before the
// record that the error names.
func (w *world) leaves(c *call, h *handling, named int) {
	left := &leftover{epoch: h.judge.Epoch, ids: h.judge.IDs, attempt: h.attempt, end: h.judge.End, idle: h.batch.Idle}
	if left.high = h.upTo; h.saved == nil {
		left.low = h.upTo
	}
	left.low = max(left.low, named, left.noted(c.life.noted))
	left.high = max(left.high, left.low)
	if left.low > 0 {
		left.attempt = 1 // at the new first record
	}
	if left.low < len(left.ids) || left.end || left.idle {
		c.life.left[c.about] = left
	}
}

// noted returns the number of records up to the last record that a goroutine marked as done after
// the call that started it.
func (left *leftover) noted(done map[judge.ID]uint64) int {
	for i, id := range slices.Backward(left.ids) {
		if done[id] == left.epoch {
			return i + 1
		}
	}
	return 0
}

// follows checks that a handler receives the records that the previous call left undone, starting
// with the first of them. It also checks the number of their attempts.
func (w *world) follows(c *call, h *handling) {
	l, b, ids := c.life, h.batch, h.judge.IDs
	left := l.left[c.about]
	delete(l.left, c.about)
	h.attempt = b.Attempt
	switch {
	case len(ids) == 0 && !b.End && !b.Idle:
		w.breaks("%s is handed an empty batch of %s that is not its end", l.who, b.Shard)
	case b.Attempt < 1 || (b.Attempt > 1) == b.FirstFailure.IsZero():
		w.breaks("%s is handed %s with attempt %d, which failed first at %v", l.who, b.Shard, b.Attempt, b.FirstFailure)
	case left == nil || left.epoch != b.Epoch:
		if b.Attempt > 1 {
			w.breaks("%s is handed %s with attempt %d, and no call has failed there", l.who, b.Shard, b.Attempt)
		}
	case b.Attempt > 1 && (b.Attempt != left.attempt+1 || !slices.Equal(ids, left.ids[left.low:])):
		w.breaks("%s is handed %d records of %s with attempt %d after attempt %d had failed with %d of %d done",
			l.who, len(ids), b.Shard, b.Attempt, left.attempt, left.low, len(left.ids))
	case b.Attempt == 1 && !h.judge.Stale && w.profile.Rates[Trim] == 0 && w.profile.Rates[Recreate] == 0:
		high := max(left.high, left.noted(l.noted))
		from := len(left.ids)
		if len(ids) > 0 && slices.Contains(left.ids, ids[0]) {
			from = slices.Index(left.ids, ids[0])
		}
		n := min(len(ids), len(left.ids)-from)
		if from < left.low || from > high || !slices.Equal(ids[:n], left.ids[from:from+n]) {
			w.breaks("%s is handed %s from the record %d of those that a call before had left with %d to %d done", l.who, b.Shard, from, left.low, high)
		}
	}
}

// admitLate lets a goroutine that a handler left behind continue at a random time.
func (w *world) admitLate(c *call, _ *late) {
	d := w.dice(c, "")
	w.after(d.often(time.Millisecond, 8*time.Second), func() { w.answer(c, reply{}) })
}

// notesLate notes the records that a goroutine of an earlier handler is about to mark as done. It
// returns false if the term has ended, because another owner may have done these records too.
func (w *world) notesLate(c *call, g *late) bool {
	if g.ctx.Err() != nil {
		return false
	}
	w.note(c.life, "late", c.about, c.n, "")
	w.judge.Noted(g.of, g.n, w.wall())
	c.life.noted[g.of.IDs[g.n-1]] = g.of.Epoch
	return true
}
