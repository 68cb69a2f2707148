// Package deadletter contains dead letters and the places where they are kept. A dead letter is a
// record that an application no longer tries to handle. It contains the complete record, the
// reason, and its later state.
package deadletter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Letter is a dead letter. As JSON it is one object with the names below. Times are in RFC
// 3339 and UTC, and the payload is in base64.
type Letter struct {
	// Version is the version of this form: 1.
	Version int `json:"weir_letter"`
	// ID identifies the dead letter in a destination. It consists of application, stream, shard and
	// position, as combined by [ID]. A worker may end before progress was saved, and the
	// application then dead-letters the record again. The new dead letter has the same ID. An ID
	// from an earlier version contains no application.
	ID             string `json:"id"`
	Stream         string `json:"stream"`
	Shard          string `json:"shard"`
	SequenceNumber string `json:"sequence_number"`
	// Position is the position of the record: its sequence number. For the second record of an
	// aggregate it is followed by "+2", unless that record is the last record of the aggregate. See
	// [Letter.Queue] for records of a queue.
	Position     string    `json:"position"`
	PartitionKey string    `json:"partition_key"`
	Arrived      time.Time `json:"arrived,omitzero"` // arrival in Kinesis, to the millisecond
	Data         []byte    `json:"data"`             // the complete payload

	App    string `json:"app"`
	Worker string `json:"worker"`
	Epoch  uint64 `json:"epoch"` // epoch of the lease

	GivenUp time.Time `json:"given_up"` // by the worker's clock, like the next two
	Reason  Reason    `json:"reason"`
	// Attempts is the number of failed calls of the handler at the record, by this worker.
	Attempts     int       `json:"attempts"`
	FirstFailure time.Time `json:"first_failure"` // equals GivenUp if Attempts is 0
	LastFailure  time.Time `json:"last_failure"`
	// Error is the text of the last error. It has at most 4 KiB and no control characters.
	Error     string `json:"error"`
	ErrorType string `json:"error_type"`      // the Go name of the error's type
	Stack     string `json:"stack,omitempty"` // stack of a panic: at most 16 KiB
	// Together is the number of records that failed together and were dead-lettered together. It is
	// above 1 if the handler did not name the failing record and Bisect was off.
	Together int `json:"together"`
}

// ID returns the ID of a dead letter. app is the application, and record is the result of
// weir.Record.ID. The ID is the application, a slash, and record. In the application, "%25"
// replaces a percent sign and "%2F" replaces a slash. If app is empty, ID returns record alone.
func ID(app, record string) string {
	if app == "" {
		return record
	}
	return escapeApp.Replace(app) + "/" + record
}

var escapeApp = strings.NewReplacer("%", "%25", "/", "%2F")

// RecordID returns the same text as weir.Record.ID for the record: its stream, shard and position.
// It is the same for all applications that dead-lettered the record.
func (l *Letter) RecordID() string { return l.Stream + "/" + l.Shard + "/" + l.Position }

// Version is the version of the form that this package writes.
const Version = 1

// Reason is the reason why a record was dead-lettered.
type Reason string

const (
	Rejected Reason = "rejected" // the handler reported that handling can never succeed
	Attempts Reason = "attempts" // handling failed the maximum number of times
	Age      Reason = "age"      // the record exceeded the maximum age, and failed or was not tried
	// Killed means that several worker processes died in succession. The last one died while it
	// handled the record alone.
	Killed Reason = "killed"
)

// Destination keeps dead letters.
type Destination interface {
	// Put returns nil when the dead letters are durable. It returns a [*LeftOutError] if it left
	// some out and the others are durable. After another error or a crash, this worker or
	// another worker puts some or all of the dead letters again. A destination should replace a
	// dead letter that has the same ID, if it can. Put may be called concurrently. It may retain
	// the slice, but must not modify it.
	Put(ctx context.Context, letters []Letter) error
}

// LeftOutError is the error of [Destination].Put for dead letters that are not needed, because the
// records have already been handled, such as by an earlier call whose answer was lost. All other
// dead letters of the call are durable. weir does not repeat the call, and counts these records as
// handled. Package queue treats it like any other error.
type LeftOutError struct {
	IDs []string // the IDs of the dead letters that were left out
}

// Error implements error.
func (e *LeftOutError) Error() string {
	return fmt.Sprintf("weir: %d dead letters were left out, because their records are already handled: %s",
		len(e.IDs), strings.Join(e.IDs, ", "))
}

// LeftOut returns the IDs of the dead letters that were left out, according to an error of
// [Destination].Put. ok is false if the call failed. An error that joins several others is a
// failure unless each of them is a [*LeftOutError]. The error may be nil.
func LeftOut(err error) (ids []string, ok bool) {
	switch e := err.(type) { //nolint:errorlint // it unwraps errors itself
	case nil:
		return nil, true
	case *LeftOutError:
		return e.IDs, true
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return LeftOut(inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			more, ok := LeftOut(inner)
			if !ok {
				return nil, false
			}
			ids = append(ids, more...)
		}
		return ids, len(ids) > 0
	}
	return nil, false
}

// Func is a function that implements [Destination].
type Func func(ctx context.Context, letters []Letter) error

// Put calls f.
func (f Func) Put(ctx context.Context, letters []Letter) error { return f(ctx, letters) }

const (
	mostError = 4 << 10
	mostStack = 16 << 10
)

// Describe sets the fields about an error: Error, ErrorType and, if stack is not empty, Stack.
func (l *Letter) Describe(err error, stack string) {
	l.Error, l.ErrorType = clean(err.Error(), mostError, false), typeOf(err)
	l.Stack = clean(stack, mostStack, true)
}

// typeOf returns the type of the innermost error that is more than a text. Errors of errors.New and
// fmt.Errorf, and the wrappers of package weir, do not count.
func typeOf(err error) string {
	name := "*errors.errorString"
	for ; err != nil; err = errors.Unwrap(err) {
		switch t := fmt.Sprintf("%T", err); t {
		case "*errors.errorString", "*fmt.wrapError", "*weir.failedAtError", "*weir.rejectError", "*weir.tooOldError":
		default:
			name = t
		}
	}
	return name
}

// clean returns the beginning of s as valid UTF-8 without control characters. most is the maximum
// size in bytes. Line ends and tabs are kept if lines is set.
func clean(s string, most int, lines bool) string {
	if len(s) > most {
		for most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
		s = s[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case lines && (r == '\n' || r == '\t'):
			return r
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
