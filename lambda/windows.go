package lambda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/retry"
)

// Windows returns a handler for [weir.Consumer.RunPull] that passes the records of each shard to a
// function in tumbling windows of arrival time, as Lambda does. size is the length of a window:
// whole seconds, from 1 s to 15 min. Each event names its window and contains the state from the
// previous answer. When a window ends, the function receives a final event for it, without records.
//
// The state is kept only in memory. The checkpoint stays before the first record of a window until
// the function has answered the final event. After a crash or a handoff, the next owner of the
// shard starts the window again, without state. Each record is therefore in a final state at least
// once. A function that stores its results under the window's start and the shard stores each
// result once.
//
// A window ends when a later record arrives, when the shard is empty 5 s after the window's end, or
// when the shard ends. Records that arrive later for the same window cause a second final event.
// The same happens after the state of a window exceeds [MaxState]: the window ends early, and its
// final event is marked as early. Further records of the window are then in a second final event.
//
// A failed call is retried a few times with the same state. If it keeps failing, the window is
// started again after a backoff. This repeats until the call succeeds. No record is dead-lettered,
// so MaxAge must be 0.
func (h Handler) Windows(size time.Duration) (weir.PullHandler, error) {
	if size < time.Second || size > 15*time.Minute || size%time.Second != 0 {
		return weir.PullHandler{}, fmt.Errorf("lambda: windows of %v: use whole seconds, from 1s to 15m", size)
	}
	if h.MaxAge != 0 {
		return weir.PullHandler{}, errors.New("lambda: Handler.MaxAge must be 0 with windows: a window needs all of its records")
	}
	return weir.PullHandler{
		Pull: func(ctx context.Context, s *weir.Puller) error {
			return (&windows{Handler: h, size: size, shard: s, source: h.Source(s.Stream)}).read(ctx)
		},
		Idle: time.Second,
	}, nil
}

// windows contains the state of a shard's windows during one lease. Only one window is open at a
// time.
type windows struct {
	Handler
	size   time.Duration
	shard  *weir.Puller
	source Source

	open   bool
	span   span          // the open window
	state  []byte        // state of the open window
	upTo   weir.Position // position after the last record in the state
	latest time.Time     // arrival of the latest record; zero after a window that no later record ended
}

// read handles the shard until the shard or the lease ends.
func (w *windows) read(ctx context.Context) error {
	held := false
	for b, err := range w.shard.Batches() {
		if err != nil {
			return nil // the next owner starts the open window again
		}
		for rest := b.Records; len(rest) > 0; {
			n, of, latest := sameWindow(len(rest), func(i int) time.Time { return rest[i].ArrivalTime() }, w.latest, w.size)
			if w.open && of != w.span {
				if err := w.final(ctx, b, false); err != nil {
					return err
				}
			}
			if !w.open {
				w.open, w.span, w.state = true, of, []byte(noState)
			}
			done, err := w.handle(ctx, b, rest[:n])
			if err != nil {
				return err
			}
			if done == n {
				w.latest = latest
			} // the window ended early; place the other records again
			rest = rest[done:]
		}
		if w.open && (b.End || w.span.passed(b.Tip)) {
			if err := w.final(ctx, b, false); err != nil {
				return err
			}
			w.latest = time.Time{}
		}
		if b.End {
			return nil // this marks the end of the shard
		}
		if held != w.open {
			if held = w.open; held {
				w.shard.Hold("by an open window")
			} else {
				w.shard.Hold("")
			}
		}
	}
	return nil
}

// handle passes records of the open window to the function. It returns how many of them are done.
// If the state gets too large, handle ends the window, and not all records are done.
func (w *windows) handle(ctx context.Context, b *weir.Batch, records []weir.Record) (done int, err error) {
	for done < len(records) {
		rest := records[done:]
		event, n := fill(w.source, rest, w.about(false, false).tail())
		if n == 0 {
			return done, errUnfit
		}
		failed, err := w.try(ctx, b, event, rest[:n])
		if err != nil {
			return done, err
		}
		done += failed
		w.upTo = records[done-1].Position()
		if len(w.state) > MaxState {
			if err := w.final(ctx, b, true); err != nil {
				return done, err
			}
			w.latest = time.Time{}
			return done, nil
		}
	}
	return done, nil
}

const (
	windowTries           = 5 // attempts of a call before the window is started again
	firstPause, lastPause = 100 * time.Millisecond, 5 * time.Second
)

// try passes an event to the function until the function has handled some of the records. It
// returns their number.
func (w *windows) try(ctx context.Context, b *weir.Batch, event []byte, records []weir.Record) (done int, err error) {
	err = w.again(ctx, b, func() error {
		answer, err := w.Invoke(ctx, b, event)
		if err != nil {
			return err
		}
		state, err := stateOf(answer)
		if err != nil {
			return err
		}
		if done = len(records); w.Report {
			if done, err = FailedFrom(answer, numbers(records)); err != nil {
				return err
			}
		}
		if done == 0 {
			return fmt.Errorf("%w (%s)", errReported, records[0].SequenceNumber)
		}
		w.state = state
		return nil
	})
	return done, err
}

// final sends the final event of the open window, and moves the checkpoint past the window.
func (w *windows) final(ctx context.Context, b *weir.Batch, early bool) error {
	event, _ := fill(w.source, nil, w.about(true, early).tail())
	err := w.again(ctx, b, func() error {
		if len(event) > MaxBytes {
			return fmt.Errorf("lambda: a state of %d bytes does not fit into an event of 6 MiB", len(w.state))
		}
		answer, err := w.Invoke(ctx, b, event)
		if err == nil && w.Report {
			_, err = FailedFrom(answer, nil)
		}
		return err
	})
	if err != nil {
		return err
	}
	w.open, w.state = false, nil
	return w.shard.Done(w.upTo)
}

// again repeats a call until it succeeds, at most windowTries times.
func (w *windows) again(ctx context.Context, b *weir.Batch, call func() error) error {
	for attempt := 1; ; attempt++ {
		err := call()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case attempt == windowTries:
			return fmt.Errorf("lambda: the window from %s failed %d times in a row and is begun again: %w", w.span.start.Format(time.RFC3339), attempt, err)
		}
		pause := retry.Pause(firstPause, lastPause, attempt)
		if w.Retries != nil {
			w.Retries(b, err, attempt, pause)
		}
		if err := retry.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

func (w *windows) about(final, early bool) about {
	return about{w.span, w.state, w.shard.Shard, w.source.StreamARN, final, early}
}
