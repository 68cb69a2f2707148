// Package deadletter contains dead letters: the records that an application has given up, complete
// and with the reason, the places where they are kept, and their later states.
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

// Letter is a record that was given up. As JSON it is one object with the names below, times in RFC
// 3339 and UTC, and the payload in base64.
type Letter struct {
	// Version of this form: 1.
	Version int `json:"weir_letter"`
	// ID identifies the letter in a destination: the application, stream, shard and position, as
	// combined by [ID]. If the application gives the record up again, because its worker ended
	// before progress was saved, the letter has the same ID. The ID of a letter from an earlier
	// version has no application.
	ID             string `json:"id"`
	Stream         string `json:"stream"`
	Shard          string `json:"shard"`
	SequenceNumber string `json:"sequence_number"`
	// Position is the position of the record: its sequence number, followed by "+2" for the second
	// record of an aggregate, unless it is the last.
	Position     string    `json:"position"`
	PartitionKey string    `json:"partition_key"`
	Arrived      time.Time `json:"arrived,omitzero"` // at the service, to the millisecond
	Data         []byte    `json:"data"`             // the complete payload

	App    string `json:"app"`
	Worker string `json:"worker"`
	Epoch  uint64 `json:"epoch"` // of the lease

	GivenUp time.Time `json:"given_up"` // by the worker's clock, like the next two
	Reason  Reason    `json:"reason"`
	// failed calls of the handler at the record, by this worker
	Attempts     int       `json:"attempts"`
	FirstFailure time.Time `json:"first_failure"` // equals GivenUp if Attempts is 0
	LastFailure  time.Time `json:"last_failure"`
	// the last error: at most 4 KiB, without control characters
	Error     string `json:"error"`
	ErrorType string `json:"error_type"`      // the Go name of its type
	Stack     string `json:"stack,omitempty"` // of a panic: at most 16 KiB
	// Together is how many records failed together and were given up together, because the handler
	// did not name the failing record and Bisect was off.
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
	Rejected Reason = "rejected" // the handler reported that it can never succeed
	Attempts Reason = "attempts" // it failed the maximum number of times
	Age      Reason = "age"      // it exceeded the maximum age, and failed or was not tried
	// Killed: several worker processes died in succession, the last one while it handled the record
	// alone.
	Killed Reason = "killed"
)

// Destination keeps letters.
type Destination interface {
	// Put returns nil when the letters are durable. After an error or a crash, some or all of them
	// are put again, by this worker or another. If the destination can, it replaces a letter with
	// the same ID. Put may be called concurrently. It may retain the letters, and must not change
	// them.
	Put(ctx context.Context, letters []Letter) error
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

// typeOf returns the type of the most specific error: the innermost one that is more than text.
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

// clean returns at most most bytes of text: valid UTF-8 without control characters, except line
// ends if lines is set.
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
