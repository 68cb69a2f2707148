// Package window groups the records of a shard into tumbling windows. The windows are based on the
// arrival time of records, or on a time in their payload. The package delivers the result of each
// window when the window ends.
//
// The state of a window is kept only in memory; the store contains only positions. While a window
// is open, the checkpoint stays before its first record. After a crash or a handoff, the next owner
// of the shard reads the records again. It computes the same result with the same [Result.ID],
// because a result depends only on its records.
//
// Results are delivered at least once, so store them under their IDs. To get each result exactly
// once, write it in the transaction that also moves the position; see Move in sqlsink.
package window

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
)

// Why is the reason for which a window ended.
type Why int

const (
	// Passed means that the time of the window is over. Without [Config].Time, no more records of
	// the window can arrive. With it, later records of the window are [Late].
	Passed Why = iota
	// Full means that the open windows reached [Config].MaxRecords or MaxBytes. Later records of
	// the window are in a separate result.
	Full
	// Aged means that the window was open for [Config].MaxAge. Later records of the window are in a
	// separate result.
	Aged
	// ShardEnded means that the shard was split or merged. Later records of the window are in the
	// child shards. If a result is computed again, its reason can change from Passed or Aged to
	// ShardEnded.
	ShardEnded
	// Late means that the records of this result arrived after their window had ended. It occurs
	// only with [Config].Time.
	Late
	// NoTime means that the time of the records is implausible, compared with their arrival. It
	// occurs only with [Config].Time.
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

// Result is the result of a window. If the window ended early, it is the result of a part of the
// window; see Why.
type Result[S any] struct {
	ID    string // unique among all results; a repeated result has the same ID
	Key   string // the partition key if [Config].ByKey is set, otherwise ""
	State S
	// Start and End are the bounds of the window, in UTC. Start is a multiple of Size since 1970.
	Start, End time.Time
	Records    int
	Why        Why
}

// Results contains the results of a shard that ended at the same time, sorted by Start. There is
// one result for each window, or with [Config].ByKey for each window and key. The list is empty if
// only the position moves.
type Results[S any] struct {
	Term    weir.Term
	Windows []Result[S]
	// UpTo becomes the checkpoint when Emit has returned nil. From is the previous checkpoint.
	// Without [Config].Time, the records of the results lie between From and UpTo. End reports that
	// the shard has ended; then UpTo may equal From.
	From, UpTo weir.Position
	End        bool
	// Late and NoTime count records between From and UpTo. Late records arrived after their window
	// had ended. NoTime records have an implausible time. These records are in separate results, or
	// [Config].Stray has received them.
	Late, NoTime int
}

// Stray is a record that belongs to no open window.
type Stray struct {
	Record weir.Record // its Data is valid only during the call
	Time   time.Time   // time from [Config].Time
	Why    Why         // Late or NoTime
}

// Config configures windows. Size, Add and Emit are required.
type Config[S any] struct {
	// Size is the length of a window, from 1 s to 24 h. It is required.
	Size time.Duration
	// Time returns the time of a record, for windows by a time in the payload. The default is the
	// arrival time. The result must depend only on the record. An error has the same effect as an
	// error of Add. To ignore the time of a record, return the zero time.
	//
	// A window ends when a record of its shard has a time at least Lateness after the window's end.
	// Records of the window that arrive after that are [Late].
	//
	// Do not change Time, Size, Lateness or Ahead while windows are open: their records may then be
	// counted twice or not at all. If the record at which reading resumes has expired, the records
	// after it may be counted twice.
	Time func(r weir.Record) (time.Time, error)
	// Lateness is how far a record's time may lie behind the latest time in its shard before the
	// record can be late. It ranges from 0 to 168 h, and the default is 0. Lateness, Ahead and
	// Stray apply only with Time.
	Lateness time.Duration
	// Ahead is how far a record's time may lie after its arrival. The limit keeps a wrong clock
	// from ending all windows. A time further ahead, or before 1970, is invalid. Such a record is
	// [NoTime], and does not advance the time of the shard. Ahead ranges from 1 ms to 8760 h, and
	// the default is 1 min.
	Ahead time.Duration
	// Stray receives the records that are [Late] or [NoTime]. Results counts them, but no result
	// contains them. Stray may be called again with the same records. Use [Drop] to ignore them.
	//
	// Without Stray, these records are in separate results with the reason Late or NoTime. A late
	// record is in a result for its window. A record without a valid time is in a result for the
	// window of its arrival time.
	Stray func(ctx context.Context, s Stray) error
	// ByKey creates a window for each partition key, instead of one window for all keys.
	ByKey bool
	// New returns the initial state of a window. The default is the zero value of S.
	New func() S
	// Add adds a record to the state and returns the new state. It must not keep the record's Data.
	// Its result must depend only on its arguments, because otherwise repeated results differ.
	Add func(state S, r weir.Record) (S, error)
	// Emit receives results. If Add or Emit returns an error or panics, the records of all open
	// windows are read again after a backoff. An error from [weir.Stop] ends Run instead.
	Emit func(ctx context.Context, r Results[S]) error
	// MaxRecords and MaxBytes limit the records in the open windows of a shard: their number, and
	// their data in bytes. At the limit, all open windows end as [Full], after the current
	// aggregate. The defaults are 1,000,000 records and 256 MiB. The limits also bound how much a
	// new owner reads again. If you change them or MaxAge while windows are open, these windows may
	// be divided differently.
	MaxRecords, MaxBytes int
	// MaxAge ends the open windows as [Aged] this long after the arrival of their first record.
	// They end when a record arrives that is later than the first record by MaxAge, or when the
	// shard is seen to be empty MaxAge plus Allowance after the first record. MaxAge ranges from 1
	// s to 8760 h.
	//
	// With Time, only MaxAge ends the windows of a shard that receives no more records. Its default
	// is then 2 × (Size + Lateness), but at least 1 min. Without Time, the clock ends windows,
	// and the default is 0, which disables MaxAge.
	MaxAge time.Duration
	// Allowance delays the end of a window that no later record ends. The shard must be seen to be
	// empty at least this long after the window's end, by the clock of this machine. Allowance must
	// be longer than the time by which this clock is ahead of the service's clock. Otherwise a
	// record can arrive after its window has ended: it is then counted in a separate result, with
	// the same Start and another ID. Allowance ranges from 1 ms to 1 h, and the default is 5 s.
	Allowance time.Duration
	// Position is passed to [weir.PullHandler]. Use it for sinks that store positions.
	Position func(ctx context.Context, stream, shard string) (weir.Position, error)
}

// PullHandler returns the handler for [weir.Consumer.RunPull]. It returns an error if the
// configuration is invalid.
func PullHandler[S any](c Config[S]) (weir.PullHandler, error) {
	c.setDefaults()
	if err := c.check(); err != nil {
		return weir.PullHandler{}, err
	}
	return weir.PullHandler{
		Pull: func(ctx context.Context, s *weir.Puller) error { return c.read(ctx, s) },
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
		bad("Config.Add is nil: set the function that adds a record to a window")
	}
	if c.Emit == nil {
		bad("Config.Emit is nil: set the function that receives the results")
	}
	if c.Time == nil && (c.Lateness != 0 || c.Ahead != 0 || c.Stray != nil) {
		bad("Config.Lateness, Ahead and Stray need Config.Time: with windows by arrival time, no record is late")
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

// Drop ignores the record. Use it as [Config].Stray.
func Drop(context.Context, Stray) error { return nil }
