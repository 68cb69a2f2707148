// Package sampling samples the shards of a worker once per minute and stores the samples, for
// commands and web pages that show them later. Package history defines the form of the samples.
package sampling

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
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
)

// Store stores the chunks of a Sampler.
type Store interface {
	PutHistory(ctx context.Context, app string, c lease.HistoryChunk) error
}

// Standing is a snapshot of a shard.
type Standing struct {
	lease.Key
	At   shard.Position
	Lag  time.Duration // lag of unhandled records; negative if unknown
	Load lease.Load
}

// Sampler samples the shards of a run and stores the samples. The heartbeat loop records its
// observations. A separate goroutine stores the samples, so a slow store delays no heartbeat. A nil
// Sampler does nothing.
type Sampler struct {
	Store       Store
	App, Worker string
	// Shards returns snapshots of the shards that the run currently reads.
	Shards func(now time.Time) []Standing
	Log    *slog.Logger
	// Took gets the samples of each report. It must not keep or change the slice. It may be nil.
	Took func([]history.Sample)

	failed bool // storing the last chunk failed; owned by the reporting goroutine, like the next two
	writer *history.Writer
	writes string // the session of writer

	mu      lock.Mutex[lock.Sampler] // guards the fields below
	session string                   // "" before the first heartbeat was answered
	looks   int                      // number of looks in this minute
	noted   map[lease.Key]noted
}

// noted contains the observations of a shard in this minute.
type noted struct {
	busy      int // number of looks at which the handler was running
	marks     history.Marks
	at        shard.Position // the position at the end of its term
	throttled time.Duration  // time in which reading waited because of throttling
}

// Start begins reporting. The function end ends it. If last is true, end makes a final report.
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

// untilReport returns the time until a worker's next report. A worker reports at the same time of
// each minute.
func untilReport(now time.Time, worker string) time.Duration {
	next := now.Truncate(time.Minute).Add(history.ReportsAt(worker))
	if !next.After(now) {
		next = next.Add(time.Minute)
	}
	return next.Sub(now)
}

// Begin notes the session after its first heartbeat was answered.
func (s *Sampler) Begin(session string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session
}

// Look notes that the heartbeat loop looks at the shards.
func (s *Sampler) Look() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
}

// See notes the state in which the heartbeat loop finds a shard. It stores nothing for a shard
// without activity.
func (s *Sampler) See(key lease.Key, found *supervise.Shard) {
	if s == nil {
		return
	}
	busy, marks := 0, history.Marks(0)
	if found.Handling == health.InHandler || found.Handling == health.StoringDeadLetters {
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

// Mark notes an event of a shard.
func (s *Sampler) Mark(key lease.Key, marks history.Marks) {
	s.note(key, func(n *noted) { n.marks |= marks })
}

// Throttle notes that Kinesis throttled a read. Reading then waits.
func (s *Sampler) Throttle(key lease.Key, wait time.Duration) {
	s.note(key, func(n *noted) { n.throttled += wait })
}

// Ended notes that a term has ended, and its last position. The heartbeat loop no longer looks at
// its shard.
func (s *Sampler) Ended(key lease.Key, at shard.Position, why event.EndReason) {
	s.note(key, func(n *noted) { n.marks, n.at = n.marks|marksOf(why), at })
}

func marksOf(why event.EndReason) history.Marks {
	switch why {
	case event.EndFinished:
		return history.Ended | history.Finished
	case event.EndStalled:
		return history.Ended | history.Stalled
	case event.EndLost:
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

// report stores the samples up to now.
func (s *Sampler) report(ctx context.Context, now time.Time, bound time.Duration) {
	session, samples := s.samples(now)
	if s.Took != nil {
		s.Took(samples)
	}
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
			s.Log.Warn("could not save the progress history of the shards; no worker needs it, but the dashboard, doctor, the exporter and group lag show less", "err", err)
		} else {
			s.Log.Info("the progress history of the shards is saved again")
		}
	}
}

// samples returns a sample for each shard from the observations since the last call.
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
	for key, n := range seen { // shards whose terms have ended
		sample(Standing{Key: key, At: n.at, Lag: -1}, n)
	}
	slices.SortFunc(all, func(a, b history.Sample) int { return a.Key.Compare(b.Key) })
	return session, all
}

// throttledOf returns the percentage of a minute in which reading waited. It is rounded up, so that
// a single throttled read is visible.
func throttledOf(waited time.Duration) int {
	const hundredth = time.Minute / 100
	return int(min((waited+hundredth-1)/hundredth, 100))
}

func percent(part, of int) int { return 100 * min(part, of) / max(of, 1) }

// ageOf returns the age of the record before a position. It is negative if unknown.
func ageOf(at shard.Position, now time.Time) time.Duration {
	if _, arrived, ok := seqtime.Of(at.SequenceNumber()); ok && !arrived.IsZero() {
		return max(0, now.Sub(arrived))
	}
	return -1
}
