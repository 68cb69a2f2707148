package http1

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrMalformed is wrapped by errors about an answer that is not valid HTTP/1.1 or whose end is
	// ambiguous.
	ErrMalformed = errors.New("the answer is malformed")
	// ErrHeadTooLarge is wrapped if the head of an answer has too many bytes or fields.
	ErrHeadTooLarge = errors.New("the head of the answer is too large")
	// ErrSilent is returned by a call whose connection was closed because no byte arrived. See
	// [Listener]. errors.Is matches it with context.DeadlineExceeded.
	ErrSilent error = silentError{}
	// ErrClosed is returned by Read after Close, and by Answer if no request was sent with Ask.
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

// TimeoutError is returned if a timeout of the client has passed, as opposed to the context's
// deadline. It is a net.Error. errors.Is matches it with context.DeadlineExceeded.
type TimeoutError struct {
	What  string
	After time.Duration
}

func (e *TimeoutError) Error() string { return fmt.Sprintf("no %s within %v", e.What, e.After) }

// Timeout returns true.
func (e *TimeoutError) Timeout() bool { return true }

// Temporary returns true.
func (e *TimeoutError) Temporary() bool { return true }

// Is reports whether target is context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// because returns the cause of ctx if ctx has ended, and otherwise err.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
