package shardrun

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/emit"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/guard/guarded"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/lineage"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
)

// Config contains the options of a consumer that concern its shards, with their defaults.
type Config struct {
	App, Worker string
	Log         *slog.Logger // of the user

	// Batches.
	Batch       int           // most records of a batch, and without Keys of a read
	BatchBytes  int           // most bytes of data of a batch; 0 is no bound
	BatchWait   time.Duration // for which a batch waits that is not full; 0 is not at all
	Aggregates  batch.Mode
	Filters     bool    // User.Match selects records
	DropRepeats bool    // repeats of numbered records are dropped
	NotJSON     NotJSON // what becomes of records that the filter cannot read
	Reuse       bool    // the memory of a batch is used again after the handler has returned
	Poison      bool    // reused memory is filled with nonsense, and writes into Data end Run

	// Calls of the user's code.
	PerTerm bool          // each term has its own handler, from User.Open
	Pulls   bool          // that handler asks for batches
	Sink    bool          // User.Position says where reading begins
	Idle    time.Duration // without records after which the handler is called; 0 is never
	Keys    int           // partition keys of a shard at a time; 0 is one batch after the other
	Span    keyed.Limits  // with Keys
	// Partitions is the number of partitions into which the keys are divided; see [keyed.Span]. It
	// is 0 without partitions, and Keys is set if it is not 0.
	Partitions int
	RetryMin   time.Duration
	RetryMax   time.Duration

	// Failures.
	GiveUp       failure.Policy
	SuspectAfter int // deaths of owners after which records are handled one at a time
	Expired      source.IfExpired

	Times        lease.Times   // of the group
	ListInterval time.Duration // between two listings of a stream by the leader
	IdleInterval time.Duration // between two reads of a shard without new records
	FanOut       bool          // records are pushed
}

// Parallel reports whether partition keys are handled in parallel.
func (c *Config) Parallel() bool { return c.Keys > 0 }

// Drops reports whether the handler may not get records that were read.
func (c *Config) Drops() bool { return c.Filters || c.DropRepeats }

// NotJSON says how records that are not JSON are treated, if the filter needs JSON.
type NotJSON uint8

const (
	PassNotJSON NotJSON = iota // the handler gets them
	DropNotJSON                // they are dropped
	FailNotJSON                // each is a failure of the handler
)

// Shared contains the data that the shards of one run share. Its fields do not change once a shard
// has begun.
type Shared struct {
	Config
	User     User
	Run      Run
	Events   *emit.Events // nil before the run has begun
	Counters *Counters
	Log      *slog.Logger    // which waits for nothing
	Repeats  *slog.Logger    // as Log, for lines that many shards log for one cause
	Values   context.Context // of the context that the user gave to Run, without its end
	Store    *guarded.Store
	Lineage  *lineage.Lineage
	Budget   *memory.Budget
	Slots    *keyed.Slots // for calls of the handler, with Keys
	Brake    failure.Brake
	Recent   failure.Recent // records that were dead-lettered
	Turns    failure.Turns
}

// Run is the run that the shards belong to. Its methods may be called concurrently.
type Run interface {
	// Await waits if the shard has stalled or its handler was abandoned in this process before. It
	// reports whether to begin.
	Await(l *Loop) bool
	// End is called when a loop has ended.
	End(l *Loop)
	// Stopping begins the stop of the run. IsStopping reports whether the run stops.
	Stopping()
	IsStopping() bool
	// StreamGone and StreamBack log that a stream does not exist, and that it exists again.
	StreamGone(stream string, err error)
	StreamBack(stream string)
	// Throttled adds a throttled read to the history.
	Throttled(l *Loop, next time.Duration)
	// Setup returns the settings for reading the shards of a stream.
	Setup(stream string) *source.Setup
	// Pages returns the source of a shard's pages.
	Pages(l *Loop, at Position) Pages
	// LogPanic logs an error of the user's code: a panic with its stack, unless the last panic was
	// the same.
	LogPanic(to *slog.Logger, what string, err error, args ...any)
}

// Pages is the source of a shard's pages: a polling.Feed or a fanout.Reader. One goroutine at a
// time uses it, except for Status and Stop, which may be called at any time.
type Pages interface {
	// Next returns the next page. If there is no page, it returns the cause of ctx, or an error
	// that wraps source.ErrEmpty, streams.ErrNoShard or streams.ErrNoStream.
	Next(ctx context.Context) (source.Page, error)
	// Last makes one more read, without a retry.
	Last(ctx context.Context) (source.Page, error)
	Status() source.Status
	// Stop ends a subscription that the shard's next owner would have to replace.
	Stop()
	// Close ends reading and releases the memory and the subscription of the source.
	Close()
}

// Counters count what happens to the shards of a consumer. Each has the name of a field of
// weir.Counts, which says what it counts.
type Counters struct {
	Reads, RecordsRead, BytesRead, ReadsThrottled, ReadsFailed atomic.Uint64

	BatchesHandled, RecordsHandled, BytesHandled, HandlerFailures atomic.Uint64
	RecordsFiltered, RecordsNotJSON, RecordsSkipped               atomic.Uint64
	RecordsDeadLettered, DeadLettersFailed, RepeatsDropped        atomic.Uint64

	Checkpoints, LeasesTaken, LeasesEnded, LeasesLost, Stalls, StoreFailures atomic.Uint64
}
