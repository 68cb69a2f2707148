package run

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/internal/history/sampling"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// supervisor looks at the shards of a run before each heartbeat: it releases the leases of shards
// that make no progress, and finds out whether this worker can read at all. The heartbeat loop
// calls troubles. Probes and the sampler have their own goroutines.
type supervisor struct {
	run        *Run
	looks      []*shardrun.Loop  // scratch memory
	toldMemory time.Time         // when a log line last said that shards wait for memory
	sampler    *sampling.Sampler // nil if no history is kept

	probing  context.Context // of the probes
	endProbe context.CancelFunc
	probes   sync.WaitGroup
}

// start lets probes begin. stop ends them and waits for them.
func (s *supervisor) start(ctx context.Context) (stop func()) {
	s.probing, s.endProbe = context.WithCancel(ctx)
	return func() {
		s.endProbe()
		s.probes.Wait()
	}
}

// startSampling starts to store the history of the shards. The function end stops this and stores a
// last report. startSampling does nothing if the store cannot keep a history, or if
// Options.NoHistory is set.
func (s *supervisor) startSampling(ctx context.Context) (end func()) {
	r := s.run
	if r.NoHistory || !r.Store.KeepsHistory() {
		return func() {}
	}
	s.sampler = &sampling.Sampler{
		Store: r.Store, App: r.App, Worker: r.Worker, Shards: s.standings, Log: r.shared.Log,
		Took: r.standing.keep,
	}
	stop := s.sampler.Start(ctx)
	return func() { stop(time.Since(r.registry.StoreAnswered()) < r.Times.Failover) }
}

// standings returns the position, the lag and the load of each shard, for the sampler.
func (s *supervisor) standings(now time.Time) (all []sampling.Standing) {
	for _, l := range s.run.standing.running(nil) {
		of := l.Status()
		all = append(all, sampling.Standing{Key: l.Key(), At: of.At, Lag: of.Lags.Handled, Load: lease.LoadOf(l.Rate(now))})
	}
	return all
}

// troubles looks at all shards. It returns their troubles, the longest first, followed by recent
// dead letters and holds. If this worker is cut off, that trouble comes before all others.
func (s *supervisor) troubles() []lease.Trouble {
	r := s.run
	look := supervise.Look{Now: time.Now(), Stays: r.stays()}
	var stalled bool
	look.Limits, stalled = r.standing.look(look.Now, &r.Config)
	var acts []func() // actions after the look at all shards
	s.looks = r.standing.running(s.looks[:0])
	defer clear(s.looks)
	s.sampler.Look()
	for _, l := range s.looks {
		if act := s.lookAt(l, &look, stalled); act != nil {
			acts = append(acts, act)
		}
	}
	// A worker that cannot read the leases cannot begin another shard, even if it can read its
	// current shards.
	if since, fails := r.shared.Lineage.Fails(look.Now, supervise.SuspectAfter(look.Limits.Stall)); fails {
		look.Evidence.Reads = false
		look.Evidence.AddInVain(since)
	}
	own, cutOff, probe := r.standing.suspect(&look, &r.Config)
	if probe >= 0 {
		s.probes.Go(func() { s.probe(probe) })
	}
	for _, act := range acts {
		act()
	}
	if len(look.Changes) > 0 {
		s.tellReading(look.Changes, look.Now)
	}
	s.tellShortage(look.Shortage, look.Now)
	sortTroubles(look.Troubles)
	troubles := r.shared.Recent.Tell(look.Troubles, look.Now)
	if r.Pulls {
		troubles = holdsOf(s.looks).tell(troubles, look.Now)
	}
	if cutOff {
		return slices.Insert(troubles, 0, own)
	}
	return troubles
}

// lookAt looks at one shard. It returns the action that follows, or nil.
func (s *supervisor) lookAt(l *shardrun.Loop, look *supervise.Look, stalled bool) func() {
	key := l.Key()
	l.SeeEnd(look.Now)
	of, well := l.Snapshot()
	if well && stalled {
		s.run.standing.forgetStalls(key)
		l.SetStalls(0)
	}
	if of.Handling == health.NoReason && of.Reading == health.AtTip {
		l.Acquit()
	}
	f := look.At(key, &of)
	if f.Changed {
		l.ToldFails(f.Fails)
	}
	s.sampler.See(key, &of)
	if f.Verdict == supervise.Sound {
		return nil
	}
	e := event.Stalled{Reason: cmp.Or(of.Handling, of.Reading), Since: f.Since, Err: of.Err}
	return s.act(l, e, f.Verdict, supervise.Stalls{Count: of.Stalls + 1, Last: look.Now})
}

// act notes the verdict on a shard that is not sound, and returns the action that follows. It
// returns nil if the shard's loop has ended. Only act allocates: a look at ten thousand sound
// shards allocates nothing.
func (s *supervisor) act(l *shardrun.Loop, e event.Stalled, what supervise.Verdict, stalls supervise.Stalls) func() {
	if !s.run.standing.note(l, what, stalls) {
		return nil
	}
	switch what {
	case supervise.Slow:
		return func() {
			l.Repeated().Warn("a handler has been running for a long time; only Options.Timing.HandlerTimeout ends it", "since", e.Since)
		}
	case supervise.Stalled:
		return func() { s.giveUp(l, e) }
	default: // it hangs
		e.Abandoned = true
		return func() { s.abandon(l, e) }
	}
}

// giveUp releases the lease of a shard that makes no progress.
func (s *supervisor) giveUp(l *shardrun.Loop, e event.Stalled) {
	l.Repeated().Error("a shard makes no progress; this worker releases its lease",
		"reason", e.Reason.String(), "since", e.Since, "seq", l.Term().At(), "err", e.Err)
	l.Term().GiveUp(shardrun.ErrStalled)
	s.tellStalled(l, e)
}

// abandon releases the lease of a shard without waiting for its handler.
func (s *supervisor) abandon(l *shardrun.Loop, e event.Stalled) {
	l.Log().Error("a handler still runs although its context has ended; its lease is released anyway, and another worker may handle the same records meanwhile",
		"since", e.Since)
	l.Term().Abandon()
	// Otherwise the next owner's subscription would have to replace this one.
	l.StopSource()
	s.tellStalled(l, e)
}

func (s *supervisor) tellStalled(l *shardrun.Loop, e event.Stalled) {
	s.sampler.Mark(l.Key(), history.Stalled)
	s.run.shared.Counters.Stalls.Add(1)
	if ev, of := s.run.shared.Events, &l.Term().Lease; ev.On() {
		e.Time, e.Stream, e.Shard, e.Epoch = time.Now(), of.Stream, of.Shard, of.Epoch
		ev.Emit(e)
	}
}

// memoryAgain is the minimum time between two log lines about shards that wait for memory.
const memoryAgain = 10 * time.Minute

// tellShortage logs that a shard waits for memory, if there is such a shard.
func (s *supervisor) tellShortage(of supervise.Shortage, now time.Time) {
	if of.Err == nil || now.Sub(s.toldMemory) < memoryAgain {
		return
	}
	s.toldMemory = now
	s.run.shared.Log.Warn("a shard waits for memory: Options.MaxMemory has no room for its next records while handlers hold earlier ones",
		"stream", of.Key.Stream, "shard", of.Key.Shard, "for", now.Sub(of.Since).Round(time.Second),
		"max_memory", s.run.MaxMemory, "err", of.Err)
}

// tellReading reports shards whose reads fail, or succeed again.
func (s *supervisor) tellReading(changes []supervise.Change, now time.Time) {
	sum := supervise.Summarize(changes)
	for _, c := range sum.Named {
		if c.Err != nil {
			s.run.shared.Log.Warn("reading a shard fails repeatedly; weir retries",
				"stream", c.Key.Stream, "shard", c.Key.Shard, "for", now.Sub(c.Since).Round(time.Second), "err", c.Err)
		} else {
			s.run.shared.Log.Info("reading the shard works again",
				"stream", c.Key.Stream, "shard", c.Key.Shard)
		}
	}
	for _, m := range sum.More {
		if m.Fail {
			s.run.shared.Log.Warn("reading other shards of the stream fails too; weir retries",
				"stream", m.Stream, "shards", m.Shards)
		} else {
			s.run.shared.Log.Info("reading other shards of the stream works again",
				"stream", m.Stream, "shards", m.Shards)
		}
	}
}

const (
	// probeTimeout limits the duration of a probe. A probe makes a few calls for each of at most
	// probeStreams streams.
	probeTimeout = 5 * time.Second
	probeStreams = 3
)

// probe tries to read from some of the streams and notes the results.
func (s *supervisor) probe(n int) {
	r := s.run
	call, cancel := context.WithTimeout(s.probing, probeTimeout)
	defer cancel()
	names := r.streams.Names()
	var err error
	for i := range min(probeStreams, len(names)) {
		if err = streams.Probe(call, r.Client, r.caller, r.streams.Stream(names[(n+i)%len(names)]), n); err == nil {
			break
		}
	}
	if err == nil {
		err = r.shared.Lineage.Probe(call)
	}
	if s.probing.Err() != nil {
		return
	}
	switch before, after := r.standing.probed(err); {
	case before == nil && after != nil:
		r.shared.Log.Error("this worker cannot read from any stream; it takes no further shards until a read succeeds", "err", after)
	case before != nil && after == nil:
		r.shared.Log.Info("this worker can read again")
	}
}

// sortTroubles sorts troubles, the longest first.
func sortTroubles(all []lease.Trouble) {
	slices.SortFunc(all, func(a, b lease.Trouble) int { return cmp.Or(cmp.Compare(b.For, a.For), a.Key.Compare(b.Key)) })
}
