package streams

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/retry"
)

// Learner repeatedly calls a user's function that returns the current streams.
type Learner struct {
	// Ask is the user's function. It must return a panic as an error.
	Ask func(ctx context.Context) ([]string, error)
	// Learned processes an answer. An error counts as a failure of Ask.
	Learned func(names []string) error
	// Failed is called for each failure. since is the time of the first failure after the last
	// answer.
	Failed func(err error, failures int, since time.Time)
	Every  time.Duration // the pause after an answer, and the maximum pause after a failure
	// Low and High limit the pause after a failure, see [retry.Pause].
	Low, High time.Duration

	asked chan answer // the pending call; nil if there is none
}

// answer is the result of the function.
type answer struct {
	names []string
	err   error
}

const (
	// askTimeout is the minimum time that the function gets.
	askTimeout = 30 * time.Second
	// askGrace is how long the function may take to return after its context has ended.
	askGrace = time.Second
)

var errStillAsked = errors.New("a call whose context has ended has not returned yet")

// Run calls Ask until it gets an answer, and then closes known. It continues to call Ask until ctx
// ends.
func (l *Learner) Run(ctx context.Context, known chan<- struct{}) {
	var since time.Time
	for failures := 0; ; {
		err := l.learn(ctx)
		pause := l.Every
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if failures++; failures == 1 {
				since = time.Now()
			}
			l.Failed(err, failures, since)
			pause = min(retry.Pause(l.Low, l.High, failures), l.Every)
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

// Left reports whether a call has ignored the end of its context. It may be called after Run.
func (l *Learner) Left() bool { return l.asked != nil && len(l.asked) == 0 }

func (l *Learner) learn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(l.Every, askTimeout))
	names, err := l.ask(ctx)
	cancel()
	if err != nil {
		return err
	}
	return l.Learned(names)
}

// ask calls the function. If the function ignores the end of its context, ask returns without
// waiting for it. There is no further call until that call has returned.
func (l *Learner) ask(ctx context.Context) ([]string, error) {
	if l.asked == nil {
		l.asked = make(chan answer, 1)
		go func(to chan<- answer) {
			a := answer{err: errors.New("it ended its goroutine")}
			defer func() { to <- a }()
			a.names, a.err = l.Ask(ctx)
		}(l.asked)
	} else if len(l.asked) == 0 {
		return nil, errStillAsked
	}
	var late <-chan time.Time
	for ended := ctx.Done(); ; {
		select {
		case a := <-l.asked:
			l.asked = nil
			return a.names, a.err
		case <-ended:
			timer := time.NewTimer(askGrace)
			defer timer.Stop()
			ended, late = nil, timer.C
		case <-late:
			return nil, errStillAsked
		}
	}
}
