package weir

import (
	"errors"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/failure"
)

// FailurePolicy sets when weir dead-letters a record whose handler fails. weir then puts a dead
// letter into Destination, and continues with the next record once the dead letter is durable. With
// the zero FailurePolicy, a batch is handled again until it succeeds.
//
// weir dead-letters the record that [FailedAt] or [RejectAt] names, the record at which a
// [RecordFunc] failed, or the only record of a batch. If a handler fails with several records and
// does not say at which, weir dead-letters all of them together, unless Bisect is set.
//
// Destination cannot be combined with [Consumer.RunPull] and [Consumer.Records], because weir does
// not see there which records fail.
type FailurePolicy struct {
	// Destination gets the dead letters. It is required if any other field except SuspectAfter is
	// set. If only Destination is set, weir dead-letters only records that the handler rejects; see
	// [Reject].
	Destination deadletter.Destination
	// MaxAttempts is the number of handler calls that may fail at a record, 1 to 10,000. Each owner
	// of the shard counts from zero. 0, the default, is no limit.
	MaxAttempts int
	// MaxAge is the age at which a failing record is dead-lettered, 1 s to 366 days. The age counts
	// from the arrival at the service, by this worker's clock. The handler gets older records too,
	// and weir dead-letters them only if the handler fails. 0, the default, is no limit.
	MaxAge time.Duration
	// Bisect finds the failing record in a batch of several. weir hands the batch over again in
	// halves, in order, with the shortest pauses. A call counts as an attempt of the record only if
	// the batch has no other record. weir always bisects a batch that fails with [Reject].
	Bisect bool
	// OutageGrace protects records in an outage of something that the handler needs, such as a
	// database. For this time after a record's first failure, weir dead-letters the record only if
	// this worker handled another record between the last two failures of the record. Defaults to 2
	// min, at most 24 h; a negative value is no protection. OutageGrace does not apply to rejected
	// records.
	OutageGrace time.Duration
	// MaxPerMinute limits the number of records that this worker dead-letters in a minute. Records
	// beyond the limit are handled again. A group of records that are dead-lettered together may
	// exceed the limit. It must then have failed for one minute per MaxPerMinute records above the
	// limit: with the default, a batch of 180 records for two minutes. Defaults to 60, at most
	// 1,000,000; a negative value is no limit. MaxPerMinute also applies to rejected records.
	MaxPerMinute int
	// SuspectAfter finds records that kill the process of their worker. It is a number of owners of
	// a shard, 1 to 1,000. If that many owners die one after the other at the same position, the
	// next owner handles the records there one at a time, each with a checkpoint, for 1,000 records
	// or 10 min. If it dies too, the record that it was handling is the cause. If Destination is
	// set, weir dead-letters that record with the reason deadletter.Killed. Otherwise weir handles
	// it again after a pause, which doubles from owner to owner, from 1 min to 15 min.
	//
	// A worker counts as dead if its session was ended because its heartbeats stopped, and not if
	// it hands its shards off. SuspectAfter defaults to 2. With a negative value weir never
	// suspects a record. SuspectAfter needs a store with lease.NoteDeaths.
	SuspectAfter int
}

const (
	defaultOutageGrace  = 2 * time.Minute
	defaultMaxPerMinute = 60
	defaultSuspectAfter = 2
)

// check fills in the defaults and reports invalid values.
func (g *FailurePolicy) check(bad badFunc) {
	switch {
	case g.SuspectAfter == 0:
		g.SuspectAfter = defaultSuspectAfter
	case g.SuspectAfter > 1000:
		bad("Options.OnFailure.SuspectAfter", "%d must be 1000 at most, or negative for never", g.SuspectAfter)
	}
	if g.Destination == nil {
		if *g != (FailurePolicy{SuspectAfter: g.SuspectAfter}) {
			bad("Options.OnFailure.Destination", "is nil although other fields of OnFailure are set: set the destination of dead letters")
		}
		return
	}
	if g.MaxAttempts < 0 || g.MaxAttempts > 10_000 {
		bad("Options.OnFailure.MaxAttempts", "%d must be between 1 and 10000, or 0 for no limit", g.MaxAttempts)
	}
	if g.MaxAge != 0 && (g.MaxAge < time.Second || g.MaxAge > 366*24*time.Hour) {
		bad("Options.OnFailure.MaxAge", "%v must be between 1s and 366 days, or 0 for no limit", g.MaxAge)
	}
	switch {
	case g.OutageGrace == 0:
		g.OutageGrace = defaultOutageGrace
	case g.OutageGrace > 24*time.Hour:
		bad("Options.OnFailure.OutageGrace", "%v must be 24h at most, or negative for none", g.OutageGrace)
	}
	switch {
	case g.MaxPerMinute == 0:
		g.MaxPerMinute = defaultMaxPerMinute
	case g.MaxPerMinute > 1_000_000:
		bad("Options.OnFailure.MaxPerMinute", "%d must be 1000000 at most, or negative for no limit", g.MaxPerMinute)
	}
}

// policy returns the options in the engine's form.
func (g *FailurePolicy) policy() failure.Policy {
	return failure.Policy{On: g.Destination != nil, Attempts: g.MaxAttempts, MaxAge: g.MaxAge, Bisect: g.Bisect, Patience: g.OutageGrace, PerMinute: g.MaxPerMinute}
}

// Reject marks an error as permanent, for a record that can never succeed, such as one that cannot
// be decoded. If [FailurePolicy].Destination is set, weir dead-letters the record at the first
// failure. Otherwise the error counts like any other. A handler of batches returns [RejectAt] to
// name the record; without a name, weir bisects the batch to find it.
func Reject(err error) error { return &rejectError{err} }

// IsRejected reports whether err is or wraps an error of [Reject]. Code that calls handlers needs
// it.
func IsRejected(err error) bool { return errors.As(err, new(*rejectError)) }

type rejectError struct{ err error }

func (e *rejectError) Error() string {
	if e.err == nil {
		return "the record was rejected"
	}
	return e.err.Error()
}

func (e *rejectError) Unwrap() error { return e.err }

// RejectAt returns an error that says that record r of the batch can never succeed. It is short for
// FailedAt(r, Reject(err)): the records before r count as done, and weir dead-letters r at the
// first failure if [FailurePolicy].Destination is set.
func RejectAt(r Record, err error) error { return FailedAt(r, Reject(err)) }

// FailedAt returns an error that says at which record of the batch a handler failed. The records
// before r count as done, and handling continues with r. If several such errors are joined, the
// first record counts. A record that is not in the batch is ignored.
//
// If the same call has passed r to [Batch.Done], the error contradicts Done. Then r stays done, and
// the records after r are handled again after a pause. The log reports the contradiction. The
// failure does not count as an attempt of any record.
func FailedAt(r Record, err error) error {
	if err == nil {
		err = errors.New("weir: the handler failed without an error")
	}
	return &failedAtError{r, err}
}

// RejectOld returns an error that says that a handler left n records, from r on, untried because
// they are too old to be of use. The records before r count as done. If [FailurePolicy].Destination
// is set, weir dead-letters the n records at once, with the reason [deadletter.Age]. This counts as
// neither a failure nor an attempt. OutageGrace and MaxPerMinute do not delay it, because the
// following records would become too old meanwhile. Without Destination, the error counts like any
// other. A value of n below 1 counts as 1. A value beyond the end of the batch counts as the rest
// of the batch.
func RejectOld(r Record, n int, err error) error {
	if err == nil {
		err = errors.New("weir: the record is too old and is not handled")
	}
	return &failedAtError{r, &tooOldError{max(n, 1), err}}
}

type tooOldError struct {
	records int
	err     error
}

func (e *tooOldError) Error() string { return e.err.Error() }
func (e *tooOldError) Unwrap() error { return e.err }

// FailedRecord returns the record that err names with [FailedAt], and whether it names one. If err
// names several records, FailedRecord returns the one that is first in the shard. It is for
// handlers that call other handlers and may have to undo the effects of records before the failed
// one.
func FailedRecord(err error) (r Record, named bool) {
	of, named := firstBlamed(err)
	return of.Record, named
}

// RejectedOld returns the number of records that err leaves untried with [RejectOld], beginning
// with the record of [FailedRecord]. It returns 0 if err is not of RejectOld. It is for handlers
// that call other handlers with only some of the records, because weir counts in the whole batch.
func RejectedOld(err error) int {
	of, _ := firstBlamed(err)
	return of.untried
}

func firstBlamed(err error) (first blamed, named bool) {
	for _, of := range allBlamed(nil, err, false) {
		if !named || of.Position().Compare(first.Position()) < 0 {
			first, named = of, true
		}
	}
	return first, named
}

type failedAtError struct {
	at  Record
	err error
}

func (e *failedAtError) Error() string { return e.err.Error() }
func (e *failedAtError) Unwrap() error { return e.err }

// blamed is a record that an error names.
type blamed struct {
	Record
	rejected bool
	untried  int
}

// allBlamed appends the records that err names to all. rejected is true if [Reject] made an error
// that wraps err.
func allBlamed(all []blamed, err error, rejected bool) []blamed {
	switch e := err.(type) { //nolint:errorlint // it goes through the tree itself
	case *failedAtError:
		b := blamed{Record: e.at, rejected: rejected || errors.As(e.err, new(*rejectError))}
		if old := (*tooOldError)(nil); errors.As(e.err, &old) {
			b.untried = old.records
		}
		return append(all, b)
	case *rejectError:
		return allBlamed(all, e.err, true)
	case interface{ Unwrap() error }:
		return allBlamed(all, e.Unwrap(), rejected)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = allBlamed(all, err, rejected)
		}
	}
	return all
}
