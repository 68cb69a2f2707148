// Package window gathers the records of a shard in tumbling windows of their arrival time, and
// hands over what became of each window when it has ended.
//
// A window's state lives in memory only. While a window is open, the checkpoint stays at its first
// record, so the next owner of the shard, after a crash or a hand-off, reads its records again and
// makes the same of them: a result is a function of its records, and its [Result.ID] is the same
// each time. Nothing but positions is kept.
//
// By itself a result is handed over at least once, so keep it under its ID. It is exactly once
// where it is written in the transaction that moves the position; sqlsink's Move is for that.
package window

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
)

// Why says why a window has ended.
type Why int

const (
	// Passed: its time is over. Nothing of it can come any more.
	Passed Why = iota
	// Full: it had [Config].MaxRecords or MaxBytes. What follows of its time is a result of its
	// own.
	Full
	// ShardEnded: its shard was split or merged. What follows of its time is in the children. A
	// result that had passed, and is made again later, may say this instead.
	ShardEnded
)

// String is "passed", "full" or "shard ended".
func (w Why) String() string {
	switch w {
	case Passed:
		return "passed"
	case Full:
		return "full"
	case ShardEnded:
		return "shard ended"
	}
	return fmt.Sprintf("Why(%d)", int(w))
}

// Result is what became of a window, or of a part of one that ended early: Why says so.
type Result[S any] struct {
	ID    string // unique among all results, and the same each time
	Key   string // the partition key with [Config].ByKey, else ""
	State S
	// Start and End are of the window. Start is a multiple of Size since 1970, in UTC.
	Start, End time.Time
	Records    int
	Why        Why
}

// Results are those of a shard that have ended together: one, or one for each key.
type Results[S any] struct {
	Term    weir.Term
	Windows []Result[S]
	// The records lie after From and up to UpTo, which becomes the checkpoint when Emit has
	// returned nil. End says that the shard has ended; then Windows may be empty, and UpTo is
	// From.
	From, UpTo weir.Position
	End        bool
}

// Config says what windows are made. Size, Add and Emit are required.
type Config[S any] struct {
	// Size is the length of a window, 1 s to 24 h.
	Size time.Duration
	// ByKey has a window for each partition key instead of one for the shard.
	ByKey bool
	// New makes the state of a window. By default it is S's zero value.
	New func() S
	// Add returns the state with a record. It must not keep the record's Data, and depend on
	// nothing but its arguments, or results are not the same when they are made again.
	Add func(state S, r weir.Record) (S, error)
	// Emit takes results. After an error or a panic of Add or Emit all is read and made again from
	// the start of what is open, after a pause; [weir.Stop] ends Run.
	Emit func(ctx context.Context, r Results[S]) error
	// MaxRecords and MaxBytes bound what is read for the open windows of a shard, in records and
	// bytes of data. What is open then ends as [Full]. They default to 1,000,000 records and 256
	// MiB. It is also what an owner reads again at most. Changing them while windows are open may
	// give these other parts.
	MaxRecords, MaxBytes int
	// Allowance is how long after a window's end, by this machine's clock, the shard must have been
	// seen to have nothing more for the window to end although no later record has come. It has to
	// be more than this clock is ahead of the service's: a record that comes after its window was
	// ended is counted in a result of its own, with the same Start and another ID. Defaults to
	// 5 s, 1 ms to 1 h.
	Allowance time.Duration
	// Position is that of [weir.ShardHandlers], for sinks that keep positions.
	Position func(ctx context.Context, stream, shard string) (weir.Position, error)
}

// Handlers is for [weir.Consumer.RunShards]. It fails on a configuration that makes no sense.
func Handlers[S any](c Config[S]) (weir.ShardHandlers, error) {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf("window: "+format, args...)) }
	if c.Size < time.Second || c.Size > 24*time.Hour {
		bad("Config.Size %v must be between 1s and 24h", c.Size)
	}
	if c.Add == nil {
		bad("Config.Add is nil: say what becomes of a record")
	}
	if c.Emit == nil {
		bad("Config.Emit is nil: say where results go")
	}
	if c.MaxRecords == 0 {
		c.MaxRecords = 1_000_000
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 256 << 20
	}
	if c.MaxRecords < 1 || c.MaxBytes < 1 {
		bad("Config.MaxRecords %d and MaxBytes %d must be above 0", c.MaxRecords, c.MaxBytes)
	}
	if c.Allowance == 0 {
		c.Allowance = 5 * time.Second
	}
	if c.Allowance < time.Millisecond || c.Allowance > time.Hour {
		bad("Config.Allowance %v must be between 1ms and 1h", c.Allowance)
	}
	if c.New == nil {
		c.New = func() (none S) { return none }
	}
	if err := errors.Join(problems...); err != nil {
		return weir.ShardHandlers{}, err
	}
	return weir.ShardHandlers{
		Pull: func(ctx context.Context, s *weir.Shard) error {
			t := &term[S]{Config: &c, shard: s, from: s.From}
			return t.run(ctx)
		},
		Idle: time.Second, Position: c.Position,
	}, nil
}
