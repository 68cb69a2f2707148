package sim

import (
	"context"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// operator moves the checkpoints of the application like "weir group reset". It reads the leases,
// lists the stream, confirms the plan and applies it. It repeats all this for leases that changed
// in the meantime. The plan is computed by the command's own code (package change). The judge
// learns the results as they happen.
type operator struct {
	w       *world
	st      *stream
	wish    change.Wish
	dice    dice
	stopped bool // all workers are stopped for the reset; otherwise they lose their leases
	moving  bool // some shards may have been moved, but not all
	failed  int  // failed calls to the store; their number is limited
	// moved contains the leases that the current call moves.
	moved map[lease.Key]bool
}

// resets starts an operator, unless one is running.
func (w *world) resets(id string, d *dice) {
	if w.operator != nil || !w.strikes(Resets, id) {
		return
	}
	o := &operator{w: w, st: w.streams[0], dice: *d, moved: map[lease.Key]bool{}}
	o.stopped = o.dice.chance(.5)
	w.operator = o
	if !o.stopped {
		w.note(nil, "FAULT", "", 0, id+", while workers run")
		o.look()
		return
	}
	w.note(nil, "FAULT", "", 0, id+", all workers stop")
	for _, wk := range w.workers {
		if wk.life != nil && !wk.life.stopping {
			wk.life.stopping = true
			wk.life.cancel()
			w.stirred = true
		}
	}
	o.await()
}

// await waits until no worker runs and all dead workers count as dead.
func (o *operator) await() {
	if slices.ContainsFunc(o.w.workers, func(wk *worker) bool { return wk.life != nil }) {
		o.w.after(500*time.Millisecond, o.await)
		return
	}
	o.w.after(o.w.settings.failover*21/20, o.look)
}

// closed reports whether an operator keeps workers from starting.
func (w *world) closed() bool { return w.operator != nil && w.operator.stopped }

// startSoon starts a stopped worker after d. If an operator prevents that, it waits longer.
func (w *world) startSoon(of *worker, d time.Duration) {
	w.after(d, func() {
		switch {
		case of.life != nil || w.stage >= stopping:
		case w.closed():
			w.startSoon(of, time.Second)
		default:
			w.start(of)
		}
	})
}

// look begins a run of the command. It reads the leases first and the stream later, as the command
// does.
func (o *operator) look() {
	w := o.w
	view, err := w.store.View(context.Background(), w.app, "")
	if err != nil {
		w.breaks("the store cannot be looked at: %v", err)
		return
	}
	view.Leases = slices.DeleteFunc(view.Leases, func(l lease.Lease) bool { return l.Stream != o.st.name })
	if len(view.Leases) == 0 { // the command reports this and ends
		w.operator = nil
		return
	}
	w.after(o.dice.often(10*time.Millisecond, 3*time.Second), func() {
		listed := change.Stream{Name: o.st.name, Now: w.clock().Truncate(time.Second), Born: o.st.now.Born.UnixMilli()}
		if listed.Shards, err = listing(o.st); err != nil {
			w.breaks("the stream cannot be listed: %v", err)
			return
		}
		if o.wish.To.IsZero() {
			o.choose(view.Leases, listed.Now)
		}
		steps, err := change.Reset(listed, view.Leases, o.wish)
		if err != nil && w.profile.Rates[Trim] > 0 && !slices.ContainsFunc(listed.Shards, func(s shard.Shard) bool { return s.ID == o.wish.Shard }) {
			w.note(nil, "reset", o.wish.Shard, 0, "its shard has left the stream")
			w.operator = nil
			return
		}
		if err != nil {
			w.breaks("a reset to %s is refused: %v", o.wish.To, err)
			return
		}
		if w.sink != nil && slices.ContainsFunc(steps, func(s change.Step) bool { return w.sink.at[about(s.Stream, s.Shard)].IsZero() }) {
			w.note(nil, "reset", "", 0, "the sink has nothing of a shard, so the checkpoint counts there")
			w.operator = nil
			return
		}
		o.unchanged(steps, view.Leases)
		w.after(o.dice.often(10*time.Millisecond, 10*time.Second), func() { o.carryOut(steps) })
	})
}

// listing returns the shards of a stream as the service lists them.
func listing(st *stream) (all []shard.Shard, err error) {
	for sh := range st.shards() {
		s := shard.Shard{ID: sh.ID, Closed: !sh.Closed.IsZero()}
		if s.Range, err = shard.ParseHashRange(sh.HashKeys()); err != nil {
			return nil, err
		}
		for _, p := range sh.Parents {
			s.Parents = append(s.Parents, p.ID)
		}
		all = append(all, s)
	}
	return all, nil
}

// choose chooses where reading resumes: in the whole stream, or in a shard and its descendants.
// Often this is exactly the current position.
func (o *operator) choose(leases []lease.Lease, now time.Time) {
	d := &o.dice
	one := &leases[d.below(len(leases))]
	switch n := d.below(100); {
	case n < 25:
		o.wish.To = shard.Oldest
	case n < 45:
		o.wish.To = shard.At(now.Add(-d.span(0, 2*time.Minute)))
	case n < 50:
		o.wish.To = shard.Latest
	case n < 65, one.Position.IsEnd():
		o.wish = change.Wish{Shard: one.Shard, To: o.place(one)}
	default:
		o.wish = change.Wish{Shard: one.Shard, To: one.Position}
	}
	o.w.note(nil, "reset", o.wish.Shard, 0, "to "+o.wish.To.String())
}

// place returns a position before or after a record of a shard, or before a record inside an
// aggregate.
func (o *operator) place(l *lease.Lease) shard.Position {
	kept := o.w.books.kept[nameOf(o.st.now, l.Shard)]
	if len(kept) == 0 {
		return shard.Oldest
	}
	c := kept[o.dice.below(len(kept))]
	done := uint32(o.dice.below(len(c.ids) + 1))
	if int(done) == len(c.ids) {
		done = shard.Whole
	}
	at, err := shard.Part(c.number, done)
	if err != nil {
		o.w.breaks("%v", err)
	}
	return at
}

// unchanged tells the judge about leases that the reset leaves unchanged. They were already at the
// destination and did not change after the operator read them. As after a move, all records after
// the destination must be handled.
func (o *operator) unchanged(steps []change.Step, seen leases) {
	for i := range steps {
		s := &steps[i]
		if l := seen.of(s.Key); l != nil && len(s.Actions) == 0 && s.From == s.To && o.w.books.last[s.Key].Epoch == l.Epoch {
			o.wanted(s, l.Epoch)
		}
	}
}

// carryOut moves the leases, either all at once or in two calls with other calls in between. The
// command uses several calls for many leases, and some stores need several calls for any number of
// leases.
func (o *operator) carryOut(steps []change.Step) {
	o.moving = true
	part := len(steps)
	if part > 1 && o.dice.chance(.4) {
		part = 1 + o.dice.below(part-1)
	}
	left := o.apply(steps[:part])
	o.w.after(o.dice.often(time.Millisecond, 2*time.Second), func() {
		if left += o.apply(steps[part:]); left == 0 {
			o.w.note(nil, "reset", "", 0, "done")
			o.w.operator = nil
			o.w.duties.late = o.w.now()
			return
		}
		o.w.note(nil, "reset", "", left, "changed meanwhile")
		o.w.after(o.dice.often(100*time.Millisecond, 5*time.Second), o.look)
	})
}

// apply applies steps. It returns the number of steps that are left.
func (o *operator) apply(steps []change.Step) (left int) {
	w := o.w
	var actions []lease.Action
	var whose []*change.Step
	for i := range steps {
		if len(steps[i].Actions) > 0 {
			actions, whose = append(actions, steps[i].Actions...), append(whose, &steps[i])
		}
	}
	if len(actions) == 0 {
		return 0
	}
	if !w.calm.Load() && o.failed < 3 && o.dice.chance(.05) {
		o.failed++
		return len(actions)
	}
	did, err := w.store.Apply(context.Background(), w.app, actions)
	if err != nil {
		w.breaks("the store refuses what a reset comes to: %v", err)
		return 0
	}
	for i, s := range whose {
		if !did[i] {
			left++
			continue
		}
		w.note(nil, "·", s.Shard, 0, actions[i].String())
		epoch := actions[i].Epoch + 1
		if actions[i].Kind == lease.Create {
			epoch = actions[i].Lease.Epoch
		}
		o.moved[s.Key] = true
		o.wanted(s, epoch)
	}
	w.look(true)
	clear(o.moved)
	return left
}

// wanted tells the judge which record of a shard is the first that must be handled again. The
// records from that record on must be handled even if they were handled under an earlier epoch.
func (o *operator) wanted(s *change.Step, epoch uint64) {
	b := &o.w.books
	i := slices.IndexFunc(o.st.now.Shards, func(sh *model.Shard) bool { return sh.ID == s.Shard })
	sh := o.st.now.Shards[i]
	kept := b.kept[sh.Name]
	var skipped, wanted []judge.ID
	reached := false // reading starts at the first record of that time
	b.passed[sh.Name] = len(kept)
	for n, c := range kept {
		before := len(c.ids)
		switch to := s.To; to.Kind() {
		case shard.First:
			before = 0
		case shard.Time:
			// A record may have an earlier time than the record before it.
			if reached = reached || !sh.Records[n].Arrival.Before(to.Time()); reached {
				before = 0
			}
		case shard.Sequence:
			switch order := shard.CompareSequence(c.number, to.SequenceNumber()); {
			case order > 0:
				before = 0
			case order == 0:
				before = min(before, int(to.Done()))
			}
		}
		skipped, wanted = append(skipped, c.ids[:before]...), append(wanted, c.ids[before:]...)
		if before < len(c.ids) {
			b.passed[sh.Name] = min(b.passed[sh.Name], n)
		}
	}
	if o.w.killers != nil {
		for _, id := range wanted { // as often as before
			delete(o.w.killers.killed, id)
		}
	}
	if o.w.sink != nil { // the sink decides where reading starts, not the checkpoint
		for _, id := range skipped {
			o.w.judge.MayPass(id)
		}
		o.w.judge.Doubted(sh.Name)
		o.w.faults(judge.Worker{}, 0)
		return
	}
	o.w.judge.Moved(sh.Name, epoch, skipped, wanted, o.w.wall())
	for _, id := range wanted {
		if b.expired[id] || b.repeats[id] {
			o.w.judge.Exempt(id)
		}
	}
}

// amid reports whether an operator's reset may have reached an ancestor of a shard, but not the
// shard itself.
func (w *world) amid() bool { return w.operator != nil && w.operator.moving }
