// Package deadletter has the records that an application has given up, whole and with the reason,
// where they are kept, and what becomes of them later.
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

// Letter is a record that was given up. As JSON it is one object with the names below, times as RFC
// 3339 in UTC, and the payload in base64.
type Letter struct {
	// Version of this form: 1.
	Version int `json:"weir_letter"`
	// ID identifies the letter in a destination: the application, stream, shard and position, as
	// [ID] puts them together. If the application gives the record up again, because its worker
	// ended before progress was saved, the letter has the same ID. The ID of a letter that an
	// earlier version put has no application.
	ID             string `json:"id"`
	Stream         string `json:"stream"`
	Shard          string `json:"shard"`
	SequenceNumber string `json:"sequence_number"`
	// Position is the record's: its sequence number, with "+2" after it for the second record of an
	// aggregate, if it is not the last.
	Position     string    `json:"position"`
	PartitionKey string    `json:"partition_key"`
	Arrived      time.Time `json:"arrived,omitzero"` // at the service, to the millisecond
	Data         []byte    `json:"data"`             // the payload, whole

	App    string `json:"app"`
	Worker string `json:"worker"`
	Epoch  uint64 `json:"epoch"` // of the lease

	GivenUp      time.Time `json:"given_up"` // by the worker's clock, as are the next two
	Reason       Reason    `json:"reason"`
	Attempts     int       `json:"attempts"`      // calls of the handler that failed at the record, by this worker
	FirstFailure time.Time `json:"first_failure"` // these are GivenUp with Attempts 0
	LastFailure  time.Time `json:"last_failure"`
	Error        string    `json:"error"`           // the last: 4 KiB at most, without control characters
	ErrorType    string    `json:"error_type"`      // Go's name of its type
	Stack        string    `json:"stack,omitempty"` // of a panic: 16 KiB at most
	// Together is how many records failed as one and were given up as one, because the handler did
	// not say which of them it was and Bisect was off.
	Together int `json:"together"`
}

// ID returns the ID of the letter of a record that an application gave up. record is the ID of the
// record, from weir.Record.ID. The result is the application, a slash and the record. In the
// application, "%25" stands for a percent sign and "%2F" for a slash. ID returns record alone if
// app is empty.
func ID(app, record string) string {
	if app == "" {
		return record
	}
	return escapeApp.Replace(app) + "/" + record
}

var escapeApp = strings.NewReplacer("%", "%25", "/", "%2F")

// RecordID returns what weir.Record.ID returned for the record: its stream, shard and position. It
// is the same for each application that gave the record up.
func (l *Letter) RecordID() string { return l.Stream + "/" + l.Shard + "/" + l.Position }

// Version is the form of letters that this package writes.
const Version = 1

// Reason is why a record was given up.
type Reason string

const (
	Rejected Reason = "rejected" // the handler said that it can never succeed
	Attempts Reason = "attempts" // it failed as often as it may
	Age      Reason = "age"      // it was older than it may be, and failed or was left out untried
	// Killed: the processes of workers died, one after the other, the last while it was handled by
	// itself.
	Killed Reason = "killed"
)

// Destination keeps letters.
type Destination interface {
	// Put returns nil when the letters are durable. After an error, and after a crash, some or all
	// of them are put again, by this worker or another: where a destination can, a letter takes the
	// place of one with the same ID. Put may be called concurrently. It may keep the letters, and
	// must not change them.
	Put(ctx context.Context, letters []Letter) error
}

// Func lets a function be a [Destination].
type Func func(ctx context.Context, letters []Letter) error

// Put calls f.
func (f Func) Put(ctx context.Context, letters []Letter) error { return f(ctx, letters) }

const (
	mostError = 4 << 10
	mostStack = 16 << 10
)

// Describe fills in what an error says: Error, ErrorType and, if stack is not empty, Stack.
func (l *Letter) Describe(err error, stack string) {
	l.Error, l.ErrorType = clean(err.Error(), mostError, false), typeOf(err)
	l.Stack = clean(stack, mostStack, true)
}

// typeOf names the type of the error that says the most: the innermost one that is more than text.
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

// clean is at most so many bytes of text: valid UTF-8 without control characters, but for the ends
// of lines if there may be several.
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
