package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
)

// creationUntold logs that weir will notice late if the stream is created again.
func (r *Run) creationUntold(s streams.Stream, err error) {
	r.shared.Log.Warn("no permission to look up the creation time of a stream (kinesis:DescribeStreamSummary); if the stream is deleted "+
		"and created again, weir notices this only when the service rejects a checkpoint", "stream", s.Name, "err", err)
}

// spread logs whether the records of a key stay in order in the stream. It logs this only if keys
// are handled in parallel.
func (r *Run) spread(s streams.Stream, auto bool) {
	switch {
	case !r.Parallel():
	case auto:
		r.shared.Log.Warn("the service distributes the stream's records (AUTO), so records of one key are in different shards and have no order, with or without Options.Concurrency",
			"stream", s.Name)
	default:
		r.shared.Log.Info("the stream distributes records by key again; records of a key are handled in order from now on", "stream", s.Name)
	}
}

// StreamGone logs that a stream does not exist: once for all its shards, and then every ten minutes
// until one of them is read again.
func (r *Run) StreamGone(name string, err error) {
	if r.telling.goneAgain(name, time.Now()) {
		r.shared.Log.Error("the stream no longer exists; reading resumes when it exists again", "stream", name, "err", err)
	}
}

// StreamBack logs that a stream is there again.
func (r *Run) StreamBack(name string) {
	if _, told := r.telling.gone.LoadAndDelete(name); told {
		r.shared.Log.Info("the stream exists again", "stream", name)
	}
}

// named returns the function for group.Config.Named; nil if the streams never change.
func (r *Run) named() func() []string {
	if !r.Asks {
		return nil
	}
	return r.streams.Names
}

// learned applies an answer of Options.DiscoverStreams.
func (r *Run) learned(given []string) error {
	all, err := r.user.ParseStreams(given)
	if err != nil {
		return err
	}
	came, left := r.streams.Replace(all)
	for _, name := range came {
		r.shared.Log.Info("a stream was added", "stream", name)
	}
	for _, name := range left {
		r.shared.Log.Info("a stream was removed", "stream", name)
	}
	return nil
}

// unlearned reports that Options.DiscoverStreams has failed.
func (r *Run) unlearned(err error, failures int, since time.Time) {
	if failures == 1 {
		r.shared.Log.Warn("Options.DiscoverStreams failed; its previous result stays in use", "err", err)
	}
	r.CallFailed(event.OpStreams, fmt.Errorf("Options.DiscoverStreams: %w", err), since)
}

// join runs the group, after the first answer of Options.DiscoverStreams.
func (r *Run) join(ctx context.Context, cfg group.Config) error {
	if !r.Asks {
		return group.Run(ctx, cfg)
	}
	learner := streams.Learner{
		Ask: r.user.AskStreams, Learned: r.learned, Failed: r.unlearned, Every: r.ListInterval, Low: r.RetryMin, High: r.RetryMax,
	}
	asking, cancel := context.WithCancel(ctx)
	known, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		learner.Run(asking, known)
	}()
	var err error
	select {
	case <-known:
		err = group.Run(ctx, cfg)
	case <-ctx.Done():
	}
	cancel()
	<-done
	if learner.Left() {
		err = errors.Join(err, fmt.Errorf("%w: Options.DiscoverStreams", ErrAbandoned))
	}
	return err
}

// leases returns the leases of the application, for the lineage.
func (r *Run) leases(ctx context.Context) (lease.View, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Times.Failover)
	defer cancel()
	return r.Store.View(ctx, r.App, "")
}

// firstNumbers returns the first sequence numbers of a stream's shards, for the lineage.
func (r *Run) firstNumbers(ctx context.Context, stream string) (map[string]string, error) {
	return streams.FirstNumbers(ctx, r.Client, r.streams.Stream(stream))
}

// checkConsumers returns an error if an ARN in Options.FanOut.ARNs certainly names a consumer of
// another stream. The shards of both streams have the same names, so weir would read the wrong
// stream.
func (r *Run) checkConsumers(ctx context.Context) error {
	if len(r.FanOutARNs) == 0 {
		return nil
	}
	if err := r.consumers.CheckGiven(ctx, r.Streams); err != nil {
		return fmt.Errorf("weir: Options.FanOut.ARNs names a consumer that cannot be used: %w", err)
	}
	return nil
}

// removeConsumers deregisters the consumer Options.FanOut.Name from the streams of the run, unless
// another worker is alive. The run has left the application by then.
func (r *Run) removeConsumers(ctx context.Context) {
	var all []streams.Stream
	for _, name := range r.streams.Names() {
		all = append(all, r.streams.Stream(name))
	}
	r.consumers.RemoveLast(ctx, all, r.living)
}

// living counts the sessions that have not ended.
func (r *Run) living(ctx context.Context) (n int, err error) {
	v, err := r.Store.View(ctx, r.App, "")
	for _, w := range v.Workers {
		if !w.Ended {
			n++
		}
	}
	return n, err
}
