package http1

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrMalformed is wrapped by the error about an answer that is no HTTP/1.1, or one of which it
	// is not certain where it ends.
	ErrMalformed = errors.New("the answer is malformed")
	// ErrHeadTooLarge is wrapped by the error about an answer whose head has more bytes or fields
	// than are read.
	ErrHeadTooLarge = errors.New("the head of the answer is too large")
	// ErrSilent is the error of a call whose connection was given up because nothing came over it.
	// See [Listener]. It is context.DeadlineExceeded to errors.Is.
	ErrSilent error = silentError{}
	// ErrClosed is returned by Read after Close.
	ErrClosed = errors.New("the answer was closed")
)

type silentError struct{}

func (silentError) Error() string        { return "the connection is silent" }
func (silentError) Timeout() bool        { return true }
func (silentError) Temporary() bool      { return true }
func (silentError) Is(target error) bool { return target == context.DeadlineExceeded }

func malformed(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, a...))
}

// TimeoutError says that one of the client's own times was over, not the context's. It is a
// net.Error, and is context.DeadlineExceeded to errors.Is.
type TimeoutError struct {
	What  string
	After time.Duration
}

func (e *TimeoutError) Error() string { return fmt.Sprintf("no %s within %v", e.What, e.After) }

// Timeout is true.
func (e *TimeoutError) Timeout() bool { return true }

// Temporary is true.
func (e *TimeoutError) Temporary() bool { return true }

// Is makes it one with the error of a context whose time is over.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// because is err, or the cause of the context's end if that is what brought it about.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
