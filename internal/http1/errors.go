package http1

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrMalformed is wrapped if an answer is not valid HTTP/1.1, or if its end is ambiguous.
	ErrMalformed = errors.New("the answer is malformed")
	// ErrHeadTooLarge is wrapped if the head of an answer exceeds the limit of bytes or fields.
	ErrHeadTooLarge = errors.New("the head of the answer is too large")
	// ErrSilent is the error of a call whose connection was closed because no byte arrived. See
	// [Listener]. errors.Is matches it with context.DeadlineExceeded.
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

// TimeoutError reports that one of the client's own timeouts has passed, and not the context's. It
// is a net.Error. errors.Is matches it with context.DeadlineExceeded.
type TimeoutError struct {
	What  string
	After time.Duration
}

func (e *TimeoutError) Error() string { return fmt.Sprintf("no %s within %v", e.What, e.After) }

// Timeout returns true.
func (e *TimeoutError) Timeout() bool { return true }

// Temporary returns true.
func (e *TimeoutError) Temporary() bool { return true }

// Is matches the error of an expired context.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// because returns err, or the cause of the context's end if that caused it.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
