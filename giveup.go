package weir

import (
	"errors"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/failure"
)

// GiveUp sets when a record is given up at which the handler fails. Its letter goes to To, and
// handling continues after the record only when To has it. The zero GiveUp gives nothing up: a
// batch is handled again until it succeeds.
//
// The record that is given up is the one that [FailedAt] names, that a [RecordFunc] failed at, or
// that is alone in its batch. When a handler fails with a batch of several and does not say where,
// all of them are given up as one, unless Bisect finds out.
//
// It does not concern [ShardHandlers].Pull, whose function sees to failures itself.
type GiveUp struct {
	// To gets the letters of records that are given up. Required with any other field; with To
	// alone only what the handler rejects is given up, see [Reject].
	To deadletter.Destination
	// Attempts is how many calls of the handler may fail at a record, 1 to 10,000. Each owner of
	// the shard counts from zero. 0, the default, is no bound.
	Attempts int
	// MaxAge is how old a record may be that fails, from its arrival at the service to now by this
	// worker's clock, 1 s to 366 days. Older records are handed over all the same, and given up
	// only if the handler fails at them. 0, the default, is no bound.
	MaxAge time.Duration
	// Bisect finds the record at fault when the handler fails with a batch of several: it is handed
	// over again in halves, in order, each as soon as what is before it is done, and with the
	// shortest pauses. Only calls that fail with the record alone count as its attempts. A batch
	// that fails with [Reject] is always bisected.
	Bisect bool
	// Patience is how long a record is still handled again although it could be given up, while
	// this worker has handled nothing else between its last two failures: then the cause may be not
	// the record but a dependency of the handler, such as a database. It counts from the first
	// failure. Defaults to 2 min, at most 24 h; negative is none. It does not apply to rejected
	// records.
	Patience time.Duration
	// PerMinute is how many records a minute this worker gives up at most; records beyond that are
	// handled again. A larger batch that fails as one is given up only when it has failed for the
	// minutes that this rate needs. Defaults to 60, up to 1,000,000; negative is no bound. It also
	// applies to rejected records.
	PerMinute int
}

const (
	defaultPatience  = 2 * time.Minute
	defaultPerMinute = 60
)

// check fills defaults in and returns what is wrong.
func (g *GiveUp) check(bad func(format string, args ...any)) {
	if g.To == nil {
		if *g != (GiveUp{}) {
			bad("Options.GiveUp.To is nil although other fields of GiveUp are set: set the destination of dead letters")
		}
		return
	}
	if g.Attempts < 0 || g.Attempts > 10_000 {
		bad("Options.GiveUp.Attempts %d must be between 1 and 10000, or 0 for no bound", g.Attempts)
	}
	if g.MaxAge != 0 && (g.MaxAge < time.Second || g.MaxAge > 366*24*time.Hour) {
		bad("Options.GiveUp.MaxAge %v must be between 1s and 366 days, or 0 for no bound", g.MaxAge)
	}
	switch {
	case g.Patience == 0:
		g.Patience = defaultPatience
	case g.Patience > 24*time.Hour:
		bad("Options.GiveUp.Patience %v must be 24h at most, or negative for none", g.Patience)
	}
	switch {
	case g.PerMinute == 0:
		g.PerMinute = defaultPerMinute
	case g.PerMinute > 1_000_000:
		bad("Options.GiveUp.PerMinute %d must be 1000000 at most, or negative for no bound", g.PerMinute)
	}
}

// policy returns what decides when a record is given up.
func (g *GiveUp) policy() failure.Policy {
	return failure.Policy{On: g.To != nil, Attempts: g.Attempts, MaxAge: g.MaxAge, Bisect: g.Bisect, Patience: g.Patience, PerMinute: g.PerMinute}
}

// Reject is returned by a handler for a record that can never succeed, such as one that it cannot
// read: it is given up at the first failure, if [GiveUp].To is set; otherwise it is a failure like
// any other. A handler of batches says which record it is with FailedAt(r, Reject(err)); else it is
// looked for as [GiveUp].Bisect says.
func Reject(err error) error { return &rejectError{err} }

type rejectError struct{ err error }

func (e *rejectError) Error() string {
	if e.err == nil {
		return "the record was rejected"
	}
	return e.err.Error()
}

func (e *rejectError) Unwrap() error { return e.err }

// FailedAt is returned by a handler that failed at r, one of the batch's records, and has done all
// before it, as [Batch.Done] would say. Handling continues with r. If several are joined, the first
// record counts. If [Batch.Done] said in the same call that r is done, r stays done: the records
// after r are handled again after a pause, and the failure is logged with this contradiction and
// counts as an attempt of no record. A record that was not in the batch is ignored.
func FailedAt(r Record, err error) error {
	if err == nil {
		err = errors.New("weir: the handler failed without an error")
	}
	return &failedAtError{r, err}
}

// TooOld is returned by a handler that leaves n records, from r on, untried because they are too
// old to be of use; all before r is done. If [GiveUp].To is set they are given up at once, with
// [deadletter.Age] as the reason. That is neither a failure nor an attempt, and neither Patience
// nor PerMinute hold it back: meanwhile what is behind them would get too old as well. If To is not
// set this is a failure like any other. n counts as 1 if it is less, and as all that were handed
// over if it is more.
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

// FailedRecord returns the record that err names with [FailedAt], of several the first of the
// shard, and whether it names one. It is for handlers that call others, and may have to undo what
// those have done before the record.
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

// allBlamed appends those that err names to all. rejected says that err was rejected as a whole.
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
