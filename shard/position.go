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

// Kind tells the forms of a [Position] apart. The order of the constants is the order of positions
// inside a shard.
type Kind uint8

const (
	None     Kind = iota // the zero Position: no position at all
	Time                 // the first record at or after an arrival time
	First                // the oldest record that is still kept
	Tip                  // after the newest record, wherever that is when the question is asked
	Sequence             // after (a part of) the record with a sequence number
	Finished             // after the last record of a closed shard
)

// Whole is the count of done sub-records that stands for "all of the record".
const Whole = math.MaxUint32

// maxDigits bounds a sequence number; the service accepts up to 129 decimal digits as input.
const maxDigits = 129

// Position is where reading a shard resumes. The zero value is no position. Positions may be
// compared with ==.
type Position struct {
	seq  string // decimal, no leading zeros
	at   int64  // Unix milliseconds
	done uint32 // of the record seq: how many of its sub-records are done
	kind Kind
}

// The positions that need no number.
var (
	Oldest = Position{kind: First}
	Latest = Position{kind: Tip}
	End    = Position{kind: Finished}
)

// At is the position before the first record that arrived at t or later, in milliseconds. A time
// outside of the years 0 to 9999, which have a text form, counts as the nearest in them.
func At(t time.Time) Position {
	return Position{kind: Time, at: min(max(t.UnixMilli(), firstMilli), lastMilli)}
}

const (
	firstMilli = -62_167_219_200_000 // 0000-01-01T00:00:00.000Z
	lastMilli  = 253_402_300_799_999 // 9999-12-31T23:59:59.999Z
)

// After is the position after the whole record with sequence number seq. An error says what is
// wrong with seq.
func After(seq string) (Position, error) { return Part(seq, Whole) }

// Before is the position right before the record with sequence number seq.
func Before(seq string) (Position, error) { return Part(seq, 0) }

// Part is the position after the first done sub-records of the aggregate with sequence number seq.
// [Whole] stands for all of them.
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

// Kind tells which form of position p is.
func (p Position) Kind() Kind { return p.kind }

// IsZero reports whether p is no position.
func (p Position) IsZero() bool { return p.kind == None }

// IsEnd reports whether p is [End].
func (p Position) IsEnd() bool { return p.kind == Finished }

// SequenceNumber is the number of the record that p points after or into, "" unless Kind is
// [Sequence].
func (p Position) SequenceNumber() string { return p.seq }

// Done says how many sub-records of the record SequenceNumber are done; [Whole] when all are.
func (p Position) Done() uint32 { return p.done }

// Time is the arrival time that p names, the zero time unless Kind is [Time].
func (p Position) Time() time.Time {
	if p.kind != Time {
		return time.Time{}
	}
	return time.UnixMilli(p.at).UTC()
}

// Compare orders two positions of one shard: negative when p comes before q. Times come before
// [Oldest], it before [Latest], it before every sequence number, and those before [End]; so a
// checkpoint that moves from a start position to a record always moves forward. Sequence numbers
// compare as numbers.
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

// String is the text form that [Parse] reads: "oldest", "latest", "end", a time in RFC 3339 with
// milliseconds, a sequence number ("after this record"), or a sequence number and how many of its
// sub-records are done ("4959…+3"). The zero Position is "".
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

// Parse reads the text form of a position; "" is the zero Position. Times may be any RFC 3339 form.
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

// MarshalText is String.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is Parse.
func (p *Position) UnmarshalText(text []byte) error {
	q, err := Parse(string(text))
	if err != nil {
		return err
	}
	*p = q
	return nil
}

// SortKey is a text whose byte order is the order of [Position.Compare], for stores that compare
// inside a query.
func (p Position) SortKey() string {
	switch p.kind {
	case Time:
		// Shifted so that times before 1970 sort too.
		return fmt.Sprintf("%d:%020d", p.kind, uint64(p.at)+1<<63)
	case Sequence:
		return fmt.Sprintf("%d:%03d:%s:%010d", p.kind, len(p.seq), p.seq, p.done)
	default:
		return strconv.Itoa(int(p.kind))
	}
}
