package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// notes are a shardLoop's notes for the looks of the beat loop.
type notes struct {
	ended     mono.Time     // when the term's context was seen to have ended
	left      chan struct{} // not nil once the handler was left behind, closed when it returns
	stalls    int16         // terms of the shard in a row, before this one, that stalled
	forAll    bool          // the last read failed, as it would on every worker
	well      bool          // the term has brought something, or there was nothing to bring
	toldSlow  bool          // a slow handler was reported
	toldFails bool          // failing reads were reported
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

// noteHandled notes that something was handled by now, or that there was nothing.
func (l *shardLoop) noteHandled(bytes int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.well = true
	if bytes > 0 {
		l.rate.Add(bytes, now)
	}
}

// load is the load of the shard.
func (l *shardLoop) load(now time.Time) lease.Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return lease.LoadOf(l.rate.Now(now))
}

// snapshot is how the shard stands, for [supervise.Shard.Judge] and its like. well reports that the
// term has brought something, or that there was nothing to bring. It may be called at any time.
func (l *shardLoop) snapshot() (s supervise.Shard, well bool) {
	var r source.Status
	if from := l.pagesNow(); from != nil {
		r = from.Status()
	}
	beside := l.lookAtKeys()
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
	if beside.State != "" {
		s.Parallel = true
		s.Handling, s.Since = beside.State, beside.Since.Time()
		s.Failing, s.FailingAt = beside.Failing.Time(), beside.At
		if s.Err = beside.Err; s.Err == nil {
			s.Err = r.Err
		}
	}
	return s, l.well || l.state == "" && r.Doing == source.AtTip
}

// Troubles looks at the shards before each beat: it gives up those that make no progress, and
// returns the troubles of all.
func (r *run) Troubles() []lease.Trouble {
	look := supervise.Look{Now: time.Now(), Stays: r.opts.Expired == FailExpired}
	var stalled bool
	look.Limits, stalled = r.standing.look(look.Now, &r.opts)
	var acts []func() // actions after the look at all shards
	r.looks = r.running(r.looks[:0])
	defer clear(r.looks)
	r.sampler.Look()
	for _, l := range r.looks {
		if act := r.lookAt(l, &look, stalled); act != nil {
			acts = append(acts, act)
		}
	}
	// It could begin no other shard, however well it reads these.
	if since, fails := r.lineage.Fails(look.Now, supervise.SuspectAfter(look.Limits.Stall)); fails {
		look.Evidence.Reads = false
		look.Evidence.AddInVain(since)
	}
	own, cutOff := r.suspect(&look)
	for _, act := range acts {
		act()
	}
	if len(look.Changes) > 0 {
		r.tellReading(look.Changes, look.Now)
	}
	r.tellShortage(look.Shortage, look.Now)
	sortTroubles(look.Troubles)
	troubles := r.holdsOf(r.looks).tell(r.gaveUp.Tell(look.Troubles, look.Now), look.Now)
	if cutOff {
		return slices.Insert(troubles, 0, own)
	}
	return troubles
}

// lookAt looks at one shard. It returns what is left to do about it, nil if nothing is.
func (r *run) lookAt(l *shardLoop, look *supervise.Look, stalled bool) func() {
	key := l.term.Lease.Key
	l.term.SetLoad(l.load(look.Now))
	if l.term.Context().Err() != nil {
		l.note(func(n *notes) { n.ended = cmp.Or(n.ended, mono.Of(look.Now)) })
	}
	s, well := l.snapshot()
	if well && stalled {
		r.standing.forgetStalls(key)
		l.note(func(n *notes) { n.stalls = 0 })
	}
	if s.Handling == "" && s.Reading == supervise.AtTip && !l.isGathering() {
		l.acquit()
	}
	f := look.At(key, &s)
	if f.Changed {
		l.note(func(n *notes) { n.toldFails = f.Fails })
	}
	r.sampler.See(key, &s)
	if f.Verdict == supervise.Sound {
		return nil
	}
	return r.act(l, Stalled{
		Stream: key.Stream, Shard: key.Shard, Epoch: l.term.Lease.Epoch,
		Stage: ShardState(cmp.Or(s.Handling, s.Reading)), Since: f.Since, Err: s.Err,
	}, f.Verdict, supervise.Stalls{Count: s.Stalls + 1, Last: look.Now})
}

// memoryAgain is how often a log line says that shards wait for memory.
const memoryAgain = 10 * time.Minute

// tellShortage logs that shards wait for memory, if one does.
func (r *run) tellShortage(of supervise.Shortage, now time.Time) {
	if of.Err == nil || now.Sub(r.toldMemory) < memoryAgain {
		return
	}
	r.toldMemory = now
	r.opts.Logger.Warn("a shard waits for memory: Options.MaxMemory has no room for its next records while handlers hold earlier ones",
		"stream", of.Key.Stream, "shard", of.Key.Shard, "for", now.Sub(of.Since).Round(time.Second),
		"max_memory", r.opts.MaxMemory, "err", of.Err)
}

const (
	// probeTimeout bounds a probe, which is a few calls for each of probeStreams streams at most.
	probeTimeout = 5 * time.Second
	probeStreams = 3
)

// probe tries to read from some of the streams and notes the results.
func (r *run) probe(ctx context.Context, n int) {
	call, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	names := r.streams.Names()
	var err error
	for i := range min(probeStreams, len(names)) {
		if err = streams.Probe(call, r.client, r.caller, r.streams.Stream(names[(n+i)%len(names)]), n); err == nil {
			break
		}
	}
	if err == nil {
		err = r.lineage.Probe(call)
	}
	if ctx.Err() != nil {
		return
	}
	switch before, after := r.standing.probed(err); {
	case before == nil && after != nil:
		r.opts.Logger.Error("this worker cannot read from any stream; it requests no further shards until it can", "err", after)
	case before != nil && after == nil:
		r.opts.Logger.Info("this worker can read again")
	}
}

// tellReading reports shards whose reads fail, or succeed again.
func (r *run) tellReading(changes []supervise.Change, now time.Time) {
	sum := supervise.Summarize(changes)
	for _, c := range sum.Named {
		if c.Err != nil {
			r.opts.Logger.Warn("reading a shard fails repeatedly; weir keeps trying", "stream", c.Key.Stream, "shard", c.Key.Shard,
				"for", now.Sub(c.Since).Round(time.Second), "err", c.Err)
		} else {
			r.opts.Logger.Info("reading the shard works again", "stream", c.Key.Stream, "shard", c.Key.Shard)
		}
	}
	for _, m := range sum.More {
		if m.Fail {
			r.opts.Logger.Warn("reading other shards of the stream fails too; weir keeps trying", "stream", m.Stream, "shards", m.Shards)
		} else {
			r.opts.Logger.Info("reading other shards of the stream works again", "stream", m.Stream, "shards", m.Shards)
		}
	}
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

// act notes the verdict on a shard that is not sound, and returns a function that does the rest
// without the lock; nil if the shard is no longer read. (A look at ten thousand sound shards
// allocates nothing; this does.)
func (r *run) act(l *shardLoop, e Stalled, what supervise.Verdict, stalls supervise.Stalls) func() {
	key := l.term.Lease.Key
	r.standing.mu.Lock()
	defer r.standing.mu.Unlock()
	if _, here := r.standing.loops[l]; !here { // it has ended since this look began
		return nil
	}
	switch what {
	case supervise.Slow:
		l.note(func(n *notes) { n.toldSlow = true })
		return func() {
			l.repeated().Warn("a handler has been running for a long time; only Options.HandlerTimeout ends it", "since", e.Since)
		}
	case supervise.Stalled:
		r.standing.stalls[key] = stalls
		l.note(func(n *notes) { n.ended = mono.Of(stalls.Last) })
		return func() { r.giveUp(l, e) }
	default: // it hangs
		l.note(func(n *notes) { n.left = make(chan struct{}) })
		r.standing.abandoned[key] = l
		e.Abandoned = true
		return func() { r.abandon(l, e) }
	}
}

func (r *run) giveUp(l *shardLoop, e Stalled) {
	l.repeated().Error("a shard makes no progress; this worker releases its lease",
		"stage", e.Stage, "since", e.Since, "seq", l.term.At(), "err", e.Err)
	l.term.GiveUp(ErrStalled)
	r.sampler.Mark(l.term.Lease.Key, history.Stalled)
	r.counted.stalls.Add(1)
	emit(r, r.opts.Events.Stalled, e)
}

func (r *run) abandon(l *shardLoop, e Stalled) {
	l.log().Error("a handler still runs although its context has ended; its lease is released without waiting for it, and only the epoch fences its writes",
		"since", e.Since)
	l.term.Abandon()
	r.sampler.Mark(l.term.Lease.Key, history.Stalled)
	// the next owner's subscription need not take this one's place
	if from := l.pagesNow(); from != nil {
		from.Stop()
	}
	r.counted.stalls.Add(1)
	emit(r, r.opts.Events.Stalled, e)
}

// cutShort reports a batch that was not handled within Options.StopTimeout.
func (l *shardLoop) cutShort(began time.Time, cause error) {
	if !errors.Is(cause, ErrStopping) {
		return
	}
	key := l.term.Lease.Key
	l.log().Warn("a handler did not finish within Options.StopTimeout; the next owner of the shard will handle the batch again",
		"since", began)
	l.in.counted.stalls.Add(1)
	emit(l.in, l.in.opts.Events.Stalled, Stalled{Stream: key.Stream, Shard: key.Shard, Epoch: l.term.Lease.Epoch, Stage: ShardHandling, Since: began, Err: ErrStopping})
}

// await holds back the reader of a shard that has stalled in this process: for a while, and until
// no abandoned handler is at the shard any more. It reports whether to begin.
func (r *run) await(l *shardLoop) bool {
	stalls, before := r.standing.before(l.term.Lease.Key, time.Now(), r.opts.StallAfter)
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
		one, names := r.standing.anyAbandoned()
		if one == nil {
			return nil
		}
		if late {
			return fmt.Errorf("%w: %s", ErrAbandoned, strings.Join(names, ", "))
		}
		select {
		case <-one.left:
		case <-timer.C:
			late = true
		}
	}
}
