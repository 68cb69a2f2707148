package weir

import (
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
	// the lease was moved, or the store was silent for too long to trust it. [Batch.Checkpoint]
	// fails with it too.
	ErrLeaseLost = group.ErrLeaseLost
	// ErrStopping is the cause of a handler's context when Run stops and Options.StopTimeout is
	// over.
	ErrStopping = group.ErrStopping
	// ErrStalled is the cause of a handler's context when the shard is given up because it makes no
	// progress: the handler has worked for longer than Options.HandlerTimeout.
	ErrStalled = shardrun.ErrStalled
	// ErrHandedOff ends the iteration of [Shard.Batches] when another worker gets the lease. The
	// error that [RecordFunc] then returns to a handler around it also wraps ErrHandedOff.
	ErrHandedOff = shardrun.ErrHandedOff
	// ErrAbandoned is wrapped by the error of Run when handlers did not return although their
	// contexts ended. The error names their shards. Their leases are released; their goroutines
	// still run.
	ErrAbandoned = run.ErrAbandoned
	// ErrNotSaved is wrapped by the error of Run when records were handled and their progress could
	// not be saved before Run returned, because the store did not answer while Run stopped, or
	// because other workers had ended this worker's session meanwhile. The text names the shards.
	// Their last records are handled again.
	ErrNotSaved = group.ErrNotSaved
	// ErrNotReleased is wrapped by the error of Run when leases could not be given back before Run
	// returned, because the store did not answer while Run stopped. The text names the shards.
	// Other workers take them over after Options.FailoverAfter.
	ErrNotReleased = group.ErrNotReleased
	// ErrStreamNotFound is wrapped by the error of Run when a configured stream does not exist.
	ErrStreamNotFound = run.ErrStreamNotFound
	// ErrNoConsumer is wrapped by the error of a [Reader] that is to read by fan-out through a
	// consumer that is not registered, and not to register it: see [ReaderOptions.FanOutConsumer].
	ErrNoConsumer = fanout.ErrNoConsumer
)

// PanicError is a panic of the user's code, as an error: of a handler, a hook of [Events], a
// logger, a store. The error of [HandlerFailed] and what a shard's Status says wrap one; errors.As
// finds it.
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

// Stop is returned by a handler to end Run, which then returns err. The batch is not checkpointed
// except for records that [Batch.Checkpoint] saved, so the shard's next reader handles it again.
func Stop(err error) error { return &shardrun.StopError{Err: err} }

// panicked is a panic as an error. It is called where the panic was recovered.
func panicked(who string, p any) error { return &PanicError{who, p, string(debug.Stack())} }

// contained turns a panic of the user's code into an error, so that it is retried like one and
// cannot take the process down.
func contained(who string, f func() error) (err error) {
	lock.Free(who)
	defer func() {
		if p := recover(); p != nil {
			err = panicked(who, p)
		}
	}()
	return f()
}
