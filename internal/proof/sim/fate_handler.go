package sim

import (
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/lease"
)

// deaf decides whether a handler will ignore its context. The handler itself calls it.
func (w *world) deaf(l *life, b *weir.Batch) bool {
	p := w.profile.Rates[HandlerIgnores]
	if p == 0 || w.calm.Load() {
		return false
	}
	d := roll(w.seed, "deaf "+l.String()+about(b.Stream, b.Shard), b.Epoch, uint64(len(b.Records)), uint64(time.Since(w.began)))
	return d.chance(p)
}

// countsDeaf counts a call of a handler for the expected number of HandlerIgnores. The driver does
// the counting, because handlers decide concurrently.
func (w *world) countsDeaf() {
	if !w.calm.Load() {
		w.due[HandlerIgnores] += w.profile.Rates[HandlerIgnores]
	}
}

// ofHandler contains the faults of a handler. The last fault needs several records.
var ofHandler = []Fault{HandlerSlow, HandlerFails, HandlerPanics, CrashInHandler, HandlerStops, Checkpoints}

// admitHandling checks the batch of a handler. It decides how long the call takes and how it ends.
func (w *world) admitHandling(c *call, h *handling) {
	l, d := c.life, w.dice(c, "")
	l.hindered.handles[c.about] = w.now()
	if h.wrong != "" {
		w.breaks("%s: %s", l.who, h.wrong)
	}
	if h.habit != nil {
		w.goesOn(c, h)
		return
	}
	if h.upTo > 0 {
		f := Fault("")
		if h.saved == nil {
			w.judge.Acked(h.judge, h.upTo)
		} else if d.chance(.5) {
			f = HandlerFails
		}
		if d.chance(.3) {
			f = HandlerFails
		}
		bad := w.badAt(h.judge.IDs)
		w.note(l, "handle goes on", c.about, c.n, string(f)+bad.String())
		if before, after := w.crashes(c); before || after {
			w.crash(l, string(CrashWaits))
			return
		}
		w.after(d.often(0, time.Second), func() { w.answer(c, reply{value: verdict{kind: f, bad: bad}}) })
		return
	}
	b := h.batch
	shard := ""
	h.judge = &judge.Batch{Worker: l.who, Epoch: b.Epoch, End: b.End, Unsure: w.isLoop(), Alive: func() bool { return !l.dead.Load() && c.ctx.Err() == nil }}
	h.judge.Partition, h.judge.Partitions = b.Partition, w.partitionsOf(l)
	h.judge.IDs = make([]judge.ID, 0, len(b.Records))
	for _, r := range b.Records {
		id, ok := w.handledID(r)
		if !ok {
			w.breaks("%s is handed a record in %s that nobody put: %.60q", l.who, b.Shard, r.Data)
			return
		}
		if w.books.early[id] {
			w.breaks("%s is handed %s in %s, which was put before the application's start", l.who, id, b.Shard)
		}
		h.judge.IDs = append(h.judge.IDs, id)
		if wrong := w.misplaced(h, id, r.PartitionKey); wrong != "" {
			w.breaks("%s is handed %s in %s, %s", l.who, id, b.Shard, wrong)
		}
	}
	if w.isLoop() {
		b.Epoch = l.epochs[lease.Key{Stream: b.Stream, Shard: b.Shard}]
		h.judge.Epoch = b.Epoch
		h.judge.Alive = func() bool { return !l.dead.Load() && !c.gone.Load() && l.trusts(b, w.now()) }
	}
	leased := w.books.shardAt(about(b.Stream, b.Shard), b.Epoch)
	if len(h.judge.IDs) > 0 {
		shard = w.judge.Home(h.judge.IDs[0])
		st := w.streamNamed(b.Stream)
		h.judge.Stale = shard != leased && st != nil && st.anew > 0
	} else {
		shard = leased
	}
	h.judge.Shard, h.judge.Amid = shard, w.amid()
	w.judge.Begin(h.judge, w.wall())
	kills := w.hasInHand(l, h.hand(c.about), h.judge.IDs)
	if w.isFollowed() {
		w.follows(c, h)
	}
	if wrong := w.checkSize(b, w.settings.batch); wrong != "" {
		w.breaks("%s is handed a batch of %s that %s", l.who, b.Shard, wrong)
	}

	took := time.Duration(0)
	switch {
	case d.chance(.3) && !w.calm.Load():
		took = d.span(0, 3*time.Second)
	default:
		took = d.often(0, 30*time.Millisecond)
	}
	v := verdict{}
	w.countsDeaf()
	kinds := ofHandler[:len(ofHandler)-1]
	if len(b.Records) > 1 && h.tx == nil && (w.crosses == nil || w.crosses.has(featProgressed)) {
		kinds = ofHandler
	}
	f := Fault("")
	if c.deaf {
		f = HandlerIgnores
		if !w.strikes(f, c.id(f)) {
			f = ""
		}
	} else {
		f = w.pick(c, &d, kinds...)
	}
	switch f {
	case HandlerSlow, HandlerIgnores:
		took = d.span(time.Second, longestHandler)
		w.judge.Fault(l.who, w.wall().Add(took))
	case HandlerFails, HandlerPanics, HandlerStops:
		v.kind = f
		if f == HandlerFails && w.crosses != nil && len(h.judge.IDs) > 0 {
			v.bad = w.failsSomewhere(&d, h.judge.IDs)
		}
	case Checkpoints:
		v.checkpoint = 1 + d.below(len(b.Records)-1)
		if bad := w.badAt(h.judge.IDs); bad != nil && bad.index < v.checkpoint {
			v.checkpoint, v.bad = 0, bad
		}
	}
	if f == "" && !w.isLoop() {
		v.habit = w.habitOf(c, b, h.judge.IDs)
	}
	if f == "" || f == HandlerSlow || f == HandlerIgnores {
		v.bad = w.badAt(h.judge.IDs)
		if v.habit != nil && w.crosses != nil { // the habit ends with a failure
			v.bad = nil
		}
	}
	if kills {
		f, v = CrashInHandler, verdict{}
	}
	what := string(f)
	if what == "" && len(h.judge.IDs) > 0 {
		what = h.judge.IDs[0].String() + " … " + h.judge.IDs[len(h.judge.IDs)-1].String()
	}
	if b.End {
		what += " END"
	}
	what += v.bad.String()
	w.note(l, "handle", c.about, c.n, what)
	w.after(took, func() {
		if f == CrashInHandler {
			if kills {
				w.killsOneMore(h)
			}
			w.crash(l, string(f))
			return
		}
		w.answer(c, reply{value: v})
	})
}

// handled processes the result that a handler is about to return.
func (w *world) handled(c *call, h *handling, r *reply) {
	v := r.value.(verdict)
	n := len(h.judge.IDs)
	c.life.hindered.handles[c.about] = w.now()
	switch {
	case c.gone.Load():
	case v.checkpoint > 0:
		w.judge.Noted(h.judge, v.checkpoint, w.wall())
		w.takes(h, v.checkpoint)
		return // the handler continues
	case v.habit != nil:
		if v.habit.done > 0 {
			w.judge.Noted(h.judge, v.habit.done, w.wall())
			w.takes(h, v.habit.done)
		}
		return // the handler continues
	case v.bad != nil && c.life.pulls: // with Pull, weir ignores the record in the error
	case v.bad != nil:
		named := 0
		if v.bad.named() {
			named = v.bad.index
			if h.tx == nil {
				w.judge.Noted(h.judge, named, w.wall())
			}
			w.takes(h, named)
		}
		w.fails(h, v.bad)
		if w.isFollowed() {
			w.leaves(c, h, named)
		}
	case v.kind == HandlerStops, v.kind == HandlerExits:
		c.life.stopping = true
	case v.kind == "" && h.tx != nil:
		h.tx.effects = append(h.tx.effects, h)
	case v.kind == "":
		w.judge.Done(h.judge, n, w.wall())
		w.takes(h, n)
		w.noteFinished(c.life, h.judge.IDs)
		// Some handlers do not confirm the records now. A handler that pulls reports them as done
		// later. The body of a loop does not learn that its term has ended and another has begun,
		// so it may handle a record again.
		if !c.life.pulls && (!w.isLoop() || h.batch.Attempt == 1 && h.judge.Alive() && c.life.fromStore() < c.sent) {
			w.judge.Acked(h.judge, n)
		}
	case c.life.pulls: // the handler queries the sink again
	default:
		w.fails(h, nil)
		if w.judge.Span == 0 {
			w.leaves(c, h, 0)
		}
	}
	w.judge.Ended(h.judge)
	w.hasInHand(c.life, h.hand(c.about), nil)
}

// hand returns the key that distinguishes a call from concurrent calls for the same shard.
func (h *handling) hand(about string) hand {
	of := hand{about: about}
	if len(h.judge.IDs) > 0 {
		of.key = h.judge.IDs[0].Key
	}
	return of
}

// isFollowed reports whether each call of a handler is compared with the records that the previous
// call left. That is impossible if records are dead-lettered, delivered one by one, or handled in
// parallel.
func (w *world) isFollowed() bool {
	return w.letters == nil && w.judge.Span == 0 && !w.crosses.has(featRecordForm) && !w.isLoop() && !w.crosses.has(featSuspects)
}
