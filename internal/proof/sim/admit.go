package sim

import (
	"time"

	"github.com/weir-go/weir/internal/proof/sim/model"
)

// This file admits calls and decides about their answers.

// admit processes a call that has arrived at the gate.
func (w *world) admit(c *call) {
	l := c.life
	if c.op == "returned" {
		err, _ := c.body.(error)
		w.returned(l, err)
		return
	}
	if c.op == "strays" {
		w.breaks("%s handles records of %v, a stream that it does not read", l.who, c.body)
		return
	}
	if c.op == "overwritten" {
		w.breaks("records of %v are overwritten while a handler of %s has them", c.body, l.who)
		return
	}
	if body, ok := c.body.(closedCall); ok {
		w.producerClosed(body.m, body.err)
		return
	}
	switch body := c.body.(type) {
	case *transaction:
		w.sink.ledger.ends(w, body)
		return
	case failedCall:
		w.failsPartition(l, body)
		return
	}
	if l.dead.Load() {
		c.answer(reply{err: errDead})
		w.stirred = true
		return
	}
	c.n, c.sent = l.number(c), w.now()
	l.park(c)
	switch body := c.body.(type) {
	case *handling:
		w.admitHandling(c, body)
	case *late:
		w.admitLate(c, body)
	case *model.Call:
		if body.Op == "PutRecords" {
			w.admitPut(c, body)
			return
		}
		w.admitRead(c, body)
	case *events:
		w.admitEvent(c, body)
	case namesCall:
		w.admitNames(c)
	case hookCall:
		w.admitHook(c, body)
	case sinkCall:
		w.admitSink(c, body)
	case *rowsCall:
		w.admitRows(c, body)
	case frozenCall:
		w.admitFrozen(c)
	case lettersCall:
		w.admitLetters(c, body)
	case *emission:
		w.admitEmission(c, body)
	case strayCall:
		w.admitStray(c, body)
	default:
		w.admitStore(c)
	}
}

// answer answers a call. It does nothing if the worker has crashed. If the worker is paused, it
// postpones the answer. If the caller no longer waits, it only processes the end of the call.
func (w *world) answer(c *call, r reply) {
	l := c.life
	if l.dead.Load() {
		return
	}
	if l.paused > w.now() && !c.gone.Load() {
		w.postpone(c, r)
		return
	}
	if h, ok := c.body.(*handling); ok {
		changed := r // a copy made only here, so that other answers need no allocation
		w.handled(c, h, &changed)
		r = changed
	}
	if e, ok := c.body.(*emission); ok {
		w.emitted(c, e, r)
	}
	if g, ok := c.body.(*late); ok && !w.notesLate(c, g) {
		r = reply{err: errDead}
	}
	l.unpark(c)
	if c.gone.Load() {
		return
	}
	what := ""
	if r.err != nil {
		what = r.err.Error()
	}
	w.noteOf(c, " answered", what)
	if b, ok := c.body.(lettersCall); ok && r == (reply{}) {
		w.heardLetters(l, b.letters)
	}
	if b, ok := c.body.(*beatCall); ok {
		if r.err == nil {
			w.trusts(l, c.sent, &b.report, b.answered(r))
		}
		b.spent = b.plain && !b.watched
	}
	if repeatable(c.op) && r.err == nil {
		l.tries.answers++
	}
	w.noteRead(c, r)
	c.answer(r)
	w.stirred = true
}

// postpone answers a call when the pause of its worker is over. It checks this at least every 5 s,
// because the pause may be shortened in the meantime.
func (w *world) postpone(c *call, r reply) {
	w.listens(c)
	d := w.dice(c, "after the pause")
	w.after(min(time.Duration(c.life.paused-w.now()), 5*time.Second)+d.span(1, time.Millisecond), func() { w.answer(c, r) })
}
