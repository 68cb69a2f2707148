package weir

import (
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/seqtime"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

const (
	putHistoryBound  = 10 * time.Second
	lastHistoryBound = 2 * time.Second // when Run returns
	// historySpread spreads the workers of an application over a part of each minute.
	historySpread = 20 * time.Second
)

// sampler reports how the shards of a run stand, a sample a minute for each, for pages that show it
// later. The beat loop notes what it sees; a goroutine of its own makes the samples and puts them,
// so a store that is slow at it holds up no beat. A nil sampler does nothing.
type sampler struct {
	in     *run
	failed bool // the last chunk could not be put; of whoever reports, as is
	writer *history.Writer
	writes string // the session that writer is for

	mu      lock.Mutex[lock.Sampler]
	session string // "" before the first beat was answered
	looks   int    // in this minute
	noted   map[lease.Key]noted
}

// noted is what was noted of a shard in this minute.
type noted struct {
	busy  int // looks at which the handler was at work
	marks history.Marks
	at    Position // where it was when its term ended
	// throttled is for how long reading waits because it was throttled
	throttled time.Duration
}

// sample starts reporting, and returns what ends it with a last report. It does nothing if the
// store cannot keep it, or the options do not want it.
func (r *run) sample(ctx context.Context) (end func()) {
	if r.opts.NoHistory || !r.store.KeepsHistory() {
		return func() {}
	}
	s := &sampler{in: r, noted: map[lease.Key]noted{}}
	r.sampler = s
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var reporting sync.WaitGroup
	reporting.Go(func() { s.run(ctx) })
	return func() {
		cancel()
		reporting.Wait()
		if time.Since(r.StoreAnswered()) < r.opts.FailoverAfter {
			s.report(context.WithoutCancel(ctx), time.Now(), lastHistoryBound)
		}
	}
}

func (s *sampler) run(ctx context.Context) {
	for {
		timer := time.NewTimer(untilReport(time.Now(), s.in.opts.Worker))
		select {
		case <-timer.C:
			s.report(ctx, time.Now(), putHistoryBound)
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// untilReport is the time until a worker's next report, which is at the same time of each minute.
func untilReport(now time.Time, worker string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(worker)) // which cannot fail
	offset := time.Duration(h.Sum32()) % historySpread
	next := now.Truncate(time.Minute).Add(offset)
	if !next.After(now) {
		next = next.Add(time.Minute)
	}
	return next.Sub(now)
}

// begin notes the session, when its first beat was answered.
func (s *sampler) begin(session string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session
}

// look notes that the beat loop looks at the shards.
func (s *sampler) look() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
}

// see notes how the beat loop finds a shard. Of one at which nothing happens it notes nothing.
func (s *sampler) see(key lease.Key, found *supervise.Shard) {
	if s == nil {
		return
	}
	busy, marks := 0, history.Marks(0)
	if found.Handling == supervise.Handling || found.Handling == supervise.GivingUp {
		busy = 1
	}
	if !found.Failing.IsZero() {
		marks |= history.Failing
	}
	if found.ReadErr != nil && !found.Throttled {
		marks |= history.Unread
	}
	if busy > 0 || marks != 0 {
		s.note(key, func(n *noted) { n.busy += busy; n.marks |= marks })
	}
}

// mark notes what happened to a shard.
func (s *sampler) mark(key lease.Key, marks history.Marks) {
	if s != nil {
		s.note(key, func(n *noted) { n.marks |= marks })
	}
}

// throttle notes that the service throttled a read, after which reading waits.
func (s *sampler) throttle(key lease.Key, wait time.Duration) {
	if s != nil {
		s.note(key, func(n *noted) { n.throttled += wait })
	}
}

// ended notes that a term has ended. Its shard is not looked at any more.
func (s *sampler) ended(t *group.Term, why group.EndReason) {
	if s == nil {
		return
	}
	at := t.At()
	s.note(t.Lease.Key, func(n *noted) { n.marks, n.at = n.marks|marksOf(why), at })
}

func marksOf(why group.EndReason) history.Marks {
	switch why {
	case group.EndFinished:
		return history.Ended | history.Finished
	case group.EndStalled:
		return history.Ended | history.Stalled
	case group.EndLost:
		return history.Lost
	default:
		return history.Ended
	}
}

func (s *sampler) note(key lease.Key, do func(*noted)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.noted[key]
	do(&n)
	s.noted[key] = n
}

// report puts the samples of now.
func (s *sampler) report(ctx context.Context, now time.Time, bound time.Duration) {
	session, samples := s.samples(now)
	if session == "" || len(samples) == 0 {
		return
	}
	if s.writes != session {
		s.writer, s.writes = history.NewWriter(history.Room(s.in.opts.App, session), s.in.opts.Worker), session
	}
	c := lease.HistoryChunk{Session: session}
	c.Since, c.Data = s.writer.Add(samples[0].Minute, samples)
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err := s.in.store.PutHistory(ctx, s.in.opts.App, c)
	if failed := err != nil; failed != s.failed {
		s.failed = failed
		if failed {
			s.in.opts.Logger.Warn("how shards stand cannot be kept for pages that show it later; nothing else depends on it", "err", err)
		} else {
			s.in.opts.Logger.Info("how shards stand is kept again")
		}
	}
}

// samples are those of all shards, of what was noted since the last ones.
func (s *sampler) samples(now time.Time) (session string, all []history.Sample) {
	s.mu.Lock()
	session = s.session
	seen, looks := s.noted, s.looks
	s.noted, s.looks = map[lease.Key]noted{}, 0
	s.mu.Unlock()

	for _, l := range s.in.running(nil) {
		if l.in != s.in {
			continue
		}
		n := seen[l.term.Lease.Key]
		delete(seen, l.term.Lease.Key)
		all = append(all, l.sampled(n, looks, now))
	}
	for key, n := range seen { // whose terms have ended
		all = append(all, history.Sample{Key: key, Minute: minuteOf(now), Lag: -1, Age: ageOf(n.at, now), Busy: percent(n.busy, looks), Throttled: throttledOf(n.throttled), Marks: n.marks})
	}
	slices.SortFunc(all, func(a, b history.Sample) int { return a.Key.Compare(b.Key) })
	return session, all
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// throttledOf is what part of a minute reading waited, so that a single throttle shows.
func throttledOf(waited time.Duration) int {
	const hundredth = time.Minute / 100
	return int(min((waited+hundredth-1)/hundredth, 100))
}

func percent(part, of int) int { return 100 * min(part, of) / max(of, 1) }

// ageOf is how old the record before a position is, negative when that does not show.
func ageOf(at Position, now time.Time) time.Duration {
	if _, arrived, ok := seqtime.Of(at.SequenceNumber()); ok && !arrived.IsZero() {
		return max(0, now.Sub(arrived))
	}
	return -1
}

func (l *shardLoop) sampled(n noted, looks int, now time.Time) history.Sample {
	status := l.status()
	return history.Sample{
		Key: l.term.Lease.Key, Minute: minuteOf(now), Age: ageOf(status.At, now), Lag: status.HandledLag, Load: l.load(now), Busy: percent(n.busy, looks), Throttled: throttledOf(n.throttled), Marks: n.marks,
	}
}
