package shardrun

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/pull"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Position is a place in a shard.
type Position = shard.Position

// User calls the user's code. Package weir implements it, and returns a panic of the user's code as
// an error. The methods may be called concurrently.
type User interface {
	// Open makes the handler of a term that begins at from.
	Open(ctx context.Context, t *group.Term, from Position) (Handler, error)
	// Shared returns a Handler for one shard. It is used if all shards share one handler of the
	// user.
	Shared() Handler
	// Position returns the position of the sink in a shard.
	Position(ctx context.Context, stream, shard string) (Position, error)
	// PutLetters makes dead letters durable.
	PutLetters(ctx context.Context, letters []deadletter.Letter) error
	// Match calls the filter for a record.
	Match(r *source.Record) (matches, isJSON bool, err error)
	// PanicIn returns the panic of the user's code that err wraps, or the zero Panic if there is
	// none.
	PanicIn(err error) Panic
	// Reject marks an error as permanent.
	Reject(err error) error
}

// Panic describes a panic of the user's code.
type Panic struct {
	Who   string // that panicked, such as "the handler"
	Text  string // of the error
	Stack string
}

// Handler is the user's handler of one shard.
type Handler interface {
	// Hand returns a new Handover with its Code. With keys in parallel, of is its Delivery.
	// Otherwise of is nil, and Hand makes the Delivery, too.
	Hand(of *delivery.Delivery) *Handover
	// Pulling returns the progress of the function that pulls, and nil if there is none.
	Pulling() *pull.Progress
	// Close ends a handler that Open has made.
	Close(ctx context.Context, why event.EndReason) error
}

// Code shows the records of a handover to the user's code. One goroutine at a time calls its
// methods.
type Code interface {
	// First sets the records of the first call. No other code uses their memory.
	First(run []source.Record)
	// Keyed sets the records of the first call of a handover that is used again. It copies them.
	Keyed(run []source.Record)
	// Reuse lets the records of a call use the memory of an earlier batch.
	Reuse()
	// Call calls the handler.
	Call(p delivery.Part) error
	// Blame returns the records that an error of the handler names, and whether the error is a
	// rejection.
	Blame(err error) (named []delivery.Named, rejected bool)
	// Forget drops the records of the first call. Release gives memory back that Reuse has taken.
	Forget()
	Release()
}

var (
	// ErrHandedOff is wrapped by errors if another worker gets the lease.
	ErrHandedOff = errors.New("weir: the shard is handed to another worker")
	// ErrForHeir is returned by weir.RecordFunc when another worker is to get the lease before all
	// records of the batch were tried. The next owner reads the rest again. Middleware between weir
	// and the RecordFunc may look for ErrHandedOff in it.
	ErrForHeir = fmt.Errorf("weir: the next owner handles the rest of the batch: %w", ErrHandedOff)
	// ErrStalled is the cause of a handler's context when the shard makes no progress.
	ErrStalled = errors.New("weir: the shard makes no progress")
	// ErrGoexit is the error of a function that ended its goroutine.
	ErrGoexit = errors.New("weir: the function ended its goroutine")
)

// StopError is returned by the user's code to end Run, which then returns Err.
type StopError struct{ Err error }

func (e *StopError) Error() string {
	if e.Err == nil {
		return "weir: the handler asked to stop"
	}
	return fmt.Sprintf("weir: the handler asked to stop: %v", e.Err)
}

func (e *StopError) Unwrap() error { return e.Err }

// stopIn returns the [StopError] that err wraps, or nil. No other error of the user's code ends
// Run.
func stopIn(err error) error {
	if err == nil {
		return nil // errors.As needs memory, and keys in parallel come here for each batch
	}
	var stop *StopError
	if errors.As(err, &stop) {
		return stop
	}
	return nil
}
