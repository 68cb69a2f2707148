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

// Page is what one read returned, or a part of a large answer, of which only the last says Behind
// and End for sure. It is valid until the next read, or until Release where the caller reuses
// memory.
type Page struct {
	Records []Record
	Bytes   int  // of data and keys
	Marked  bool // a record may be an aggregate
	// how far the read was behind the tip; negative when the service did not say
	Behind   time.Duration
	End      bool          // the shard is closed and this was the last of it
	Children []shard.Shard // with End: what the service named; may be empty
	Took     time.Duration // from the call until it was there; 0 by fan-out
	// with a Behind of 0: when there was no more than this and what came before; zero where that is
	// not known
	Tip time.Time

	Wire   *codec.Page // what the records lie in; nil when that is nobody's
	Lender Lender      // who wants Wire back; nil: it is released
}

// ErrEmpty is for one that does not wait: everything that was read was handed over.
var ErrEmpty = errors.New("nothing has been read that was not handled")

// Lender lends pages.
type Lender interface {
	// Return takes a page back that is not needed any more.
	Return()
}

// Release says that nothing of the page is needed any more.
func (p *Page) Release() {
	switch {
	case p.Lender != nil:
		p.Lender.Return()
		p.Lender, p.Wire = nil, nil
	case p.Wire != nil:
		p.Wire.Release()
	}
}

// Keep leaves the slice of the records to the caller for good. What they refer to is still the
// page's where memory is used again.
func (p *Page) Keep() {
	if p.Wire != nil {
		p.Wire.Records = nil
	}
}

// Placed says what is wrong with the places of records. All were compared when they were decoded,
// so that no broken answer makes a checkpoint go back or skip; the ends are checked to be numbers.
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

// Covers reports whether all of the record with a number lies before the position. Only a position
// of a record covers any.
func Covers(at shard.Position, number string) bool {
	if at.Kind() != shard.Sequence {
		return false
	}
	c := shard.CompareSequence(number, at.SequenceNumber())
	return c < 0 || (c == 0 && at.Done() == shard.Whole)
}
