package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/failure"
)

// Options say which queue a [Consumer] consumes, and how. Queue is required. The zero value of
// every other field is its default.
type Options struct {
	// Queue is the queue, by name or ARN. Required. A name costs calls of ListQueues at the start
	// of Run.
	Queue string
	// App names the application in dead letters. Defaults to Queue.
	App string
	// API makes the calls. Defaults to a [Client] with the configuration that [New] gets.
	API API

	// Concurrency is the largest number of handler calls at the same time, 1 to 10,000. Defaults to
	// 10.
	Concurrency int
	// BatchSize is the largest number of records of one call of a [BatchFunc], 1 to 1,000. Defaults
	// to 10. A call does not wait for a full batch. A [RecordFunc] gets one record.
	BatchSize int
	// OrderByKey handles the records of one partition key one at a time, in the order of their
	// arrival in this process. A failed record holds up the later ones of its key. This is best
	// effort: the queue has no order, other processes may have records of the same key, and
	// records without a key have no order. By default records are handled independently.
	OrderByKey bool
	// KeepPacked hands over aggregates as they are. By default weir unpacks them, and acknowledges
	// an aggregate when all of its records are done.
	KeepPacked bool
	// Filter selects the records that are handled, as [weir.Options].Filter does for shards. By
	// default all are. Other records are acknowledged without a call of the handler. weir unpacks
	// aggregates before it filters, unless KeepPacked is set. With [weir.FailNotJSON], a record
	// that is not JSON is set aside as if the handler had rejected it.
	Filter weir.Filter
	// MaxBytes limits the memory for records and answers, 40 MiB to 1 TiB. Defaults to 128 MiB,
	// which is enough for an answer with ten records of 10 MiB. With less, answers may have fewer
	// than ten records.
	MaxBytes int64

	// Wait is how long a receive waits for the first record, 1 s to 20 s, in whole seconds.
	// Defaults to 20 s. An idle consumer makes one call per Wait.
	Wait time.Duration
	// Hold is how long a record stays hidden from other consumers after a receive or an extension,
	// 5 s to 12 h, in whole seconds. Defaults to 30 s. The records of a process that dies are
	// delivered again after this time.
	Hold time.Duration
	// MaxHold limits the time for which the holds of a record are extended, Hold to 12 h. Defaults
	// to 1 h, or Hold if that is longer. A handler that takes longer loses the record.
	MaxHold time.Duration
	// AckDelay is how long an acknowledgement waits for others, 1 ms to 10 s. When ten wait, they
	// are sent at once. A longer time saves calls, but more records are handled again after a
	// crash. Defaults to the time that the handlers need for ten records, from 100 ms to half of
	// Hold.
	AckDelay time.Duration
	// MinBackoff is the pause after the first failure of a record, and MaxBackoff the longest one.
	// Both are 10 ms to 1 h, and default to 1 s and 1 min. The pause doubles with each failure, and
	// up to half of it is random. Each pause counts against MaxHold.
	MinBackoff, MaxBackoff time.Duration
	// StopTimeout is the time that handlers and acknowledgements have to finish when Run stops, 1
	// ms to 24 h. Defaults to 30 s.
	StopTimeout time.Duration

	// OnFailure says when a record is set aside. By default only rejected records are, as dead
	// letters of the queue.
	OnFailure FailurePolicy
	// Events are called when something happens.
	Events Events
	// Logger gets log lines. Defaults to [slog.Default].
	Logger *slog.Logger
}

// FailurePolicy sets when a record is set aside. Its fields mean the same as those of
// [weir.FailurePolicy].
type FailurePolicy struct {
	// Destination gets the dead letters. A record is acknowledged when its dead letter is durable.
	// With nil, the default, weir releases the record instead, so that the queue makes it a dead
	// letter after its remaining receives. If the queue keeps no dead letters, the record returns
	// after a delay from 2 s to 15 min.
	Destination deadletter.Destination
	// MaxAttempts is how many calls for a record may fail in this process, 1 to 10,000. 0, the
	// default, is no limit. A call with several records that fails without naming one is not
	// counted: the records are then handled one by one.
	MaxAttempts int
	// MaxAge is the age at which a failing record is set aside, 1 s to 366 days from its arrival in
	// the stream. 0, the default, is no limit.
	MaxAge time.Duration
	// OutageGrace protects records during an outage. For this time after its first failure, a
	// record is set aside only if this process has handled another record since then. Defaults to 2
	// min, at most 24 h; a negative value disables the protection. It does not apply to rejected
	// records.
	OutageGrace time.Duration
	// MaxPerMinute limits the dead letters of this process in a minute. Further records stay in
	// backoff. Defaults to 60, at most 1,000,000; a negative value is no limit. It applies only
	// with a Destination.
	MaxPerMinute int
}

const defaultBytes = 128 << 20

// parse returns the options with their defaults. The error has all problems.
func (o Options) parse() (Options, error) {
	var problems []error
	problem := func(option, format string, args ...any) {
		problems = append(problems, &weir.OptionError{Option: "queue.Options." + option, Err: fmt.Errorf(format, args...)})
	}
	if o.Queue == "" {
		problem("Queue", "is required: set the name or the ARN of the queue")
	}
	if o.App == "" {
		o.App = o.Queue
	}
	number(problem, "Concurrency", &o.Concurrency, 10, 1, 10_000)
	number(problem, "BatchSize", &o.BatchSize, 10, 1, 1000)
	number(problem, "MaxBytes", &o.MaxBytes, int64(defaultBytes), 40<<20, 1<<40)
	number(problem, "Wait", &o.Wait, 20*time.Second, time.Second, 20*time.Second)
	number(problem, "Hold", &o.Hold, 30*time.Second, 5*time.Second, 12*time.Hour)
	number(problem, "MaxHold", &o.MaxHold, max(time.Hour, o.Hold), o.Hold, 12*time.Hour)
	if o.AckDelay != 0 {
		number(problem, "AckDelay", &o.AckDelay, 0, time.Millisecond, 10*time.Second)
	}
	number(problem, "MinBackoff", &o.MinBackoff, time.Second, 10*time.Millisecond, time.Hour)
	number(problem, "MaxBackoff", &o.MaxBackoff, max(time.Minute, o.MinBackoff), o.MinBackoff, time.Hour)
	number(problem, "StopTimeout", &o.StopTimeout, 30*time.Second, time.Millisecond, 24*time.Hour)
	for name, d := range map[string]time.Duration{"Wait": o.Wait, "Hold": o.Hold} {
		if d%time.Second != 0 {
			problem(name, "is %v, it must be a number of whole seconds", d)
		}
	}
	switch {
	case o.Filter.NotJSON < weir.PassNotJSON || o.Filter.NotJSON > weir.FailNotJSON:
		problem("Filter.NotJSON", "is %d, it must be PassNotJSON, DropNotJSON or FailNotJSON", o.Filter.NotJSON)
	case o.Filter.By == nil && o.Filter.NotJSON != weir.PassNotJSON:
		problem("Filter.By", "is nil although Filter.NotJSON is set: set the filter")
	}
	p := &o.OnFailure
	if p.MaxAttempts < 0 || p.MaxAttempts > 10_000 {
		problem("OnFailure.MaxAttempts", "is %d, it must be 1 to 10000, or 0 for no limit", p.MaxAttempts)
	}
	if p.MaxAge != 0 {
		number(problem, "OnFailure.MaxAge", &p.MaxAge, 0, time.Second, 366*24*time.Hour)
	}
	if p.OutageGrace >= 0 {
		number(problem, "OnFailure.OutageGrace", &p.OutageGrace, 2*time.Minute, 1, 24*time.Hour)
	}
	if p.MaxPerMinute >= 0 {
		number(problem, "OnFailure.MaxPerMinute", &p.MaxPerMinute, 60, 1, 1_000_000)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, errors.Join(problems...)
}

// number sets the default of an option and checks its range.
func number[N int | int64 | time.Duration](problem func(option, format string, args ...any), option string, value *N, usual, low, high N) {
	switch {
	case *value == 0:
		*value = usual
	case *value < low || *value > high:
		problem(option, "is %v, it must be %v to %v", *value, low, high)
	}
}

// policy returns the policy in the form of package failure.
func (p *FailurePolicy) policy() failure.Policy {
	f := failure.Policy{On: true, Attempts: p.MaxAttempts, MaxAge: p.MaxAge, Patience: p.OutageGrace, PerMinute: p.MaxPerMinute}
	if p.Destination == nil {
		f.PerMinute = -1
	}
	return f
}
