package shardrun

import "time"

// failing is the history of the user's code's failures at one position.
type failing struct {
	at    Position
	pulls int  // of the function that pulls
	stack bool // of a panic, was logged
}

// failingAt returns the history of failures at a position. It is a new one if the last failure was
// at another position.
func failingAt(l *Loop, at Position) *failing {
	if l.failing == nil || l.failing.at != at {
		l.failing = &failing{at: at}
	}
	return l.failing
}

// tellFailure logs and reports a failure of the user's code. It logs the stack of a panic once
// until there is progress, because the stack is the same at each attempt.
func (f *failing) tellFailure(l *Loop, what string, e Failed) {
	e.At = l.term.At()
	args := []any{"seq", e.At}
	if e.First != "" {
		args = append(args, "records", e.Records, "first", e.First, "last", e.Last)
	}
	args = append(args, "attempt", e.Attempt, "next", e.Next.Round(time.Millisecond), "err", e.Err)
	if stack := l.in.User.PanicIn(e.Err).Stack; stack != "" && !f.stack {
		f.stack = true
		args = append(args, "stack", stack)
	}
	l.Repeated().Warn(what, args...)
	l.in.Tell.HandlerFailed(l.term.Lease.Key, e)
}
