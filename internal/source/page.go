package source

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/shard"
)

// Record is one record as it was read. Its data and strings refer to the page.
type Record = codec.Record

// After returns the position after done sub-records of the record with the given sequence number,
// like [Record.After].
func After(number string, done uint32) shard.Position {
	return (&Record{SequenceNumber: number, Done: done}).After()
}

// Origin is the shard from which a record was read.
type Origin = codec.Origin

// Page is the result of one read, or a part of a large answer. Behind and End are only reliable in
// the last part. A Page is valid until the next read. If the caller reuses memory, it is only valid
// until Release.
type Page struct {
	Records []Record
	Bytes   int  // of data and keys
	Marked  bool // at least one record may be an aggregate
	// Behind is the lag of the read. It is negative if the service did not send it.
	Behind   time.Duration
	End      bool          // the shard is closed, and this is its last page
	Children []shard.Shard // only set with End, as Kinesis returned them; may be empty
	Took     time.Duration // time from the call to the answer; 0 for fan-out
	// Tip is a time at which there were no records after this page. It is only valid if Behind is
	// 0. It is zero if unknown.
	Tip time.Time

	Wire   *codec.Page // the memory of the records; nil if it has no owner
	Lender Lender      // gets Wire back; if it is nil, Wire is released
}

// ErrEmpty is returned by a reader that does not wait. It means that all records that were read
// have been delivered.
var ErrEmpty = errors.New("all records that were read have been delivered")

// Lender lends pages and takes them back.
type Lender interface {
	// Return takes back a page that is no longer needed.
	Return()
}

// Release reports that the page is no longer needed.
func (p *Page) Release() {
	switch {
	case p.Lender != nil:
		p.Lender.Return()
		p.Lender, p.Wire = nil, nil
	case p.Wire != nil:
		p.Wire.Release()
	}
}

// Keep permanently gives the slice of records to the caller. If memory is reused, the contents of
// the records still belong to the page.
func (p *Page) Keep() {
	if p.Wire != nil {
		p.Wire.Records = nil
	}
}

// Placed returns an error if the records of a page are out of order. A broken answer therefore
// cannot move a checkpoint back or make it skip records. Decoding has already compared neighbouring
// records. Placed also checks the sequence numbers of the first and the last record.
func Placed(w *codec.Page) error {
	for _, i := range [...]int{0, len(w.Records) - 1} {
		if i < len(w.Records) && i >= 0 {
			if _, err := shard.After(w.Records[i].SequenceNumber); err != nil {
				return fmt.Errorf("the service returned a record that cannot be placed: %w", err)
			}
		}
	}
	if i := w.Misplaced; i > 0 {
		return fmt.Errorf("the service returned record %.140s after %.140s", w.Records[i].SequenceNumber, w.Records[i-1].SequenceNumber)
	}
	return nil
}

// Covers reports whether the whole record with the given number is before the position. It returns
// false if the position is not at a record.
func Covers(at shard.Position, number string) bool {
	if at.Kind() != shard.Sequence {
		return false
	}
	c := shard.CompareSequence(number, at.SequenceNumber())
	return c < 0 || (c == 0 && at.Done() == shard.Whole)
}
