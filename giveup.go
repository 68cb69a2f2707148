package weir

import (
	"errors"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/failure"
)

// GiveUp sets when weir gives up a record whose handler fails. weir then puts a dead letter into
// To, and continues with the next record once the letter is durable. With the zero GiveUp, a batch
// is handled again until it succeeds.
//
// weir gives up the record that [FailedAt] names, the record at which a [RecordFunc] failed, or the
// only record of a batch. If a handler fails with several records and does not say at which, weir
// gives all of them up together, unless Bisect is set.
//
// GiveUp cannot be combined with [ShardHandlers].Pull, because a function that pulls handles
// failures itself.
type GiveUp struct {
	// To gets the dead letters. It is required with any other field. With To alone, weir gives up
	// only records that the handler rejects; see [Reject].
	To deadletter.Destination
	// Attempts is the number of handler calls that may fail at a record, 1 to 10,000. Each owner of
	// the shard counts from zero. 0, the default, is no limit.
	Attempts int
	// MaxAge is the age at which a failing record is given up, 1 s to 366 days. The age counts from
	// the arrival at the service, by this worker's clock. The handler gets older records too, and
	// weir gives them up only if the handler fails. 0, the default, is no limit.
	MaxAge time.Duration
	// Bisect finds the failing record in a batch of several. weir hands the batch over again in
	// halves, in order, with the shortest pauses. Only calls with the record alone count as its
	// attempts. weir always bisects a batch that fails with [Reject].
	Bisect bool
	// Patience protects records in an outage of something that the handler needs, such as a
	// database. Until this time has passed since a record's first failure, weir gives the record up
	// only if this worker has handled another record between the record's last two failures.
	// Defaults to 2 min, at most 24 h; a negative value is no protection. Patience does not apply
	// to rejected records.
	Patience time.Duration
	// PerMinute limits the number of records that this worker gives up in a minute. Records beyond
	// the limit are handled again. If more records than the limit are given up together, they must
	// first have failed for one minute for each PerMinute records above the limit. With the
	// default, a batch of 180 records must have failed for two minutes. Defaults to 60, at most
	// 1,000,000; a negative value is no limit. PerMinute also applies to rejected records.
	PerMinute int
}

const (
	defaultPatience  = 2 * time.Minute
	defaultPerMinute = 60
)

// check fills in the defaults and reports invalid values.
func (g *GiveUp) check(bad func(option, format string, args ...any)) {
	if g.To == nil {
		if *g != (GiveUp{}) {
			bad("Options.GiveUp.To", "is nil although other fields of GiveUp are set: set the destination of dead letters")
		}
		return
	}
	if g.Attempts < 0 || g.Attempts > 10_000 {
		bad("Options.GiveUp.Attempts", "%d must be between 1 and 10000, or 0 for no bound", g.Attempts)
	}
	if g.MaxAge != 0 && (g.MaxAge < time.Second || g.MaxAge > 366*24*time.Hour) {
		bad("Options.GiveUp.MaxAge", "%v must be between 1s and 366 days, or 0 for no bound", g.MaxAge)
	}
	switch {
	case g.Patience == 0:
		g.Patience = defaultPatience
	case g.Patience > 24*time.Hour:
		bad("Options.GiveUp.Patience", "%v must be 24h at most, or negative for none", g.Patience)
	}
	switch {
	case g.PerMinute == 0:
		g.PerMinute = defaultPerMinute
	case g.PerMinute > 1_000_000:
		bad("Options.GiveUp.PerMinute", "%d must be 1000000 at most, or negative for no bound", g.PerMinute)
	}
}

// policy returns the options in the engine's form.
func (g *GiveUp) policy() failure.Policy {
	return failure.Policy{On: g.To != nil, Attempts: g.Attempts, MaxAge: g.MaxAge, Bisect: g.Bisect, Patience: g.Patience, PerMinute: g.PerMinute}
}

// Reject marks an error as permanent, for a record that can never succeed, such as one that cannot
// be decoded. If [GiveUp].To is set, weir gives the record up at the first failure. Otherwise the
// error counts like any other. A handler of batches returns FailedAt(r, Reject(err)) to name the
// record; without a name, weir bisects the batch to find it.
func Reject(err error) error { return &rejectError{err} }

type rejectError struct{ err error }

func (e *rejectError) Error() string {
	if e.err == nil {
		return "the record was rejected"
	}
	return e.err.Error()
}

func (e *rejectError) Unwrap() error { return e.err }

// FailedAt returns an error that says at which record of the batch a handler failed. The records
// before r count as done, and handling continues with r. If several such errors are joined, the
// first record counts. A record that is not in the batch is ignored.
//
// If the same call has passed r to [Batch.Done], the two contradict each other. Then r stays done,
// and the records after r are handled again after a pause. The log reports the contradiction. The
// failure does not count as an attempt of any record.
func FailedAt(r Record, err error) error {
	if err == nil {
		err = errors.New("weir: the handler failed without an error")
	}
	return &failedAtError{r, err}
}

// TooOld returns an error that says that a handler left n records, from r on, untried because they
// are too old to be of use. The records before r count as done. If [GiveUp].To is set, weir gives
// the n records up at once, with the reason [deadletter.Age]. This counts as neither a failure nor
// an attempt. Patience and PerMinute do not delay it, because the following records would become
// too old meanwhile. Without To, the error counts like any other. A value of n below 1 counts as 1,
// and one beyond the end of the batch as the rest of the batch.
func TooOld(r Record, n int, err error) error {
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
	for _, of := range allBlamed(nil, err, false) {
		if !named || of.Position().Compare(r.Position()) < 0 {
			r, named = of.Record, true
		}
	}
	return r, named
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

// allBlamed appends the records that err names to all. rejected is set if an error around err was
// made by [Reject].
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
