package streams

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/retry"
)

// Learner asks a function of the user's which streams there are, again and again.
type Learner struct {
	// Ask is that function. It returns a panic as an error.
	Ask func(ctx context.Context) ([]string, error)
	// Learned takes in an answer. Its error counts as a failure of Ask.
	Learned func(names []string) error
	// Failed is told of each failure, and when the first one since the last answer was.
	Failed func(err error, failures int, since time.Time)
	Every  time.Duration // the pause after an answer, and the longest after a failure
	// Low and High bound the pause after a failure, see [retry.Pause].
	Low, High time.Duration

	asked chan answer // the pending call; nil while there is none
}

// answer is what the function returned.
type answer struct {
	names []string
	err   error
}

const (
	// askTimeout is how long the function may take at least.
	askTimeout = 30 * time.Second
	// askGrace is how long after the end of its context the function may take to return.
	askGrace = time.Second
)

var errStillAsked = errors.New("a call whose context has ended has not returned yet")

// Run asks until there is an answer, closes known, and asks on until ctx ends.
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

// Left reports whether a call has ignored that its context has ended. It is for use after Run.
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

// ask calls the function. A call that ignores that its context has ended is left behind, and there
// is no other until it has returned.
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
