// Package window gathers the records of a shard in tumbling windows of their arrival time, or of a
// time in their payload, and hands over what became of each window when it has ended.
//
// A window's state lives in memory only. While a window is open, the checkpoint stays before its
// first record, so the next owner of the shard, after a crash or a hand-off, reads its records
// again and makes the same of them: a result is a function of its records, and its [Result.ID] is
// the same each time. Nothing but positions is kept.
//
// By itself a result is handed over at least once, so keep it under its ID. It is exactly once
// where it is written in the transaction that moves the position; sqlsink's Move is for that.
package window

import (
	"cmp"
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
	// Full: as much was open as [Config].MaxRecords or MaxBytes allow. What follows of its time is
	// a result of its own.
	Full
	// Aged: it was open for [Config].MaxAge. What follows of its time is a result of its own.
	Aged
	// ShardEnded: its shard was split or merged. What follows of its time is in the children. A
	// result that had passed or aged, and is made again later, may say this instead.
	ShardEnded
	// Late: these are records that came after their window had ended. Only with [Config].Time.
	Late
	// NoTime: these are records whose time cannot be right, by the time at which they arrived. Only
	// with [Config].Time.
	NoTime
)

// String is "passed", "full", "aged", "shard ended", "late" or "no time".
func (w Why) String() string {
	switch w {
	case Passed:
		return "passed"
	case Full:
		return "full"
	case Aged:
		return "aged"
	case ShardEnded:
		return "shard ended"
	case Late:
		return "late"
	case NoTime:
		return "no time"
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

// Results are those of a shard that have ended together, sorted by Start: one for each window and
// key. There may be none, when nothing but the position moves.
type Results[S any] struct {
	Term    weir.Term
	Windows []Result[S]
	// UpTo becomes the checkpoint when Emit has returned nil; From is where it was. Without
	// [Config].Time the records lie between the two. End says that the shard has ended; then UpTo
	// may be From.
	From, UpTo weir.Position
	End        bool
	// How many records between From and UpTo came after their window had ended, or had no time that
	// can be right. They are in results of their own, or went to [Config].Stray.
	Late, NoTime int
}

// Stray is a record that belongs to no open window.
type Stray struct {
	Record weir.Record // its Data lasts for the call
	Time   time.Time   // what [Config].Time said
	Why    Why         // Late or NoTime
}

// Config says what windows are made. Size, Add and Emit are required.
type Config[S any] struct {
	// Size is the length of a window, 1 s to 24 h.
	Size time.Duration
	// Time returns the time of a record, for windows of a time in its payload. By default the time
	// at which it arrived counts. It must depend on nothing but the record. An error is one of Add;
	// to go on without the record's time, return the zero time.
	//
	// A window ends when a record of its shard has a time that is Lateness past its end. What comes
	// for it later is [Late]. Changing Time, Size, Lateness or Ahead while windows are open may
	// count records of these twice, or not at all.
	Time func(r weir.Record) (time.Time, error)
	// Lateness is how much older than the latest time in its shard a record may be without being
	// late, 0 to 168h. Defaults to 0. Only with Time, as Ahead and Stray.
	Lateness time.Duration
	// Ahead is how far past its arrival a record's time may be, so that a wrong clock does not end
	// all windows. A time that is further ahead, and one before 1970, is no time: such a record is
	// [NoTime], and moves nothing. Defaults to 1 min, 1 ms to 8760h.
	Ahead time.Duration
	// Stray takes the records that are [Late] or [NoTime]. They are then in no result, but counted
	// in Results. It may be called again with the same ones; use [Drop] to do nothing with them. By
	// default they are in results of their own, which say why: those that are late for their
	// window, and those without a time for the one in which they arrived.
	Stray func(ctx context.Context, s Stray) error
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
	// bytes of data. What is open then ends as [Full], after the aggregate at hand if there is one.
	// They default to 1,000,000 records and 256 MiB. It is also what an owner reads again at most.
	// Changing them or MaxAge while windows are open may give these other parts.
	MaxRecords, MaxBytes int
	// MaxAge is how long after the arrival of the first record that is open what is open ends, as
	// [Aged]: when a record comes that arrived so much later, or when the shard is seen to have
	// nothing more for so long and Allowance. With Time it is how windows of a shard end to which
	// nothing comes. It then defaults to twice Size and Lateness together, 1 min at least; else to
	// 0, which is none, because windows end by the clock anyway. 1 s to 8760h.
	MaxAge time.Duration
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
	c.setDefaults()
	if err := c.check(); err != nil {
		return weir.ShardHandlers{}, err
	}
	return weir.ShardHandlers{
		Pull: func(ctx context.Context, s *weir.Shard) error { return c.read(ctx, s) },
		Idle: time.Second, Position: c.Position,
	}, nil
}

func (c *Config[S]) setDefaults() {
	c.MaxRecords = cmp.Or(c.MaxRecords, 1_000_000)
	c.MaxBytes = cmp.Or(c.MaxBytes, 256<<20)
	c.Allowance = cmp.Or(c.Allowance, 5*time.Second)
	if c.Time != nil {
		c.Ahead = cmp.Or(c.Ahead, time.Minute)
		c.MaxAge = cmp.Or(c.MaxAge, max(2*(c.Size+c.Lateness), time.Minute))
	}
	if c.New == nil {
		c.New = func() (none S) { return none }
	}
}

func (c *Config[S]) check() error {
	const longest = 8760 * time.Hour
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
	if c.Time == nil && (c.Lateness != 0 || c.Ahead != 0 || c.Stray != nil) {
		bad("Config.Lateness, Ahead and Stray are for Config.Time, which is nil: no record is late by its arrival")
	}
	if c.Lateness < 0 || c.Lateness > 168*time.Hour {
		bad("Config.Lateness %v must be between 0s and 168h", c.Lateness)
	}
	if c.Time != nil && (c.Ahead < time.Millisecond || c.Ahead > longest) {
		bad("Config.Ahead %v must be between 1ms and 8760h", c.Ahead)
	}
	if c.MaxRecords < 1 || c.MaxBytes < 1 {
		bad("Config.MaxRecords %d and MaxBytes %d must be above 0", c.MaxRecords, c.MaxBytes)
	}
	if c.MaxAge != 0 && (c.MaxAge < time.Second || c.MaxAge > longest) {
		bad("Config.MaxAge %v must be between 1s and 8760h", c.MaxAge)
	}
	if c.Allowance < time.Millisecond || c.Allowance > time.Hour {
		bad("Config.Allowance %v must be between 1ms and 1h", c.Allowance)
	}
	return errors.Join(problems...)
}

// Drop is a [Config].Stray that does nothing with them.
func Drop(context.Context, Stray) error { return nil }
