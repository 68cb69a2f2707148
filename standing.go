package weir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// standing is how a run stands: its shards, and what its beat loop found. The run writes it;
// Consumer.Live, Ready, Shards and Health read it.
type standing struct {
	mu        lock.Mutex[lock.Run] // guards the fields below
	loops     map[*shardLoop]struct{}
	abandoned map[lease.Key]*shardLoop // whose handlers ignore that their contexts have ended
	looked    time.Time                // when the beat loop last came by; zero before it does
	answered  time.Time                // when the last beat that was answered was sent
	stopping  time.Time                // when the stop began
	returned  bool                     // Run has
	isolation supervise.Isolation
	stalls    map[lease.Key]supervise.Stalls // of shards that stalled
	unlisted  map[string]time.Time           // streams that this worker fails to list, and since when
}

// register notes that r runs.
func (r *run) register() {
	c := r.consumer
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[r] = struct{}{}
}

// unregister notes that r does not run any more. The consumer keeps it while handlers that it has
// left behind are at work.
func (r *run) unregister() {
	c := r.consumer
	c.mu.Lock()
	defer c.mu.Unlock()
	c.returned = true
	s := &r.standing
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned = true
	if len(s.loops) == 0 {
		delete(c.runs, r)
	}
}

// begin notes that a loop runs.
func (r *run) begin(l *shardLoop) {
	s := &r.standing
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loops[l] = struct{}{}
}

// end notes that a loop does not run any more.
func (r *run) end(l *shardLoop) {
	if !r.standing.end(l) {
		return
	}
	r.consumer.mu.Lock()
	defer r.consumer.mu.Unlock()
	delete(r.consumer.runs, r)
}

// end reports whether the loop was the last one of a run that has returned.
func (s *standing) end(l *shardLoop) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.loops, l)
	if l.left != nil {
		if s.abandoned[l.term.Lease.Key] == l {
			delete(s.abandoned, l.term.Lease.Key)
		}
		close(l.left)
	}
	return s.returned && len(s.loops) == 0
}

// running appends the running loops to all. Their status is read without the run's mutex, because
// Live, Ready, Shards and Health wait for it.
func (r *run) running(all []*shardLoop) []*shardLoop {
	s := &r.standing
	s.mu.Lock()
	defer s.mu.Unlock()
	all = slices.Grow(all, len(s.loops))
	for l := range s.loops {
		all = append(all, l)
	}
	return all
}

// stands returns how the worker stands, false when Run has returned.
func (r *run) stands() (w supervise.Worker, runs bool) {
	s := &r.standing
	s.mu.Lock()
	defer s.mu.Unlock()
	w = supervise.Worker{Looked: s.looked, Answered: s.answered, Stopping: s.stopping, Abandoned: make(map[lease.Key]time.Time, len(s.abandoned)), Unlisted: maps.Clone(s.unlisted)}
	maps.DeleteFunc(w.Unlisted, func(name string, _ time.Time) bool { return !slices.Contains(r.streams.Names(), name) })
	for key, l := range s.abandoned {
		w.Abandoned[key] = l.endedAt().Time()
	}
	return w, !s.returned
}

// Stopping notes when the stop began.
func (r *run) Stopping() {
	s := &r.standing
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.IsZero() {
		s.stopping = time.Now()
	}
}

// stopBegan returns when the stop began, zero before that.
func (r *run) stopBegan() time.Time {
	r.standing.mu.Lock()
	defer r.standing.mu.Unlock()
	return r.standing.stopping
}

// isStopping reports whether the stop has begun.
func (r *run) isStopping() bool { return !r.stopBegan().IsZero() }

// rests notes that the beat loop has ended.
func (r *run) rests() {
	r.Stopping()
	r.standing.mu.Lock()
	defer r.standing.mu.Unlock()
	r.standing.looked = time.Time{}
}

// BeatAnswered notes that a beat was answered, which was sent then.
func (r *run) BeatAnswered(sent time.Time) {
	r.standing.mu.Lock()
	defer r.standing.mu.Unlock()
	r.standing.answered = sent
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

// listsNothing forgets which streams could not be listed, because another worker lists them now.
func (s *standing) listsNothing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.unlisted)
}

// stopGrace is how long after Options.StopTimeout a handler may ignore that its context has ended.
const stopGrace = 7 * time.Second

// look notes that the beat loop looks at the shards. It returns the limits that they have now, and
// whether any shard has stalled.
func (s *standing) look(now time.Time, o *Options) (limits supervise.Limits, stalled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = now
	limits = supervise.Limits{Stall: o.StallAfter, Handler: o.HandlerTimeout, Return: o.HandoffTimeout}
	if !s.stopping.IsZero() && now.Sub(s.stopping) >= o.StopTimeout {
		limits.Return = min(limits.Return, stopGrace)
	}
	return limits, len(s.stalls) > 0
}

// suspect takes in what a look has found out about whether this worker can read at all, and begins
// a probe if that is not clear. It returns what the worker reports of itself.
func (r *run) suspect(k *supervise.Look) (own lease.Trouble, cutOff bool) {
	s := &r.standing
	s.mu.Lock()
	maps.DeleteFunc(s.stalls, func(_ lease.Key, of supervise.Stalls) bool { return of.Counting(k.Now, r.opts.StallAfter) == 0 })
	probe, n := s.isolation.Observe(k.Now, k.Evidence, r.opts.BeatInterval), s.isolation.Probes
	own, cutOff = s.isolation.Trouble(k.Now)
	s.mu.Unlock()
	if probe {
		r.startProbe(n)
	}
	return own, cutOff
}

// probed takes in what a probe found out. It returns why this worker was cut off before, and why it
// is now; nil if it was not.
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

// before returns how often a shard has stalled in this process, and its abandoned loop, or nil.
func (s *standing) before(key lease.Key, now time.Time, stall time.Duration) (stalls int, left *shardLoop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stalls[key].Counting(now, stall), s.abandoned[key]
}

// anyAbandoned returns one abandoned loop, or nil, and the names of all.
func (s *standing) anyAbandoned() (one *shardLoop, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, l := range s.abandoned {
		one = l
		names = append(names, fmt.Sprintf("%s (reported %v ago)", key, mono.Since(l.endedAt()).Round(time.Second)))
	}
	slices.Sort(names)
	return one, names
}
