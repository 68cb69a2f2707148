package weir

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
)

// watched are what a shardLoop notes for whoever watches over it.
type watched struct {
	// when a source that does not tell by itself was asked for a page; zero while it is not
	asked   time.Time
	failing time.Time     // the first of the handler's failures in a row
	same    bool          // the last read failed, as it would on every worker
	well    bool          // the term has brought something, or there was nothing to bring
	told    bool          // that the handler takes long
	tries   int           // terms of the shard in a row that stalled before this one
	ended   time.Time     // when the term's context was seen to have ended
	left    chan struct{} // not nil once the reader was abandoned, closed when it returns
}

// notes are what is watched, as a shardLoop keeps it.
type notes struct {
	asked, ended     mono.Time
	left             chan struct{}
	tries            int32
	same, well, told bool
	fails            bool // it was told that reading fails
}

func (n *notes) watched() watched {
	return watched{
		asked: n.asked.Time(), ended: n.ended.Time(), left: n.left, tries: int(n.tries),
		same: n.same, well: n.well, told: n.told,
	}
}

const (
	// troubleAfter is how long something may go wrong before the worker reports it with its beats.
	troubleAfter = 10 * time.Second
	// stopGrace is how long after Options.StopTimeout a handler may ignore that its context has
	// ended.
	stopGrace = 7 * time.Second
	// mostPatience is how often Options.StallAfter doubles for a shard that stalls again and again.
	mostPatience = 5
)

// memory is of the stalls of a shard in this process.
type memory struct {
	stalls int // in a row
	last   time.Time
}

// tries are the stalls that still count: another worker may have had the shard since, and no
// trouble with it.
func (m memory) tries(now time.Time, stall time.Duration) int {
	if now.Sub(m.last) > 2*patience(stall, m.stalls) {
		return 0
	}
	return m.stalls
}

// patience is how long reading may be in vain for a shard that has stalled before.
func patience(stall time.Duration, tries int) time.Duration { return stall << min(tries, mostPatience) }

// vitals is how a shard stands at a moment, for judging.
type vitals struct {
	watched
	state   ShardState // of handling; "" when there is nothing to handle
	since   time.Time  // when state began
	err     error      // of the handler, or else of reading
	reading ShardState
	readErr error     // of reading
	trying  time.Time // since when reading has tried in vain; zero when it has not
}

// bounds are the options that matter here; leave is how long a reader may take to return.
type bounds struct{ stall, handler, leave time.Duration }

type verdict uint8

const (
	sound verdict = iota
	stalls
	hangs // it ignores that its context has ended
)

// judge decides whether the lease may be kept. since is when what is wrong began.
func (v vitals) judge(now time.Time, b bounds) (what verdict, since time.Time) {
	patience := patience(b.stall, v.tries)
	switch {
	case v.left != nil:
		return sound, time.Time{}
	case !v.ended.IsZero():
		if now.Sub(v.ended) >= b.leave {
			return hangs, v.ended
		}
	case v.state == ShardHandling:
		if b.handler > 0 && now.Sub(v.since) >= b.handler {
			return stalls, v.since
		}
	case v.state == ShardBlocked, v.state == ShardOpening:
		if now.Sub(v.since) >= patience {
			return stalls, v.since
		}
	case v.state == "" && !v.trying.IsZero() && !(v.same && v.err != nil):
		// While the handler was at work nobody waited for reading.
		since := later(v.trying, v.since)
		if now.Sub(since) >= patience {
			return stalls, since
		}
	}
	return sound, time.Time{}
}

// trouble is what the worker reports of the shard, if anything.
func (v vitals) trouble(now time.Time, b bounds) (t lease.Trouble, some bool) {
	say := func(state ShardState, since time.Time, least time.Duration) {
		if d := now.Sub(since); d >= least {
			t, some = lease.Trouble{State: string(state), For: d.Truncate(time.Second)}, true
			if v.err != nil {
				t.Why = v.err.Error()
			}
		}
	}
	switch {
	case v.left != nil:
		say(ShardAbandoned, v.ended, 0)
	case !v.failing.IsZero():
		say(v.state, v.failing, troubleAfter)
	case v.state == ShardHandling:
		say(v.state, v.since, b.stall)
	case v.state == ShardBlocked, v.state == ShardOpening, v.state == ShardClosing:
		say(v.state, v.since, troubleAfter)
	case v.state == "" && !v.trying.IsZero() && (v.err != nil || v.reading == ShardAwaitingMemory):
		say(v.reading, later(v.trying, v.since), troubleAfter)
	}
	return t, some
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// vitals may be called at any time.
func (l *shardLoop) vitals() vitals {
	var r source.Status
	if from, ok := l.pagesNow().(interface{ Status() source.Status }); ok {
		r = from.Status()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.asked.Time()
	if r.Doing == source.AtTip { // nothing is tried, but the idle interval waited for
		asked = time.Time{}
	}
	v := vitals{watched: l.watched(), state: l.state, since: l.since.Time(), reading: ShardState(r.Doing.String()), trying: later(r.Trying, asked)}
	if l.failure != nil {
		v.err, v.failing = l.failure.err, l.failure.since.Time()
	}
	if v.readErr = r.Err; v.err == nil && v.state == "" {
		v.err = r.Err
	}
	v.well = v.well || v.state == "" && r.Doing == source.AtTip
	return v
}

// look is what each beat does with the shards: it gives up those that make no progress, and returns
// what is not going well.
func (r *run) look() []lease.Trouble {
	now := time.Now()
	var troubles []lease.Trouble
	var gone []func()
	var changes []readingChange
	var signs [inVain + 1]bool
	since := now
	r.mu.Lock()
	r.looked = now
	for l := range r.loops {
		if l.in != r {
			continue
		}
		key := l.term.Lease.Key
		l.term.SetLoad(l.load(now))
		if l.term.Context().Err() != nil {
			l.note(func(n *notes) { n.ended = cmp.Or(n.ended, mono.Of(now)) })
		}
		b, v := r.bounds(now), l.vitals()
		if v.well && len(r.stalls) > 0 {
			delete(r.stalls, key)
			l.note(func(n *notes) { n.tries = 0 })
		}
		if c, some := v.change(key, now, l.readingFails(), r.opts.Expired == FailExpired); some {
			l.note(func(n *notes) { n.fails = c.err != nil })
			changes = append(changes, c)
		}
		sign := v.sign(now, r.suspectAfter())
		if signs[sign] = true; sign == inVain && v.trying.Before(since) {
			since = v.trying
		}
		if what, since := v.judge(now, b); what != sound {
			gone = append(gone, r.acts(l, v, what, since, now))
		} else if v.state == ShardHandling && !v.told && v.ended.IsZero() && now.Sub(v.since) >= b.stall {
			gone = append(gone, r.tells(l, v.since))
		}
		if t, some := v.trouble(now, b); some {
			t.Key = key
			troubles = append(troubles, t)
		}
	}
	if began, some := r.lineage.inVain(now, r.suspectAfter()); some { // it could begin no other shard, however well it reads these
		signs, since = [inVain + 1]bool{inVain: true}, earlier(since, began)
	}
	probe, n := r.isolation.see(now, signs, since, r.opts.BeatInterval), r.isolation.probes
	own, cutOff := r.isolation.trouble(now)
	r.mu.Unlock()
	for _, f := range gone {
		f()
	}
	if len(changes) > 0 {
		r.tellReading(changes, now)
	}
	if probe {
		r.startProbe(n)
	}
	slices.SortFunc(troubles, func(a, b lease.Trouble) int { return cmp.Or(cmp.Compare(b.For, a.For), a.Key.Compare(b.Key)) })
	if cutOff {
		return slices.Insert(troubles, 0, own)
	}
	return troubles
}

// acts notes what becomes of a shard that is not sound, and returns what is left to do about it
// without the lock. (A look at ten thousand sound shards makes nothing on the heap; this does.)
func (r *run) acts(l *shardLoop, v vitals, what verdict, since, now time.Time) func() {
	key := l.term.Lease.Key
	e := Stalled{Stream: key.Stream, Shard: key.Shard, Epoch: l.term.Lease.Epoch, Stage: cmp.Or(v.state, v.reading), Since: since, Err: v.err}
	if what == stalls {
		r.stalls[key] = memory{v.tries + 1, now}
		l.note(func(n *notes) { n.ended = mono.Of(now) })
		return func() { r.giveUp(l, e) }
	}
	l.note(func(n *notes) { n.left = make(chan struct{}) })
	r.abandoned[key] = l
	e.Abandoned = true
	return func() { r.abandon(l, e) }
}

// tells has it said, once, that a handler takes long.
func (r *run) tells(l *shardLoop, since time.Time) func() {
	l.note(func(n *notes) { n.told = true })
	return func() {
		r.opts.Logger.Warn("a handler has been at work for long", "stream", l.term.Lease.Stream, "shard", l.term.Lease.Shard, "since", since)
	}
}

// bounds is called with the consumer's lock.
func (r *run) bounds(now time.Time) bounds {
	b := bounds{r.opts.StallAfter, r.opts.HandlerTimeout, r.opts.HandoffTimeout}
	if !r.stopping.IsZero() && now.Sub(r.stopping) >= r.opts.StopTimeout {
		b.leave = min(b.leave, stopGrace)
	}
	return b
}

// readingFails reports whether it was told that reading fails.
func (l *shardLoop) readingFails() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fails
}

// note changes what l notes.
func (l *shardLoop) note(f func(*notes)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.notes)
}

func (r *run) giveUp(l *shardLoop, e Stalled) {
	r.opts.Logger.Error("a shard makes no progress; its lease is given up", "stream", e.Stream, "shard", e.Shard, "epoch", e.Epoch,
		"stage", e.Stage, "since", e.Since, "at", l.term.At(), "err", e.Err)
	l.term.GiveUp(ErrStalled)
	r.counted.stalls.Add(1)
	if f := r.tell.Stalled; f != nil {
		f(e)
	}
}

func (r *run) abandon(l *shardLoop, e Stalled) {
	r.opts.Logger.Error("a handler goes on although its context has ended; its lease is given up without it, and only the epoch fences what it writes",
		"stream", e.Stream, "shard", e.Shard, "epoch", e.Epoch, "since", e.Since)
	l.term.Abandon()
	// the next owner's subscription need not take this one's place
	if s, ok := l.pagesNow().(interface{ Stop() }); ok {
		s.Stop()
	}
	r.counted.stalls.Add(1)
	if f := r.tell.Stalled; f != nil {
		f(e)
	}
}

// cutShort tells of a batch that was not handled within Options.StopTimeout.
func (l *shardLoop) cutShort(began time.Time, cause error) {
	if !errors.Is(cause, ErrStopping) {
		return
	}
	key := l.term.Lease.Key
	l.in.opts.Logger.Warn("a handler did not finish within Options.StopTimeout; its batch will be handled again by whoever reads the shard next",
		"stream", key.Stream, "shard", key.Shard, "since", began)
	l.in.counted.stalls.Add(1)
	if f := l.in.tell.Stalled; f != nil {
		f(Stalled{Stream: key.Stream, Shard: key.Shard, Epoch: l.term.Lease.Epoch, Stage: ShardHandling, Since: began, Err: ErrStopping})
	}
}

// await holds back the reader of a shard that has stalled in this process: for a while, and until
// no abandoned handler is at the shard any more. It reports whether to begin.
func (r *run) await(l *shardLoop) bool {
	r.mu.Lock()
	before, tries := r.abandoned[l.term.Lease.Key], r.stalls[l.term.Lease.Key].tries(time.Now(), r.opts.StallAfter)
	r.mu.Unlock()
	if tries == 0 && before == nil {
		return true
	}
	l.note(func(n *notes) { n.tries = int32(tries) })
	l.enter(ShardBlocked, 0, nil)
	defer l.enter("", 0, nil)
	if retry.Wait(l.term.Reading(), retry.Pause(r.opts.RetryMin, min(r.opts.RetryMax, r.opts.StallAfter/2), max(tries, 1))) != nil {
		return false
	}
	if before != nil {
		select {
		case <-before.left:
		case <-l.term.Reading().Done():
			return false
		}
	}
	return true
}

// outlast waits for abandoned handlers until the deadline, and returns an error that names those
// that have not returned.
func (r *run) outlast(deadline time.Time) error {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for late := false; ; {
		r.mu.Lock()
		var one *shardLoop
		var names []string
		for key, l := range r.abandoned {
			one = l
			names = append(names, fmt.Sprintf("%s (told %v ago)", key, mono.Since(l.ended).Round(time.Second)))
		}
		r.mu.Unlock()
		if one == nil {
			return nil
		}
		if late {
			slices.Sort(names)
			return fmt.Errorf("%w: %s", ErrAbandoned, strings.Join(names, ", "))
		}
		select {
		case <-one.left:
		case <-timer.C:
			late = true
		}
	}
}
