package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/fanout"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
)

// The group calls a run as its host, and the loops call it as their run.
var (
	_ group.Host   = (*Run)(nil)
	_ shardrun.Run = (*Run)(nil)
)

// Read reads the shard of a term until the term or the shard ends.
func (r *Run) Read(t *group.Term) error {
	l := shardrun.New(&r.shared, t)
	r.standing.begin(l)
	return l.Read()
}

// List lists a stream for the group. With a non-zero start, the listing contains the positions at
// which the application begins.
func (r *Run) List(ctx context.Context, name string, start shardrun.Position) (group.Listing, error) {
	listing, err := r.catalog.List(ctx, r.streams.Stream(name), start)
	r.standing.listed(name, err, time.Now())
	if errors.Is(err, streams.ErrNoStream) {
		err = streams.Also("stream "+name+": ", err, group.ErrNoStream)
	}
	return group.Listing(listing), err
}

// Troubles looks at the shards and returns their troubles.
func (r *Run) Troubles() []lease.Trouble { return r.supervisor.troubles() }

// LeaseTaken reports that a term has begun.
func (r *Run) LeaseTaken(t *group.Term) {
	of := &t.Lease
	r.shared.Counters.LeasesTaken.Add(1)
	r.supervisor.sampler.Mark(of.Key, history.Began)
	about := []any{"stream", of.Stream, "shard", of.Shard, "epoch", of.Epoch, "seq", of.Position}
	if died := t.Deaths().Count; died > 0 {
		about = append(about, "died", died)
	}
	r.shared.Log.Info("lease taken", about...)
	if ev := r.shared.Events; ev.On() {
		ev.Emit(event.LeaseTaken{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard, Epoch: of.Epoch, From: of.Position,
		})
	}
}

// LeaseEnded reports that a term has ended.
func (r *Run) LeaseEnded(t *group.Term, why event.EndReason) {
	of := &t.Lease
	r.shared.Counters.LeasesEnded.Add(1)
	r.supervisor.sampler.Ended(of.Key, t.At(), why)
	if why == event.EndLost {
		r.shared.Counters.LeasesLost.Add(1)
	}
	r.shared.Log.Info("lease ended", "stream", of.Stream, "shard", of.Shard, "epoch", of.Epoch, "seq", t.At(), "reason", why.String())
	if ev := r.shared.Events; ev.On() {
		ev.Emit(event.LeaseEnded{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard, Epoch: of.Epoch, At: t.At(), Reason: why,
		})
	}
}

// CheckpointSaved reports progress that is durable.
func (r *Run) CheckpointSaved(t *group.Term, at shardrun.Position, took time.Duration) {
	r.shared.Counters.Checkpoints.Add(1)
	if ev, of := r.shared.Events, &t.Lease; ev.On() {
		ev.Emit(event.CheckpointSaved{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard, Epoch: of.Epoch, At: at, Took: took,
		})
	}
}

// CallFailed reports a failed call of the store, a failed listing, or a failed call of
// Options.DiscoverStreams.
func (r *Run) CallFailed(op event.StoreOp, err error, since time.Time) {
	r.shared.Counters.StoreFailures.Add(1)
	if stack := r.telling.newStack(err); stack != "" {
		r.shared.Log.Error("a call panicked; weir repeats the call", "op", op, "err", err, "stack", stack)
	}
	if ev := r.shared.Events; ev.On() {
		ev.Emit(event.StoreFailed{Time: time.Now(), Op: op, Err: err, Since: since})
	}
}

// Leading reports that this worker leads, or stopped leading.
func (r *Run) Leading(leads bool, term uint64) {
	if !leads {
		r.standing.listsNothing()
	}
	if ev := r.shared.Events; ev.On() {
		ev.Emit(event.Leading{Time: time.Now(), Leads: leads, Epoch: term})
	}
}

// SessionBegan notes the name of the run's new session.
func (r *Run) SessionBegan(session string) { r.supervisor.sampler.Begin(session) }

// BeatAnswered notes that the store answered a heartbeat. sent is the time at which the heartbeat
// was sent.
func (r *Run) BeatAnswered(sent time.Time) { r.standing.answeredAt(sent) }

// Stopping notes when the stop began.
func (r *Run) Stopping() { r.standing.stops() }

// IsStopping reports whether the stop has begun.
func (r *Run) IsStopping() bool { return !r.standing.stopBegan().IsZero() }

// Await delays the loop of a shard that has stalled in this process before. It waits for a pause,
// and until an abandoned handler of the shard has returned. It reports whether the loop may begin.
func (r *Run) Await(l *shardrun.Loop) bool {
	stalls, before := r.standing.before(l.Key(), time.Now(), r.StallAfter)
	if stalls == 0 && before == nil {
		return true
	}
	l.SetStalls(int16(min(stalls, math.MaxInt16)))
	defer l.Block()()
	reading := l.Term().Reading()
	if retry.Wait(reading, retry.Pause(r.RetryMin, min(r.RetryMax, r.StallAfter/2), max(stalls, 1))) != nil {
		return false
	}
	if before != nil {
		select {
		case <-before.Left():
		case <-reading.Done():
			return false
		}
	}
	return true
}

// End notes that a loop has ended.
func (r *Run) End(l *shardrun.Loop) {
	if r.standing.end(l) {
		r.registry.forget(r)
	}
}

// outlast waits for abandoned handlers until the deadline, and returns an error that names the
// shards whose handlers have not returned.
func (r *Run) outlast(deadline time.Time) error {
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
		case <-one.Left():
		case <-timer.C:
			late = true
		}
	}
}

// Throttled notes a throttled read, for the history.
func (r *Run) Throttled(l *shardrun.Loop, next time.Duration) {
	r.supervisor.sampler.Throttle(l.Key(), next)
}

// LogPanic logs an error of the user's code. It adds the stack of a panic, unless the last panic
// was the same.
func (r *Run) LogPanic(to *slog.Logger, what string, err error, args ...any) {
	r.telling.logPanic(to, what, err, args...)
}

// Setup returns the settings for reading a stream's shards.
func (r *Run) Setup(stream string) *source.Setup {
	of := r.streams.Stream(stream)
	if known, ok := r.setups.Load(of); ok {
		return known.(*source.Setup)
	}
	known, _ := r.setups.LoadOrStore(of, &source.Setup{
		Client: r.Client, Caller: r.caller, Stream: of, Idle: r.IdleInterval, ReadShare: r.ReadShare, IfExpired: r.Expired,
	})
	return known.(*source.Setup)
}

// Pages returns the source of a shard's pages from a position on.
func (r *Run) Pages(l *shardrun.Loop, at shardrun.Position) shardrun.Pages {
	key := l.Key()
	poll := polling.Poll{Setup: r.Setup(key.Stream), Shard: key.Shard, From: at, Limit: r.mostRead(), Listener: l}
	if r.consumers == nil {
		return polling.NewFeed(l, poll, &r.scheduler, r.shared.Budget)
	}
	return &fanout.Reader{Poll: poll, Consumers: r.consumers, Share: r.shared.Budget.Share(), Changed: l.FanOutChanged}
}
