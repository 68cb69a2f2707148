package source

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/shard"
)

// Record is one record as it was read. Data and the strings alias the page.
type Record = codec.Record

// After returns the position after done sub-records of the record with a sequence number, as
// [Record.After] does.
func After(number string, done uint32) shard.Position {
	return (&Record{SequenceNumber: number, Done: done}).After()
}

// Origin is the shard that a record was read from.
type Origin = codec.Origin

// Page is the result of one read, or a part of a large answer. Only the last part has reliable
// values of Behind and End. It is valid until the next read, or until Release if the caller reuses
// memory.
type Page struct {
	Records []Record
	Bytes   int  // of data and keys
	Marked  bool // some record may be an aggregate
	// how far the read was behind the tip; negative if the service did not say
	Behind   time.Duration
	End      bool          // the shard is closed and this was its last page
	Children []shard.Shard // with End: as named by the service; may be empty
	Took     time.Duration // from the call to the answer; 0 by fan-out
	// with a Behind of 0: the time at which there were no records after this page; zero if unknown
	Tip time.Time

	Wire   *codec.Page // the memory of the records; nil if it has no owner
	Lender Lender      // gets Wire back; if nil, Wire is released
}

// ErrEmpty is returned instead of waiting if every record that was read was handed over.
var ErrEmpty = errors.New("nothing has been read that was not handled")

// Lender lends pages.
type Lender interface {
	// Return takes back a page that is not needed any more.
	Return()
}

// Release reports that the page is not needed any more.
func (p *Page) Release() {
	switch {
	case p.Lender != nil:
		p.Lender.Return()
		p.Lender, p.Wire = nil, nil
	case p.Wire != nil:
		p.Wire.Release()
	}
}

// Keep leaves the slice of the records to the caller for good. If memory is reused, their contents
// still belong to the page.
func (p *Page) Keep() {
	if p.Wire != nil {
		p.Wire.Records = nil
	}
}

// Placed returns an error if the records of a page are out of order, so that a broken answer cannot
// move a checkpoint back or make it skip records. Decoding has compared neighbouring records.
// Placed also checks that the numbers of the first and the last record are valid.
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

// Covers reports whether the whole record with a number is before the position. It returns false
// for a position that is not at a record.
func Covers(at shard.Position, number string) bool {
	if at.Kind() != shard.Sequence {
		return false
	}
	c := shard.CompareSequence(number, at.SequenceNumber())
	return c < 0 || (c == 0 && at.Done() == shard.Whole)
}
