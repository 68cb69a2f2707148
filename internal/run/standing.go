package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// standing is the state of a run for others: its loops and the findings of its supervisor. The run
// writes it; Consumer.Live, Ready, Shards and Health read it.
type standing struct {
	mu        lock.Mutex[lock.Run] // guards the fields below
	loops     map[*shardrun.Loop]struct{}
	order     []*shardrun.Loop             // the same loops, the oldest first, and some that have ended
	abandoned map[lease.Key]*shardrun.Loop // whose handlers ignore that their contexts have ended
	looked    time.Time                    // when the heartbeat loop last came by; zero before it does
	answered  time.Time                    // when the last heartbeat that was answered was sent
	stopping  time.Time                    // when the stop began
	returned  bool                         // the run has
	isolation supervise.Isolation
	stalls    map[lease.Key]supervise.Stalls // of shards that stalled
	unlisted  map[string]time.Time           // streams that this worker fails to list, and since when
	// recent contains the samples of the last minutes, the oldest first, without idle shards.
	recent []map[lease.Key]history.Sample
}

func newStanding() standing {
	return standing{
		loops: map[*shardrun.Loop]struct{}{}, abandoned: map[lease.Key]*shardrun.Loop{},
		stalls: map[lease.Key]supervise.Stalls{}, unlisted: map[string]time.Time{},
	}
}

// keep keeps the samples of a minute. Most shards are idle, so it drops samples in which nothing
// happened.
func (s *standing) keep(samples []history.Sample) {
	active := map[lease.Key]history.Sample{}
	for _, of := range samples {
		if of.Busy > 0 || of.Throttled > 0 || of.Marks&(history.Failing|history.Unread) != 0 {
			active[of.Key] = of
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent = append(s.recent, active)
	s.recent = s.recent[max(0, len(s.recent)-health.RecentMinutes):]
}

// recently summarizes the samples of a shard. It returns the zero value before the first sample.
func (s *standing) recently(key lease.Key) (r health.Recent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lags := make([]time.Duration, len(s.recent))
	for i, minute := range s.recent {
		lags[i] = minute[key].Lag
	}
	for _, minute := range s.recent[history.Stretch(lags):] {
		of := minute[key]
		failing, unread := of.Marks&history.Failing != 0, of.Marks&history.Unread != 0
		r = r.Add(of.Busy, of.Throttled, failing, unread)
	}
	return r
}

// leave notes that the run has returned, and reports whether no loop is left.
func (s *standing) leave() (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned = true
	return len(s.loops) == 0
}

// begin notes that a loop runs.
func (s *standing) begin(l *shardrun.Loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loops[l] = struct{}{}
	s.order = append(s.order, l)
}

// end notes that a loop has ended. It reports whether the loop was the last one of a run that has
// returned.
func (s *standing) end(l *shardrun.Loop) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.loops, l)
	if len(s.loops) == 0 {
		s.order = nil // running is not called after the run has returned
	}
	if l.Returned() && s.abandoned[l.Key()] == l {
		delete(s.abandoned, l.Key())
	}
	return s.returned && len(s.loops) == 0
}

// running appends the running loops to all, the oldest first. To visit thousands of loops in the
// order of the map would take twice as long, because the memory of consecutive loops is adjacent.
// The caller reads the status of the loops without the mutex. Otherwise Live, Ready, Shards and
// Health, which take this mutex, would have to wait while the status is read.
func (s *standing) running(all []*shardrun.Loop) []*shardrun.Loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) > len(s.loops) {
		s.order = slices.DeleteFunc(s.order, func(l *shardrun.Loop) bool {
			_, here := s.loops[l]
			return !here
		})
	}
	return append(all, s.order...)
}

// worker returns the state of the worker, and false if the run has returned. streams returns the
// names of its streams.
func (s *standing) worker(streams func() []string) (w supervise.Worker, runs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w = supervise.Worker{
		Looked: s.looked, Answered: s.answered, Stopping: s.stopping,
		Abandoned: make(map[lease.Key]time.Time, len(s.abandoned)), Unlisted: maps.Clone(s.unlisted),
	}
	maps.DeleteFunc(w.Unlisted, func(name string, _ time.Time) bool { return !slices.Contains(streams(), name) })
	for key, l := range s.abandoned {
		w.Abandoned[key] = l.Ended()
	}
	return w, !s.returned
}

// stops notes that the stop begins now, unless it began before.
func (s *standing) stops() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.IsZero() {
		s.stopping = time.Now()
	}
}

// stopBegan returns when the stop began, or zero before that.
func (s *standing) stopBegan() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// rests notes that there are no more heartbeats.
func (s *standing) rests() {
	s.stops()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = time.Time{}
}

// answeredAt notes the time at which an answered heartbeat was sent.
func (s *standing) answeredAt(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = sent
}

// listed notes the outcome of listing a stream.
func (s *standing) listed(name string, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch _, fails := s.unlisted[name]; {
	case err == nil:
		delete(s.unlisted, name)
	case !fails && !errors.Is(err, context.Canceled):
		s.unlisted[name] = now
	}
}

// listsNothing drops the failures of listing streams, because another worker lists them now.
func (s *standing) listsNothing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.unlisted)
}

// stopGrace is how long after Options.Timing.StopTimeout a handler may ignore that its context has
// ended.
const stopGrace = 7 * time.Second

// look notes that the supervisor looks at the shards. It returns the present limits for shards, and
// whether any shard has stalled before.
func (s *standing) look(now time.Time, c *Config) (limits supervise.Limits, stalled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = now
	limits = supervise.Limits{Stall: c.StallAfter, Handler: c.HandlerTimeout, Return: c.Times.Handoff}
	if !s.stopping.IsZero() && now.Sub(s.stopping) >= c.StopTimeout {
		limits.Return = min(limits.Return, stopGrace)
	}
	return limits, len(s.stalls) > 0
}

// suspect decides again whether this worker can read at all. It returns the trouble that the worker
// reports about itself, whether the worker is cut off, and the number of the probe to begin, or -1.
func (s *standing) suspect(k *supervise.Look, c *Config) (own lease.Trouble, cutOff bool, probe int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.stalls, func(_ lease.Key, of supervise.Stalls) bool { return of.Counting(k.Now, c.StallAfter) == 0 })
	probe = -1
	if s.isolation.Observe(k.Now, k.Evidence, c.Times.Heartbeat) {
		probe = s.isolation.Probes
	}
	own, cutOff = s.isolation.Trouble(k.Now)
	return own, cutOff, probe
}

// cutOff returns the trouble of this worker if it cannot read any shard.
func (s *standing) cutOff(now time.Time) (own lease.Trouble, cutOff bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isolation.Trouble(now)
}

// probed notes the result of a probe. It returns the reasons why this worker counted as cut off
// before the probe and counts as cut off after it. A reason is nil if the worker was not cut off at
// that time.
func (s *standing) probed(err error) (before, after error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.isolation.Why
	s.isolation.Probed(time.Now(), err)
	return before, s.isolation.Why
}

// forgetStalls forgets that a shard has stalled.
func (s *standing) forgetStalls(key lease.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stalls, key)
}

// note notes the verdict on a shard that is not sound, and reports whether the shard's loop still
// runs.
func (s *standing) note(l *shardrun.Loop, what supervise.Verdict, stalls supervise.Stalls) (here bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, here = s.loops[l]; !here { // it has ended since this look began
		return false
	}
	switch what {
	case supervise.Slow:
		l.ToldSlow()
	case supervise.Stalled:
		s.stalls[l.Key()] = stalls
		l.Stall(stalls.Last)
	default: // it hangs
		l.Leave()
		s.abandoned[l.Key()] = l
	}
	return true
}

// before returns how often a shard has stalled in this process, and the shard's abandoned loop, or
// nil.
func (s *standing) before(key lease.Key, now time.Time, stall time.Duration) (stalls int, left *shardrun.Loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stalls[key].Counting(now, stall), s.abandoned[key]
}

// anyAbandoned returns one abandoned loop, or nil, and the names of the shards of all abandoned
// loops.
func (s *standing) anyAbandoned() (one *shardrun.Loop, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, l := range s.abandoned {
		one = l
		names = append(names, fmt.Sprintf("%s (reported %v ago)", key, time.Since(l.Ended()).Round(time.Second)))
	}
	slices.Sort(names)
	return one, names
}
