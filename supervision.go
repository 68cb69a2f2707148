package weir

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// notes are what a shardLoop notes for the looks of the beat loop.
type notes struct {
	ended     mono.Time     // when the term's context was seen to have ended
	left      chan struct{} // not nil once the handler was left behind, closed when it returns
	stalls    int16         // terms of the shard in a row, before this one, that stalled
	forAll    bool          // the last read failed, as it would on every worker
	well      bool          // the term has brought something, or there was nothing to bring
	toldSlow  bool          // that the handler takes long was told
	toldFails bool          // that reading fails was told
	// The two below are used only by the goroutine that runs the loop. They are here so that a loop
	// stays small; see TestWhatAShardIsReadWithIsSmall.
	begun  bool
	absent uint8 // reads in a row that failed because the stream does not exist
}

// note changes what l notes.
func (l *shardLoop) note(f func(*notes)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.notes)
}

// snapshot is how the shard stands, for [supervise.Shard.Judge] and its like. well reports that the
// term has brought something, or that there was nothing to bring. It may be called at any time.
func (l *shardLoop) snapshot() (s supervise.Shard, well bool) {
	var r source.Status
	if from := l.pagesNow(); from != nil {
		r = from.Status()
	}
	beside := l.lookAtDispatch()
	l.mu.Lock()
	defer l.mu.Unlock()
	s = supervise.Shard{
		Handling: supervise.State(l.state), Since: l.since.Time(), Stalls: int(l.stalls),
		Ended: l.ended.Time(), Left: l.left != nil, ToldSlow: l.toldSlow,
		Reading: supervise.State(r.Doing.String()), Trying: r.Trying, ReadErr: r.Err, ForAll: l.forAll, ToldFails: l.toldFails,
	}
	if r.Err != nil {
		s.Throttled, s.Missing = streams.Throttled(r.Err), errors.As(r.Err, new(*types.ResourceNotFoundException))
	}
	if l.state == ShardGathering { // nothing of it can fail but reading
		s.Handling = ""
	}
	if l.failure != nil {
		s.Err, s.Failing, s.FailingAt = l.failure.err, l.failure.since.Time(), l.failure.at
	} else if l.state == "" {
		s.Err = cmp.Or(r.Err, r.Lacks)
	}
	if r.Lacks != nil {
		s.Lacks, s.LacksSince = r.Lacks, r.Since
	}
	if beside.state != "" {
		s.Parallel = true
		s.Handling, s.Since = supervise.State(beside.state), beside.since.Time()
		s.Failing, s.FailingAt = beside.failing.Time(), beside.at
		if s.Err = beside.err; s.Err == nil {
			s.Err = r.Err
		}
	}
	return s, l.well || l.state == "" && r.Doing == source.AtTip
}

// Troubles is what each beat does with the shards: it gives up those that make no progress, and
// returns what is not going well.
func (r *run) Troubles() []lease.Trouble {
	now := time.Now()
	suspect := supervise.SuspectAfter(r.opts.StallAfter)
	var (
		troubles []lease.Trouble
		acts     []func() // what is left to do without the lock
		changes  []supervise.Change
		evidence supervise.Evidence

		shortage   error // why a shard has waited for memory for long
		shortKey   lease.Key
		shortSince time.Time
	)
	r.mu.Lock()
	r.looked = now
	limits := r.limits(now)
	stalled := len(r.stalls) > 0
	r.mu.Unlock()
	r.looks = r.running(r.looks[:0])
	defer clear(r.looks)
	r.sampler.Look()
	for _, l := range r.looks {
		if l.in != r {
			continue
		}
		key := l.term.Lease.Key
		l.term.SetLoad(l.load(now))
		if l.term.Context().Err() != nil {
			l.note(func(n *notes) { n.ended = cmp.Or(n.ended, mono.Of(now)) })
		}
		s, well := l.snapshot()
		if well && stalled {
			r.forgetStalls(key)
			l.note(func(n *notes) { n.stalls = 0 })
		}
		if s.Handling == "" && s.Reading == supervise.AtTip && !l.isGathering() {
			l.acquit()
		}
		if c, some := s.Change(key, now, r.opts.Expired == FailExpired); some {
			l.note(func(n *notes) { n.toldFails = c.Err != nil })
			changes = append(changes, c)
		}
		if shortage == nil && s.LacksMemory(now) {
			shortage = s.Lacks
			shortKey, shortSince = key, s.LacksSince
		}
		evidence.Add(&s, now, suspect)
		r.sampler.See(key, &s)
		if what, since := s.Judge(now, limits); what != supervise.Sound {
			if act := r.act(l, s, what, since, now); act != nil {
				acts = append(acts, act)
			}
		}
		if t, some := s.Trouble(now, limits); some {
			t.Key = key
			troubles = append(troubles, t)
		}
	}
	if since, some := r.lineage.Fails(now, suspect); some { // it could begin no other shard, however well it reads these
		evidence.Reads = false
		evidence.AddInVain(since)
	}
	r.mu.Lock()
	maps.DeleteFunc(r.stalls, func(_ lease.Key, s supervise.Stalls) bool { return s.Counting(now, r.opts.StallAfter) == 0 })
	probe, n := r.isolation.Observe(now, evidence, r.opts.BeatInterval), r.isolation.Probes
	own, cutOff := r.isolation.Trouble(now)
	r.mu.Unlock()
	for _, act := range acts {
		act()
	}
	if len(changes) > 0 {
		r.tellReading(changes, now)
	}
	if shortage != nil && now.Sub(r.toldMemory) >= memoryAgain {
		r.toldMemory = now
		r.opts.Logger.Warn("a shard waits for memory: Options.MaxMemory has no room for its next records while handlers hold earlier ones",
			"stream", shortKey.Stream, "shard", shortKey.Shard, "for", now.Sub(shortSince).Round(time.Second),
			"max_memory", r.opts.MaxMemory, "err", shortage)
	}
	if probe {
		r.startProbe(n)
	}
	sortTroubles(troubles)
	troubles = r.holdsOf(r.looks).tell(r.givingUp.tell(troubles, now), now)
	if cutOff {
		return slices.Insert(troubles, 0, own)
	}
	return troubles
}

// memoryAgain is how often a log line says that shards wait for memory.
const memoryAgain = 10 * time.Minute

// forgetStalls forgets that a shard has stalled.
func (r *run) forgetStalls(key lease.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.stalls, key)
}

// endedAt is when the term's context was seen to have ended.
func (l *shardLoop) endedAt() mono.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// sortTroubles has the longest ones be first.
func sortTroubles(all []lease.Trouble) {
	slices.SortFunc(all, func(a, b lease.Trouble) int { return cmp.Or(cmp.Compare(b.For, a.For), a.Key.Compare(b.Key)) })
}

// stopGrace is how long after Options.StopTimeout a handler may ignore that its context has ended.
const stopGrace = 7 * time.Second

// limits is called with the consumer's lock.
func (r *run) limits(now time.Time) supervise.Limits {
	limits := supervise.Limits{Stall: r.opts.StallAfter, Handler: r.opts.HandlerTimeout, Return: r.opts.HandoffTimeout}
	if !r.stopping.IsZero() && now.Sub(r.stopping) >= r.opts.StopTimeout {
		limits.Return = min(limits.Return, stopGrace)
	}
	return limits
}

// act notes the verdict on a shard that is not sound, and returns a function that does the rest
// without the lock; nil if the shard is no longer read. (A look at ten thousand sound shards
// allocates nothing; this does.)
func (r *run) act(l *shardLoop, s supervise.Shard, what supervise.Verdict, since, now time.Time) func() {
	key := l.term.Lease.Key
	e := Stalled{
		Stream: key.Stream, Shard: key.Shard, Epoch: l.term.Lease.Epoch,
		Stage: ShardState(cmp.Or(s.Handling, s.Reading)), Since: since, Err: s.Err,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, here := r.loops[l]; !here { // it has ended since this look began
		return nil
	}
	switch what {
	case supervise.Slow:
		l.note(func(n *notes) { n.toldSlow = true })
		return func() {
			l.repeated().Warn("a handler has been at work for long; only Options.HandlerTimeout ends it", "since", since)
		}
	case supervise.Stalled:
		r.stalls[key] = supervise.Stalls{Count: s.Stalls + 1, Last: now}
		l.note(func(n *notes) { n.ended = mono.Of(now) })
		return func() { r.giveUp(l, e) }
	default: // it hangs
		l.note(func(n *notes) { n.left = make(chan struct{}) })
		r.abandoned[key] = l
		e.Abandoned = true
		return func() { r.abandon(l, e) }
	}
}

func (r *run) giveUp(l *shardLoop, e Stalled) {
	l.repeated().Error("a shard makes no progress; its lease is given up",
		"stage", e.Stage, "since", e.Since, "seq", l.term.At(), "err", e.Err)
	l.term.GiveUp(ErrStalled)
	r.sampler.Mark(l.term.Lease.Key, history.Stalled)
	r.counted.stalls.Add(1)
	if f := r.tell.Stalled; f != nil {
		f(e)
	}
}

func (r *run) abandon(l *shardLoop, e Stalled) {
	l.log().Error("a handler goes on although its context has ended; its lease is given up without it, and only the epoch fences what it writes",
		"since", e.Since)
	l.term.Abandon()
	r.sampler.Mark(l.term.Lease.Key, history.Stalled)
	// the next owner's subscription need not take this one's place
	if from := l.pagesNow(); from != nil {
		from.Stop()
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
	l.log().Warn("a handler did not finish within Options.StopTimeout; its batch will be handled again by whoever reads the shard next",
		"since", began)
	l.in.counted.stalls.Add(1)
	if f := l.in.tell.Stalled; f != nil {
		f(Stalled{Stream: key.Stream, Shard: key.Shard, Epoch: l.term.Lease.Epoch, Stage: ShardHandling, Since: began, Err: ErrStopping})
	}
}

// await holds back the reader of a shard that has stalled in this process: for a while, and until
// no abandoned handler is at the shard any more. It reports whether to begin.
func (r *run) await(l *shardLoop) bool {
	r.mu.Lock()
	before, stalls := r.abandoned[l.term.Lease.Key], r.stalls[l.term.Lease.Key].Counting(time.Now(), r.opts.StallAfter)
	r.mu.Unlock()
	if stalls == 0 && before == nil {
		return true
	}
	l.note(func(n *notes) { n.stalls = int16(min(stalls, math.MaxInt16)) })
	l.enter(ShardBlocked, 0, nil)
	defer l.enter("", 0, nil)
	if retry.Wait(l.term.Reading(), retry.Pause(r.opts.RetryMin, min(r.opts.RetryMax, r.opts.StallAfter/2), max(stalls, 1))) != nil {
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
			names = append(names, fmt.Sprintf("%s (told %v ago)", key, mono.Since(l.endedAt()).Round(time.Second)))
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
