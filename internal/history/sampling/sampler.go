// Package sampling reports how the shards of a worker stand: a sample a minute for each, for pages
// that show it later. Package history has the form of the samples.
package sampling

import (
	"context"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/seqtime"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

const (
	putBound  = 10 * time.Second
	lastBound = 2 * time.Second // for the last report
	// spread spreads the workers of an application over a part of each minute.
	spread = 20 * time.Second
)

// Store keeps what a Sampler reports.
type Store interface {
	PutHistory(ctx context.Context, app string, c lease.HistoryChunk) error
}

// Standing is how a shard stands at a moment.
type Standing struct {
	lease.Key
	At   shard.Position
	Lag  time.Duration // of what is not handled; negative when it is not known
	Load lease.Load
}

// Sampler samples the shards of a run and reports the samples. The beat loop notes what it sees; a
// goroutine of the Sampler puts the samples, so a store that is slow at it holds up no beat. A nil
// Sampler does nothing.
type Sampler struct {
	Store       Store
	App, Worker string
	// Shards returns how the shards stand that the run reads now.
	Shards func(now time.Time) []Standing
	Log    *slog.Logger

	failed bool // the last chunk could not be put; of the goroutine that reports, as are the next two
	writer *history.Writer
	writes string // the session that writer is for

	mu      lock.Mutex[lock.Sampler] // guards the fields below
	session string                   // "" before the first beat was answered
	looks   int                      // in this minute
	noted   map[lease.Key]noted
}

// noted is the record of a shard in this minute.
type noted struct {
	busy      int // looks at which the handler was at work
	marks     history.Marks
	at        shard.Position // where it was when its term ended
	throttled time.Duration  // the pauses of reading because it was throttled
}

// Start starts reporting. The returned function ends it, with a final report if last is set.
func (s *Sampler) Start(ctx context.Context) (end func(last bool)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var reporting sync.WaitGroup
	reporting.Go(func() { s.run(ctx) })
	return func(last bool) {
		cancel()
		reporting.Wait()
		if last {
			s.report(context.WithoutCancel(ctx), time.Now(), lastBound)
		}
	}
}

func (s *Sampler) run(ctx context.Context) {
	for {
		timer := time.NewTimer(untilReport(time.Now(), s.Worker))
		select {
		case <-timer.C:
			s.report(ctx, time.Now(), putBound)
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
	offset := time.Duration(h.Sum32()) % spread
	next := now.Truncate(time.Minute).Add(offset)
	if !next.After(now) {
		next = next.Add(time.Minute)
	}
	return next.Sub(now)
}

// Begin notes the session, when its first beat was answered.
func (s *Sampler) Begin(session string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session
}

// Look notes that the beat loop looks at the shards.
func (s *Sampler) Look() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
}

// See notes how the beat loop finds a shard. Of one at which nothing happens it notes nothing.
func (s *Sampler) See(key lease.Key, found *supervise.Shard) {
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

// Mark notes what happened to a shard.
func (s *Sampler) Mark(key lease.Key, marks history.Marks) {
	s.note(key, func(n *noted) { n.marks |= marks })
}

// Throttle notes that the service throttled a read, after which reading waits.
func (s *Sampler) Throttle(key lease.Key, wait time.Duration) {
	s.note(key, func(n *noted) { n.throttled += wait })
}

// Ended notes that a term has ended, and where. Its shard is not looked at any more.
func (s *Sampler) Ended(key lease.Key, at shard.Position, why group.EndReason) {
	s.note(key, func(n *noted) { n.marks, n.at = n.marks|marksOf(why), at })
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

func (s *Sampler) note(key lease.Key, do func(*noted)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noted == nil {
		s.noted = map[lease.Key]noted{}
	}
	n := s.noted[key]
	do(&n)
	s.noted[key] = n
}

// report puts the samples of now.
func (s *Sampler) report(ctx context.Context, now time.Time, bound time.Duration) {
	session, samples := s.samples(now)
	if session == "" || len(samples) == 0 {
		return
	}
	if s.writes != session {
		s.writer, s.writes = history.NewWriter(history.Room(s.App, session), s.Worker), session
	}
	c := lease.HistoryChunk{Session: session}
	c.Since, c.Data = s.writer.Add(samples[0].Minute, samples)
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err := s.Store.PutHistory(ctx, s.App, c)
	if failed := err != nil; failed != s.failed {
		s.failed = failed
		if failed {
			s.Log.Warn("could not save the progress history of the shards; only the dashboard needs it", "err", err)
		} else {
			s.Log.Info("the progress history of the shards is saved again")
		}
	}
}

// samples returns one for each shard, of what was noted since the last call.
func (s *Sampler) samples(now time.Time) (session string, all []history.Sample) {
	s.mu.Lock()
	session = s.session
	seen, looks := s.noted, s.looks
	s.noted, s.looks = nil, 0
	s.mu.Unlock()

	sample := func(of Standing, n noted) {
		all = append(all, history.Sample{
			Key: of.Key, Minute: now.Unix() / 60, Age: ageOf(of.At, now), Lag: of.Lag, Load: of.Load,
			Busy: percent(n.busy, looks), Throttled: throttledOf(n.throttled), Marks: n.marks,
		})
	}
	for _, of := range s.Shards(now) {
		sample(of, seen[of.Key])
		delete(seen, of.Key)
	}
	for key, n := range seen { // whose terms have ended
		sample(Standing{Key: key, At: n.at, Lag: -1}, n)
	}
	slices.SortFunc(all, func(a, b history.Sample) int { return a.Key.Compare(b.Key) })
	return session, all
}

// throttledOf returns the part of a minute that reading waited, rounded so that a single throttle
// shows.
func throttledOf(waited time.Duration) int {
	const hundredth = time.Minute / 100
	return int(min((waited+hundredth-1)/hundredth, 100))
}

func percent(part, of int) int { return 100 * min(part, of) / max(of, 1) }

// ageOf is how old the record before a position is, negative when that does not show.
func ageOf(at shard.Position, now time.Time) time.Duration {
	if _, arrived, ok := seqtime.Of(at.SequenceNumber()); ok && !arrived.IsZero() {
		return max(0, now.Sub(arrived))
	}
	return -1
}
