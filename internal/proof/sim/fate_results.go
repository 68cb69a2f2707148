package sim

import (
	"errors"
	"time"

	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/shard"
)

// ofEmit contains the faults of a call with results.
var ofEmit = []Fault{HandlerSlow, HandlerFails, HandlerPanics, CrashInHandler, HandlerStops, ResultsLost}

// admitEmission checks results. It decides how long storing them takes and how the call ends.
func (w *world) admitEmission(c *call, e *emission) {
	l, d, r := c.life, w.dice(c, ""), &e.results
	l.hindered.handles[c.about] = w.now()
	of := w.books.shardAt(c.about, r.Term.Epoch)
	ids, wrong := w.windows.check(of, r)
	if wrong != "" {
		w.breaks("%s: %s", l.who, wrong)
		return
	}
	e.judge = &judge.Batch{Worker: l.who, Shard: of, Epoch: r.Term.Epoch, IDs: ids, End: r.End, Unordered: w.windows.payload != nil, Amid: w.amid(), Alive: func() bool { return !l.dead.Load() && c.ctx.Err() == nil }}
	e.judge.Repeats = w.windows.repeats(of, r.Term.From, ids)
	w.judge.Begin(e.judge, w.wall())

	took := d.often(0, 300*time.Millisecond)
	before, after := w.crashes(c)
	f := Fault("")
	w.countsDeaf()
	if c.deaf {
		if w.strikes(HandlerIgnores, c.id(HandlerIgnores)) {
			f = HandlerIgnores
		}
	} else {
		f = w.pick(c, &d, ofEmit...)
	}
	v := verdict{}
	switch f {
	case HandlerSlow, HandlerIgnores:
		took = d.span(time.Second, longestHandler)
		w.judge.Fault(l.who, w.wall().Add(took))
	case HandlerFails, HandlerPanics, HandlerStops:
		v.kind = f
	}
	what := string(f)
	if what == "" && len(ids) > 0 {
		what = ids[0].String() + " … " + ids[len(ids)-1].String()
	}
	if r.End {
		what += " END"
	}
	w.note(l, c.op, c.about, c.n, what)
	w.after(took, func() {
		switch {
		case before:
			w.crash(l, string(CrashWaits))
		case f == CrashInHandler:
			w.crash(l, string(f))
		case after || f == ResultsLost:
			err := w.keepResults(c, e)
			if after {
				w.crash(l, string(CrashWaits))
				return
			}
			if err == nil {
				err = errSink
				w.judge.Unheard(e.judge)
			}
			w.answer(c, reply{err: err})
		case v.kind != "":
			w.answer(c, reply{value: v})
		default:
			if err := w.keepResults(c, e); err != nil {
				w.answer(c, reply{err: err})
				return
			}
			w.answer(c, reply{value: v})
		}
	})
}

var errFenced = errors.New("sim: another owner was here")

// keepResults stores results. If there is a sink, it stores the position too. If the worker has
// crashed or has abandoned the call, it stores nothing.
func (w *world) keepResults(c *call, e *emission) error {
	r := &e.results
	if c.life.dead.Load() || c.gone.Load() {
		return errSink
	}
	if s := w.sink; s != nil {
		switch at := s.at[c.about]; {
		case s.epochs[c.about] > r.Term.Epoch:
			return errFenced
		case at.IsEnd(), at.Compare(r.UpTo) >= 0 && at.Compare(r.From) > 0 && !r.End:
			return nil // the result is already stored
		case !at.IsZero() && at.Compare(r.From) < 0 && !w.loosely():
			w.breaks("%s moves the sink from %s on, which has %s up to %s only", e.judge.Worker, r.From, c.about, at)
			return errSink
		case at.Compare(r.From) > 0: // an earlier owner stored a part after this owner had queried the position
			return errFenced
		}
		s.at[c.about], s.epochs[c.about] = r.UpTo, r.Term.Epoch
		if r.End {
			s.at[c.about] = shard.End
		}
		for _, id := range e.judge.IDs {
			if s.has[id] && !s.torn[c.about] {
				w.breaks("%s puts a result with %s into the sink, which has one", e.judge.Worker, id)
			}
			s.has[id], s.effects = true, append(s.effects, id)
			delete(s.lost, id)
		}
		w.keepsStrays(c.life, c.about, e)
	}
	w.judge.Done(e.judge, len(e.judge.IDs), w.wall())
	return nil
}

// emitted tells the judge the outcome of a call with results, just before the call returns.
func (w *world) emitted(c *call, e *emission, r reply) {
	v, _ := r.value.(verdict)
	c.life.hindered.handles[c.about] = w.now()
	switch {
	case c.gone.Load() || r.err != nil:
	case v.kind == HandlerStops:
		c.life.stopping = true
	case v.kind != "":
	case c.ctx.Err() != nil: // the term has ended
		w.judge.Unheard(e.judge)
	default:
		w.judge.Acked(e.judge, len(e.judge.IDs))
	}
	w.judge.Ended(e.judge)
}
