package weir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/streams"
)

// creationUntold tells that a stream which is created anew will be found late.
func (r *run) creationUntold(s streams.Stream, err error) {
	r.opts.Logger.Warn("no permission to ask when a stream was created (kinesis:DescribeStreamSummary): one that is deleted and made "+
		"anew under its name will only be noticed by checkpoints that are refused", "stream", s.Name, "err", err)
}

// spread tells of streams that have no order per key, to those who handle key by key.
func (r *run) spread(s streams.Stream, auto bool) {
	switch {
	case !r.opts.Parallel.on():
	case auto:
		r.opts.Logger.Warn("the stream's records are distributed by the service (AUTO), so those of one key are in different shards: they have no order, with Options.Parallel or without",
			"stream", s.Name)
	default:
		r.opts.Logger.Info("the stream's records are distributed by their keys again, which are handled in order from now on", "stream", s.Name)
	}
}

// named is for group.Config.Named: nil without a function.
func (r *run) named() func() []string {
	if r.opts.StreamsFunc == nil {
		return nil
	}
	return r.streams.Names
}

// learn asks Options.StreamsFunc which streams there are.
func (r *run) learn(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, max(r.opts.ListInterval, 30*time.Second))
	given, err := r.askStreams(call)
	cancel()
	if err != nil {
		return err
	}
	opts := r.opts
	opts.Streams = slices.Concat(r.opts.Streams, given)
	all, err := opts.streams(r.client)
	if err != nil {
		return err
	}
	came, left := r.streams.Replace(all)
	for _, name := range came {
		r.opts.Logger.Info("a stream is to be read", "stream", name)
	}
	for _, name := range left {
		r.opts.Logger.Info("a stream is not to be read any more", "stream", name)
	}
	return nil
}

// namesGrace is how long after the end of its context Options.StreamsFunc may take to return.
const namesGrace = time.Second

var errStillAsked = errors.New("a call whose context has ended has not returned yet")

// askStreams calls Options.StreamsFunc. A panic is an error; a call that ignores that its context
// has ended is left behind, and there is no other until it has returned.
func (r *run) askStreams(ctx context.Context) ([]string, error) {
	if r.asked == nil {
		r.asked = make(chan named, 1)
		go func(answer chan<- named) {
			n := named{err: errors.New("it ended its goroutine")}
			defer func() { answer <- n }()
			n.err = contained("StreamsFunc", func() (err error) { n.names, err = r.opts.StreamsFunc(ctx); return err })
		}(r.asked)
	} else if len(r.asked) == 0 {
		return nil, errStillAsked
	}
	var late <-chan time.Time
	for ended := ctx.Done(); ; {
		select {
		case n := <-r.asked:
			r.asked = nil
			return n.names, n.err
		case <-ended:
			timer := time.NewTimer(namesGrace)
			defer timer.Stop()
			ended, late = nil, timer.C
		case <-late:
			return nil, errStillAsked
		}
	}
}

// named is an answer of Options.StreamsFunc.
type named struct {
	names []string
	err   error
}

// keepLearning asks for the first time, again and again until there is an answer, closes known, and
// then asks every ListInterval.
func (r *run) keepLearning(ctx context.Context, known chan<- struct{}) {
	var since time.Time
	for failures := 0; ; {
		err := r.learn(ctx)
		pause := r.opts.ListInterval
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if failures++; failures == 1 {
				since = time.Now()
				r.opts.Logger.Warn("Options.StreamsFunc fails; what it said before holds", "err", err)
			}
			r.CallFailed("streams", fmt.Errorf("Options.StreamsFunc: %w", err), since)
			pause = min(retry.Pause(r.opts.RetryMin, r.opts.RetryMax, failures), r.opts.ListInterval)
		default:
			failures = 0
			if known != nil {
				close(known)
				known = nil
			}
		}
		if retry.Wait(ctx, pause) != nil {
			return
		}
	}
}

// join runs the group, once it is known which streams there are.
func (r *run) join(ctx context.Context, cfg group.Config) error {
	if r.opts.StreamsFunc == nil {
		return group.Run(ctx, cfg)
	}
	asking, cancel := context.WithCancel(ctx)
	known, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		r.keepLearning(asking, known)
	}()
	var err error
	select {
	case <-known:
		err = group.Run(ctx, cfg)
	case <-ctx.Done():
	}
	cancel()
	<-done
	if r.asked != nil && len(r.asked) == 0 {
		err = errors.Join(err, fmt.Errorf("%w: Options.StreamsFunc", ErrAbandoned))
	}
	return err
}
