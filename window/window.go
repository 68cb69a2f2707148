// Package window groups the records of a shard into tumbling windows, by arrival time or by a time
// in their payload, and delivers the result of each window when it ends.
//
// The state of a window is in memory only. While a window is open, the checkpoint stays before its
// first record. After a crash or a handoff the next owner of the shard reads the records again and
// computes the same result. A result is a function of its records, and its [Result.ID] does not
// change. Only positions are stored.
//
// Results are delivered at least once, so store them under their IDs. They are exactly once if you
// write them in the transaction that moves the position; see Move in sqlsink.
package window

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
)

// Why is the reason why a window has ended.
type Why int

const (
	// Passed: its time is over. No more records of it can arrive.
	Passed Why = iota
	// Full: the open windows reached [Config].MaxRecords or MaxBytes. Later records of its time
	// make a separate result.
	Full
	// Aged: it was open for [Config].MaxAge. Later records of its time make a separate result.
	Aged
	// ShardEnded: its shard was split or merged. Later records of its time are in the children. A
	// result that was Passed or Aged can have this reason when it is computed again.
	ShardEnded
	// Late: these records arrived after their window had ended. Only with [Config].Time.
	Late
	// NoTime: these records have an implausible time, compared with their arrival. Only with
	// [Config].Time.
	NoTime
)

// String returns "passed", "full", "aged", "shard ended", "late" or "no time".
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

// Result is the result of a window, or of a part of one that ended early; see Why.
type Result[S any] struct {
	ID    string // unique among all results, and the same at each repetition
	Key   string // the partition key with [Config].ByKey, otherwise ""
	State S
	// Start and End are the bounds of the window. Start is a multiple of Size since 1970, in UTC.
	Start, End time.Time
	Records    int
	Why        Why
}

// Results are results of a shard that ended together, sorted by Start: one for each window and key.
// The list is empty if only the position moves.
type Results[S any] struct {
	Term    weir.Term
	Windows []Result[S]
	// UpTo becomes the checkpoint when Emit has returned nil; From is the previous one. Without
	// [Config].Time the records are between the two. End reports the end of the shard; UpTo may
	// then equal From.
	From, UpTo weir.Position
	End        bool
	// Late and NoTime count records between From and UpTo that arrived after their window had
	// ended, or had an implausible time. They are in separate results, or went to [Config].Stray.
	Late, NoTime int
}

// Stray is a record that belongs to no open window.
type Stray struct {
	Record weir.Record // its Data lasts for the call
	Time   time.Time   // returned by [Config].Time
	Why    Why         // Late or NoTime
}

// Config configures windows. Size, Add and Emit are required.
type Config[S any] struct {
	// Size is the length of a window, from 1 s to 24 h.
	Size time.Duration
	// Time returns the time of a record, for windows by a time in the payload. By default the
	// arrival time is used. The result must depend only on the record. An error counts as an error
	// of Add. To continue without the record's time, return the zero time.
	//
	// A window ends when a record of its shard has a time at least Lateness after its end. Records
	// that arrive for it later are [Late]. If you change Time, Size, Lateness or Ahead while
	// windows are open, their records may be counted twice, or not at all. If the record at which
	// reading resumes has expired, the records after it may be counted twice.
	Time func(r weir.Record) (time.Time, error)
	// Lateness is how much older than the latest time in its shard a record may be without being
	// late, from 0 to 168 h. Defaults to 0. Only with Time, like Ahead and Stray.
	Lateness time.Duration
	// Ahead is how far after its arrival a record's time may be, so that a wrong clock does not end
	// all windows. A time that is further ahead, or before 1970, is invalid: the record is
	// [NoTime], and does not advance the shard's time. From 1 ms to 8760 h. Defaults to 1 min.
	Ahead time.Duration
	// Stray receives the records that are [Late] or [NoTime]. They are then in no result, but
	// Results counts them. It may be called again with the same records; use [Drop] to ignore them.
	// By default they are in separate results with that reason: late records in the one of their
	// window, records without a time in the one of their arrival.
	Stray func(ctx context.Context, s Stray) error
	// ByKey makes a window for each partition key instead of one for the shard.
	ByKey bool
	// New returns the initial state of a window. Defaults to S's zero value.
	New func() S
	// Add returns the state with a record added. It must not keep the record's Data, and must
	// depend only on its arguments. Otherwise repeated results differ.
	Add func(state S, r weir.Record) (S, error)
	// Emit receives results. After an error or a panic of Add or Emit, the records of all open
	// windows are read again after a backoff; [weir.Stop] ends Run.
	Emit func(ctx context.Context, r Results[S]) error
	// MaxRecords and MaxBytes limit the records of the open windows of a shard, in number and in
	// bytes of data. At the limit the open windows end as [Full], after the current aggregate. The
	// defaults are 1,000,000 records and 256 MiB. They also limit how much a new owner reads again.
	// If you change them or MaxAge while windows are open, these may be split differently.
	MaxRecords, MaxBytes int
	// MaxAge ends the open windows as [Aged] this long after the arrival of their first record:
	// when a record arrives that much later, or when the shard was seen to be empty for MaxAge plus
	// Allowance. With Time, only MaxAge ends the windows of a quiet shard, and its default is twice
	// Size plus Lateness, at least 1 min. Without Time, windows end by the clock, and the default
	// is 0, which disables MaxAge. From 1 s to 8760 h.
	MaxAge time.Duration
	// Allowance is how long after a window's end, by the clock of this machine, the shard must have
	// been seen to be empty for the window to end without a later record. It must exceed how far
	// this clock is ahead of the service's. A record that arrives after its window has ended is
	// counted in a separate result, with the same Start and another ID. From 1 ms to 1 h. Defaults
	// to 5 s.
	Allowance time.Duration
	// Position is passed to [weir.ShardHandlers], for sinks that keep positions.
	Position func(ctx context.Context, stream, shard string) (weir.Position, error)
}

// Handlers returns handlers for [weir.Consumer.RunShards]. It returns an error for an invalid
// configuration.
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

// Drop is a [Config].Stray that ignores the records.
func Drop(context.Context, Stray) error { return nil }
