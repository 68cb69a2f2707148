package weir

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/weir-go/weir/internal/fanout"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/run"
	"github.com/weir-go/weir/internal/shardrun"
)

var (
	// ErrLeaseLost is the cause of a handler's context when the shard may belong to another worker:
	// the lease was moved, or the store did not answer for so long that its leases are no longer
	// valid. [Batch.Done] and [Batch.Checkpoint] return it, too.
	ErrLeaseLost = group.ErrLeaseLost
	// ErrStopping is the cause of a handler's context when Run stops and Options.Timing.StopTimeout
	// is over.
	ErrStopping = group.ErrStopping
	// ErrStalled is the cause of a handler's context when the worker gives up the shard: because
	// the handler has worked for longer than Options.Timing.HandlerTimeout, or, with
	// Options.Concurrency, because reading has stalled.
	ErrStalled = shardrun.ErrStalled
	// ErrHandedOff ends the iteration of [Puller.Batches] when another worker gets the lease. If
	// your handler calls a [RecordFunc], the error of the RecordFunc also wraps ErrHandedOff when
	// another worker gets the lease.
	ErrHandedOff = shardrun.ErrHandedOff
	// ErrAbandoned is wrapped by the error of Run if handlers did not return although their
	// contexts had ended. The error names the shards of these handlers. The leases are released,
	// but the goroutines of the handlers still run. The error also wraps ErrAbandoned if OnEvent,
	// the logger or DiscoverStreams did not return.
	ErrAbandoned = run.ErrAbandoned
	// ErrNotSaved is wrapped by the error of Run if Run could not save the progress of handled
	// records before it returned. Either the store did not answer while Run stopped, or other
	// workers had ended this worker's session. The text names the shards. Their last records are
	// handled again.
	ErrNotSaved = group.ErrNotSaved
	// ErrNotReleased is wrapped by the error of Run if the store did not answer while Run stopped,
	// so the store may still count leases as this worker's. The text names the shards that the
	// worker knows of; a leader may have assigned more to it since the last answer. Other workers
	// take over these leases after Options.Timing.FailoverAfter.
	ErrNotReleased = group.ErrNotReleased
	// ErrStreamNotFound is wrapped by the error of Run when a stream of Options.Streams does not
	// exist and was never read, unless DiscoverStreams is set. The error of a [Reader] wraps it,
	// too.
	ErrStreamNotFound = run.ErrStreamNotFound
	// ErrNoConsumer means that a fan-out consumer is not registered, with [FanOutExisting] or
	// [FanOut].ARNs. The error of a [Reader] wraps it. A [Consumer] polls while the consumer is
	// missing, and [event.FanOutChanged].Err wraps it.
	ErrNoConsumer = fanout.ErrNoConsumer
)

// OptionError says what is wrong with one option. [New], [NewReader], [Consumer.RunShards],
// [Consumer.RunPull] and [Consumer.Records] return it, joined with others if there are several
// problems.
type OptionError struct {
	Option string // the option, such as "Options.OnFailure.MaxAge" or "ReaderOptions.Start"
	Err    error  // the problem and its remedy
}

// Error returns the option and the problem.
func (e *OptionError) Error() string { return "weir: " + e.Option + " " + e.Err.Error() }

// Unwrap returns Err.
func (e *OptionError) Unwrap() error { return e.Err }

// badOption returns an [OptionError]. format and args describe the problem.
func badOption(option, format string, args ...any) error {
	return &OptionError{option, fmt.Errorf(format, args...)}
}

var (
	errNoClient = errors.New("weir: the Kinesis client is nil; make one with kinesis.NewFromConfig")
	errNoStore  = errors.New("weir: the store is nil; memstore.New() keeps everything in memory and loses it when the process ends")
)

// PanicError is a panic of the user's code, such as a handler, Options.OnEvent, a logger or a
// store. [event.HandlerFailed].Err and [ShardStatus].Err wrap it, and errors.As finds it.
type PanicError struct {
	Who   string // that panicked, such as "the handler"
	Value any    // the value passed to panic
	Stack string // of its goroutine, as [debug.Stack] has it, of many lines
}

// Error returns the function that panicked and the value, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("weir: %s panicked: %v", e.Who, e.Value) }

// Unwrap returns the value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Stop returns an error with which a handler ends Run. Run then stops in order and returns err.
// Records of the batch that [Batch.Done] or [Batch.Checkpoint] did not mark are handled again by
// the shard's next owner.
func Stop(err error) error { return &shardrun.StopError{Err: err} }

// StopCause reports whether err contains an error of [Stop], and returns the argument of Stop. It
// is for packages that call handlers, such as package queue.
func StopCause(err error) (cause error, stop bool) {
	var s *shardrun.StopError
	if !errors.As(err, &s) {
		return nil, false
	}
	return s.Err, true
}

// panicked returns a panic as an error. The function that recovered the panic calls it.
func panicked(who string, p any) error { return &PanicError{who, p, string(debug.Stack())} }

// contained calls f and returns its error or its panic, so that a panic is retried like an error
// and cannot end the process.
func contained(who string, f func() error) (err error) {
	lock.Free(who)
	defer func() {
		if p := recover(); p != nil {
			err = panicked(who, p)
		}
	}()
	return f()
}
