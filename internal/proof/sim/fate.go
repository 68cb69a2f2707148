package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
)

var (
	errStore = errors.New("sim: the store failed")
	errSink  = errors.New("sim: the sink failed")
)

// pick chooses the fault of a call, or returns "". A call has at most one fault from these kinds.
func (w *world) pick(c *call, d *dice, kinds ...Fault) Fault {
	if w.calm.Load() {
		return ""
	}
	often := 1.0
	releases := false
	if b, ok := c.body.(*beatCall); ok {
		releases = slices.ContainsFunc(b.report.Progress, func(p lease.Progress) bool { return p.Release })
	}
	if c.op == "apply" || c.op == "lead" || releases { // these calls are rare, and each of them matters
		often = 8
	}
	all := w.oddsOf(c.op, kinds)
	for i := range all {
		o := &all[i]
		o.due += often * o.chance
		if d.chance(often*o.chance) && w.strikes(o.fault, c.id(o.fault)) {
			return o.fault
		}
	}
	return ""
}

// odds contains the probability of a fault for a kind of call.
type odds struct {
	fault  Fault
	chance float64
	due    float64 // expected number of faults
}

// oddsOf returns the odds of those kinds that the profile contains. It caches them by operation and
// number of kinds.
func (w *world) oddsOf(op string, kinds []Fault) []odds {
	key := oddsKey{op, len(kinds)}
	known, ok := w.odds[key]
	if !ok {
		for _, f := range kinds {
			if p := w.profile.Rates[f]; p > 0 {
				known = append(known, odds{fault: f, chance: p})
			}
		}
		w.odds[key] = known
	}
	return known
}

type oddsKey struct {
	op    string
	kinds int
}

// admitStore decides the fate of a call to the store: whether and when the call takes effect, when
// it is answered, and with what answer.
func (w *world) admitStore(c *call) {
	l, d := c.life, w.dice(c, "")
	there := d.often(time.Millisecond, 25*time.Millisecond)
	back := time.Duration(0)
	if d.chance(.3) {
		back = d.often(time.Millisecond, 25*time.Millisecond)
	}
	if b, ok := c.body.(*beatCall); ok {
		w.beats++
		w.gives(l, b.report)
	}
	if _, ok := c.body.(leaveCall); ok { // a worker that leaves has returned everything
		l.trusted, l.goodbye = trusted{}, true
	}
	now := w.now()
	if l.paused > now { // the worker was paused just before it sent the call
		there += time.Duration(l.paused - now)
		w.keepsFromStore(c, there) // even if all pauses end earlier
		w.listens(c)
	}
	leads := c.op == "view" || c.op == "apply" || c.op == "lead" && !l.older // the previous version resigns by Lead
	if l.cutOff > now || w.outage > now || leads && l.leads > now {
		w.judge.Fault(l.who, w.wall())
		w.keepsFromStore(c, w.settings.failover/2)
		w.listens(c)
		if d.chance(.5) {
			w.after(there, func() { w.answer(c, reply{err: errStore}) })
		}
		return // or the call hangs until its caller abandons it
	}
	kinds := ofStore
	if c.op == "view" {
		kinds = ofView
	}
	if a, ok := c.body.(applyCall); ok {
		c.pins = maps.Clone(l.pins)
		if len(a.actions) > 1 {
			kinds = ofApply
		}
	}
	f := w.pick(c, &d, kinds...)
	w.note(l, c.op, c.about, c.n, string(f))
	if a, ok := c.body.(applyCall); ok && w.history.all {
		for _, act := range a.actions {
			w.note(l, "  wants", "", 0, act.String())
		}
	}
	if f != "" && f != TornView && f != TornApply && f != ApplyBreaks {
		w.judge.Fault(l.who, w.wall())
	}
	if f != "" && f != TornView && f != TornApply && f != StoreTwice {
		w.keepsFromStore(c, w.settings.failover/2)
	}
	if b, ok := c.body.(*beatCall); ok {
		w.trials(l, b.report.Session, b.report.Progress)
	}
	if f == "" && c.op == "beat" && l.lastWord > 0 {
		w.listens(c)
		w.lastWord(c, there, d.span(w.settings.failover/5, w.settings.failover*9/20))
		return
	}
	if f == "" {
		if b, ok := c.body.(*beatCall); ok {
			b.plain = true
		}
		if back == 0 {
			w.after(there, func() { w.answer(c, w.effect(c)) })
			return
		}
		var r reply
		w.unseen(there, func() { r = w.effect(c) })
		w.after(there+back, func() { w.answerBack(c, r) })
		return
	}
	w.listens(c)
	w.strikesStore(c, d, f, there, back)
}

// listens ends a heartbeat that has waited as long as its worker would wait. Most heartbeats are
// answered long before that, so only heartbeats with a fault are watched.
func (w *world) listens(c *call) {
	b, ok := c.body.(*beatCall)
	if !ok || b.watched {
		return
	}
	b.watched = true
	at, _ := c.ctx.Deadline()
	w.calendar.add(int64(at.Sub(w.began)), func() {
		if !c.over {
			c.gone.Store(true)
			c.answer(reply{err: context.DeadlineExceeded})
			w.stirred = true
		}
	})
}

// The faults that can happen to every call to the store, to View, and to Apply.
var (
	ofStore = []Fault{StoreFails, StorePanics, AnswerLost, StoreSilent, StoreSlow, StoreTwice, CrashBefore, CrashAfter}
	ofView  = append(slices.Clone(ofStore), TornView)
	ofApply = append(slices.Clone(ofStore), TornApply, ApplyBreaks)
)

// answerStore schedules the answer to a call to the store.
func (w *world) answerStore(c *call, r reply, back time.Duration) {
	if back == 0 {
		w.answer(c, r)
		return
	}
	w.after(back, func() { w.answerBack(c, r) })
}

// answerBack delivers an answer. If the connection was cut in the meantime, it delivers an error.
func (w *world) answerBack(c *call, r reply) {
	if c.life.cutOff > w.now() {
		r = reply{err: errStore}
	}
	w.answer(c, r)
}

// lastWord cuts a worker off from the store as soon as its heartbeat has taken effect. The answer
// to the heartbeat still arrives, but late. If a worker measured the lease validity from the
// arrival of the answer, it would use its leases for longer than other workers wait.
func (w *world) lastWord(c *call, there, back time.Duration) {
	l := c.life
	span := l.lastWord
	l.lastWord = 0
	// A leader whose leases are no longer valid can lead again only after this answer.
	w.keepsFromStore(c, there+back)
	w.after(there, func() {
		r := w.effect(c)
		if w.stage < settling { // the heartbeat of a paused worker may arrive later
			l.cutOff = max(l.cutOff, w.now()+int64(span))
			w.faults(l.who, span)
		}
		w.after(back, func() { w.answer(c, r) })
	})
}

// strikesStore applies a fault to a call to the store. there and back are the times for the two
// directions.
func (w *world) strikesStore(c *call, d dice, f Fault, there, back time.Duration) {
	l := c.life
	effect := func() reply { return w.effect(c) }
	answer := func(r reply) { w.answerStore(c, r, back) }
	switch f {
	case StoreFails:
		w.after(there, func() { w.answer(c, reply{err: errStore}) })
	case StorePanics:
		w.after(there, func() { w.answer(c, reply{err: errPanics}) })
	case AnswerLost:
		w.after(there, func() { effect(); answer(reply{err: errStore}) })
	case StoreSilent:
		if d.chance(.6) {
			w.after(there+d.span(0, w.settings.scaled(15*time.Second)), func() { effect() })
		}
	case StoreSlow:
		there += d.span(200*time.Millisecond, w.settings.scaled(8*time.Second))
		if d.chance(.5) {
			back += d.span(200*time.Millisecond, w.settings.scaled(8*time.Second))
		}
		w.after(there, func() { answer(effect()) })
	case StoreTwice:
		w.after(there, func() { answer(effect()) })
		w.after(there+d.often(time.Millisecond, w.settings.scaled(12*time.Second)), func() { effect() })
	case CrashBefore:
		w.after(there, func() { w.crash(l, string(f)) })
	case CrashAfter:
		w.after(there, func() { effect(); w.crash(l, string(f)) })
	case TornView:
		w.tornView(c, there, d.span(time.Millisecond, 400*time.Millisecond), answer)
	case TornApply, ApplyBreaks:
		w.tornApply(c, there, d, f, answer)
	}
}

// effect applies a call to the store. A report that was in flight arrives even if its worker has
// crashed.
func (w *world) effect(c *call) (r reply) {
	ctx := context.Background()
	switch b := c.body.(type) {
	case *beatCall:
		o, err := w.store.Heartbeat(ctx, w.app, b.report)
		if r.err = err; b.plain {
			b.orders = o
		} else {
			r.value = o
		}
		if err == nil {
			w.noteSession(c.life, &b.report)
			if c.life.of.life != c.life {
				w.books.ghosts[b.report.Session] = true
			}
			c.life.hindered.beat = w.now()
			w.resigns(c.life, &b.report, &o)
		}
		if len(b.report.Progress) > 0 {
			others := w.notTheirs(b.report)
			w.look(true)
			w.untouched(others)
		}
	case viewCall:
		v, err := w.store.View(ctx, w.app, b.since)
		r = reply{v, err}
		w.leader = v.Leader.Session
	case applyCall:
		did, err := w.store.Apply(ctx, w.app, b.actions)
		r = reply{did, err}
		for i, a := range b.actions {
			if did[i] {
				w.note(c.life, "·", a.Key.Shard, 0, a.String())
				switch a.Kind {
				case lease.Create:
					w.pins(c.pins, &b.actions[i].Lease)
				case lease.EndSession:
					w.mayEnd(a.Session)
					w.countsAsDead(a.Session)
				case lease.Move:
					w.moves(a.Key)
				}
			}
		}
		w.look(true)
		if w.sink != nil {
			clear(w.sink.moved)
		}
	case leadCall:
		won, err := w.store.Lead(ctx, w.app, b.session, b.term)
		r = reply{won, err}
		if b.session == "" {
			c.life.hindered.resigned = w.now() + int64(2*w.settings.failover)
		}
		if won {
			w.leader = b.session
			// A delayed call made a dead worker the leader. The other workers must detect that.
			if c.life.dead.Load() {
				w.duties.leaderless = w.now()
			}
		}
	case leaveCall:
		r.err = w.store.Leave(ctx, w.app, b.report)
		w.look(true)
	}
	w.noteOf(c, " has effect", "")
	return r
}

// resigns notes that a life has resigned as leader with this heartbeat or an earlier one.
func (w *world) resigns(l *life, said *lease.Report, o *lease.Orders) {
	if said.Resigns == 0 {
		return
	}
	l.hindered.resigned = w.now() + int64(2*w.settings.failover)
	if w.leader == said.Session && o.Leader.Session == "" {
		w.leader = ""
	}
}

// tornView reads the leases first and the workers later, like a store without snapshots.
func (w *world) tornView(c *call, there, later time.Duration, answer func(reply)) {
	w.after(there, func() {
		first := w.effect(c)
		w.after(later, func() {
			second, err := w.store.View(context.Background(), w.app, "")
			v, ok := first.value.(lease.View)
			if ok && err == nil {
				v.Workers, v.Leader, v.Paused, v.PauseNotes = second.Workers, second.Leader, second.Paused, second.PauseNotes
			}
			answer(reply{v, first.err})
		})
	})
}

// tornApply applies actions in two parts, or only the first part.
func (w *world) tornApply(c *call, there time.Duration, d dice, f Fault, answer func(reply)) {
	all := c.body.(applyCall).actions
	n := 1 + d.below(len(all)-1)
	part := func(actions []lease.Action) reply {
		return w.effect(&call{life: c.life, op: c.op, about: c.about, n: c.n, body: applyCall{actions}, pins: c.pins})
	}
	pause := d.span(time.Millisecond, 400*time.Millisecond)
	w.after(there, func() {
		first := part(all[:n])
		if f == ApplyBreaks {
			answer(reply{err: errStore})
			return
		}
		w.after(pause, func() {
			second := part(all[n:])
			a, _ := first.value.([]bool)
			b, _ := second.value.([]bool)
			answer(reply{append(append([]bool{}, a...), b...), second.err})
		})
	})
}

// also decides whether one more fault happens to a call, independently of the call's other faults.
func (w *world) also(c *call, d *dice, f Fault) bool {
	p := w.profile.Rates[f]
	if p == 0 || w.calm.Load() {
		return false
	}
	w.due[f] += p
	return d.chance(p) && w.strikes(f, c.id(f))
}

// crashes decides whether a worker crashes while it waits for something other than the store. It
// can crash before the call takes effect, or right after.
func (w *world) crashes(c *call) (before, after bool) {
	d := w.dice(c, "crash")
	if !w.also(c, &d, CrashWaits) {
		return false, false
	}
	before = d.chance(.5)
	return before, !before
}
