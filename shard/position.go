package shard

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Kind is the form of a [Position]. The constants are in the order of positions in a shard.
type Kind uint8

const (
	None     Kind = iota // the zero Position, which is no position
	Time                 // before the first record that arrived at a time or later
	First                // before the oldest record that the stream still has
	Tip                  // after the newest record at the time of the request
	Sequence             // after the record with a sequence number, or after a part of the record
	Finished             // after the last record of a closed shard
)

// Whole is the count of finished sub-records for a whole record.
const Whole = math.MaxUint32

// maxDigits is the maximum length of a sequence number. Kinesis accepts up to 129 decimal digits.
const maxDigits = 129

// Position is the place in a shard where reading resumes. The zero value means no position.
// Positions can be compared with ==.
type Position struct {
	seq  string // decimal, no leading zeros
	at   int64  // Unix milliseconds
	done uint32 // number of finished sub-records of the record seq
	kind Kind
}

// These positions need no sequence number and no time.
var (
	Oldest = Position{kind: First}
	Latest = Position{kind: Tip}
	End    = Position{kind: Finished}
)

// At returns the position before the first record that arrived at t or later, with a precision of a
// millisecond. If t is outside the years 0 to 9999, At uses the nearest time within them, because
// only these years have a text form.
func At(t time.Time) Position {
	return Position{kind: Time, at: min(max(t.UnixMilli(), firstMilli), lastMilli)}
}

const (
	firstMilli = -62_167_219_200_000 // 0000-01-01T00:00:00.000Z
	lastMilli  = 253_402_300_799_999 // 9999-12-31T23:59:59.999Z
)

// After returns the position after the whole record with sequence number seq. It returns an error
// if seq is malformed.
func After(seq string) (Position, error) { return Part(seq, Whole) }

// Before returns the position directly before the record with sequence number seq.
func Before(seq string) (Position, error) { return Part(seq, 0) }

// Part returns the position after a number of sub-records of the aggregate with sequence number
// seq. done is that number, or [Whole] for all sub-records.
func Part(seq string, done uint32) (Position, error) {
	if err := checkSequence(seq); err != nil {
		return Position{}, err
	}
	return Position{kind: Sequence, seq: seq, done: done}, nil
}

func checkSequence(seq string) error {
	if seq == "" || len(seq) > maxDigits {
		return fmt.Errorf("shard: a sequence number has 1 to %d digits, this one has %d", maxDigits, len(seq))
	}
	for i := range len(seq) {
		if seq[i] < '0' || seq[i] > '9' {
			return fmt.Errorf("shard: sequence number %.40q is not a decimal number", seq)
		}
	}
	if len(seq) > 1 && seq[0] == '0' {
		return fmt.Errorf("shard: sequence number %.40q starts with a zero", seq)
	}
	return nil
}

// Kind returns the form of p.
func (p Position) Kind() Kind { return p.kind }

// IsZero reports whether p is the zero Position.
func (p Position) IsZero() bool { return p.kind == None }

// IsEnd reports whether p is [End].
func (p Position) IsEnd() bool { return p.kind == Finished }

// SequenceNumber returns the number of the record that contains or precedes p. It returns "" unless
// Kind is [Sequence].
func (p Position) SequenceNumber() string { return p.seq }

// Done returns the number of finished sub-records of the record SequenceNumber, or [Whole] for all
// of them.
func (p Position) Done() uint32 { return p.done }

// Time returns the arrival time of p. It returns the zero time unless Kind is [Time].
func (p Position) Time() time.Time {
	if p.kind != Time {
		return time.Time{}
	}
	return time.UnixMilli(p.at).UTC()
}

// Compare compares two positions of one shard. It is negative if p comes before q. The order is:
// times, [Oldest], [Latest], sequence numbers (as numbers), [End]. A checkpoint that moves from a
// start position to a record therefore always moves forward.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.kind, q.kind); c != 0 {
		return c
	}
	switch p.kind {
	case Time:
		return cmp.Compare(p.at, q.at)
	case Sequence:
		if c := CompareSequence(p.seq, q.seq); c != 0 {
			return c
		}
		return cmp.Compare(p.done, q.done)
	default:
		return 0
	}
}

// CompareSequence compares two sequence numbers of one shard as numbers. They must have no leading
// zeros.
func CompareSequence(a, b string) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// String returns the text form that [Parse] parses. It is "oldest", "latest", "end", a time in RFC
// 3339 with milliseconds, or a sequence number for the position after that record. A sequence
// number with a count of finished sub-records has the form "4959…+3". The zero Position is "".
func (p Position) String() string {
	switch p.kind {
	case Time:
		return p.Time().Format(timeForm)
	case First:
		return "oldest"
	case Tip:
		return "latest"
	case Finished:
		return "end"
	case Sequence:
		if p.done == Whole {
			return p.seq
		}
		return p.seq + "+" + strconv.FormatUint(uint64(p.done), 10)
	default:
		return ""
	}
}

const timeForm = "2006-01-02T15:04:05.000Z07:00"

// Parse parses the text form of a position. "" is the zero Position. Times may have any RFC 3339
// form.
func Parse(s string) (Position, error) {
	switch s {
	case "":
		return Position{}, nil
	case "oldest":
		return Oldest, nil
	case "latest":
		return Latest, nil
	case "end":
		return End, nil
	}
	if strings.Contains(s, "T") || strings.Contains(s, "-") {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return Position{}, fmt.Errorf("shard: position %.60q is not a time such as 2026-01-02T15:04:05Z", s)
		}
		return At(t), nil
	}
	seq, part, aggregate := strings.Cut(s, "+")
	if !aggregate {
		p, err := After(seq)
		if err != nil {
			return Position{}, errors.Join(
				fmt.Errorf("shard: position %.60q: want oldest, latest, end, a time, or a sequence number", s), err)
		}
		return p, nil
	}
	done, err := strconv.ParseUint(part, 10, 32)
	if err != nil || (len(part) > 1 && part[0] == '0') {
		return Position{}, fmt.Errorf("shard: position %.60q: the count of done sub-records is not a number below 2^32", s)
	}
	return Part(seq, uint32(done))
}

// MarshalText returns the text form of p, see [Position.String].
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText parses the text form of a position, see [Parse].
func (p *Position) UnmarshalText(text []byte) error {
	q, err := Parse(string(text))
	if err != nil {
		return err
	}
	*p = q
	return nil
}

// SortKey returns a text whose byte order equals the order of [Position.Compare]. It is for stores
// that compare positions in a query.
func (p Position) SortKey() string {
	switch p.kind {
	case Time:
		// The shift makes times before 1970 sort correctly.
		return fmt.Sprintf("%d:%020d", p.kind, uint64(p.at)+1<<63)
	case Sequence:
		return fmt.Sprintf("%d:%03d:%s:%010d", p.kind, len(p.seq), p.seq, p.done)
	default:
		return strconv.Itoa(int(p.kind))
	}
}
