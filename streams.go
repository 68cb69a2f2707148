package weir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/streams"
)

// creationUntold logs that a stream that is created again will be found late.
func (r *run) creationUntold(s streams.Stream, err error) {
	r.opts.Logger.Warn("no permission to read when a stream was created (kinesis:DescribeStreamSummary); if it is deleted and created "+
		"again, weir notices this only when the service rejects a checkpoint", "stream", s.Name, "err", err)
}

// spread logs, with Options.Parallel, whether the stream keeps the order within a key.
func (r *run) spread(s streams.Stream, auto bool) {
	switch {
	case !r.opts.Parallel.on():
	case auto:
		r.opts.Logger.Warn("the service distributes the stream's records (AUTO), so records of one key are in different shards and have no order, with or without Options.Parallel",
			"stream", s.Name)
	default:
		r.opts.Logger.Info("the stream distributes records by key again; records of a key are handled in order from now on", "stream", s.Name)
	}
}

// goneAgain is how often it is said that a stream does not exist.
const goneAgain = 10 * time.Minute

// streamGone logs that a stream does not exist: once for all its shards, and then every ten minutes
// until one of them is read again.
func (r *run) streamGone(name string, err error) {
	now := time.Now()
	last, told := r.gone.LoadOrStore(name, now)
	if !told || now.Sub(last.(time.Time)) >= goneAgain && r.gone.CompareAndSwap(name, last, now) {
		r.opts.Logger.Error("the stream no longer exists; reading resumes when it exists again", "stream", name, "err", err)
	}
}

// streamBack logs that a stream is there again.
func (r *run) streamBack(name string) {
	if _, told := r.gone.LoadAndDelete(name); told {
		r.opts.Logger.Info("the stream exists again", "stream", name)
	}
}

// named is for group.Config.Named: nil without a function.
func (r *run) named() func() []string {
	if r.opts.StreamsFunc == nil {
		return nil
	}
	return r.streams.Names
}

// learned takes in an answer of Options.StreamsFunc.
func (r *run) learned(given []string) error {
	opts := r.opts
	opts.Streams = slices.Concat(r.opts.Streams, given)
	all, err := opts.streams(r.client)
	if err != nil {
		return err
	}
	came, left := r.streams.Replace(all)
	for _, name := range came {
		r.opts.Logger.Info("a stream was added", "stream", name)
	}
	for _, name := range left {
		r.opts.Logger.Info("a stream was removed", "stream", name)
	}
	return nil
}

// unlearned reports that Options.StreamsFunc has failed.
func (r *run) unlearned(err error, failures int, since time.Time) {
	if failures == 1 {
		r.opts.Logger.Warn("Options.StreamsFunc failed; its previous result stays in use", "err", err)
	}
	r.CallFailed("streams", fmt.Errorf("Options.StreamsFunc: %w", err), since)
}

// join runs the group, once it is known which streams there are.
func (r *run) join(ctx context.Context, cfg group.Config) error {
	if r.opts.StreamsFunc == nil {
		return group.Run(ctx, cfg)
	}
	learner := streams.Learner{
		Ask: func(ctx context.Context) (names []string, err error) {
			err = contained("StreamsFunc", func() (err error) { names, err = r.opts.StreamsFunc(ctx); return err })
			return names, err
		},
		Learned: r.learned, Failed: r.unlearned, Every: r.opts.ListInterval, Low: r.opts.RetryMin, High: r.opts.RetryMax,
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
		err = errors.Join(err, fmt.Errorf("%w: Options.StreamsFunc", ErrAbandoned))
	}
	return err
}
