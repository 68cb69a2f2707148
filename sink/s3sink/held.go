package s3sink

import (
	"time"

	"github.com/weir-go/weir"
)

// held contains the records of a shard that were read and are not in an object yet, in order.
type held struct {
	parts   []part
	records int
	bytes   int
	since   time.Time // when the first of them was read
}

// part contains consecutive records of a batch.
type part struct {
	batch   *weir.Batch
	records []weir.Record
}

func (p part) last() *weir.Record { return &p.records[len(p.records)-1] }

// overhead is the approximate memory of a record without its payload and key.
const overhead = 160

// size returns the size of a record that counts toward MaxBytes.
func size(r *weir.Record) int { return len(r.Data) + len(r.PartitionKey) }

// add appends the record b.Records[i], which must follow the other records. It returns the
// additional memory.
func (h *held) add(b *weir.Batch, i int) int {
	if h.records == 0 {
		h.since = time.Now()
	}
	if last := len(h.parts) - 1; last >= 0 && h.parts[last].batch == b {
		h.parts[last].records = h.parts[last].records[:len(h.parts[last].records)+1]
	} else {
		h.parts = append(h.parts, part{b, b.Records[i : i+1]})
	}
	h.records++
	h.bytes += size(&b.Records[i])
	return size(&b.Records[i]) + overhead
}

// memory returns the memory of all records.
func (h *held) memory() int { return h.bytes + h.records*overhead }

// first and last return the first and the last record. held must not be empty.
func (h *held) first() *weir.Record { return &h.parts[0].records[0] }
func (h *held) last() *weir.Record  { return h.parts[len(h.parts)-1].last() }

// lastWhole returns the last position at which an object may end. It returns zero if there is none.
func (h *held) lastWhole() weir.Position {
	for p := len(h.parts) - 1; p >= 0; p-- {
		for i := len(h.parts[p].records) - 1; i >= 0; i-- {
			if at := h.parts[p].records[i].Position(); whole(at) {
				return at
			}
		}
	}
	return weir.Position{}
}

// cut removes the records of an object that ends at to, and returns them.
func (h *held) cut(to weir.Position) held {
	out := held{since: h.since}
	for len(h.parts) > 0 {
		p := &h.parts[0]
		n := 0
		for n < len(p.records) && reaches(to, p.records[n].Position()) {
			out.bytes += size(&p.records[n])
			n++
		}
		if n > 0 {
			out.parts = append(out.parts, part{p.batch, p.records[:n]})
			out.records += n
		}
		if n < len(p.records) {
			p.records = p.records[n:]
			break
		}
		h.parts = h.parts[1:]
	}
	h.records -= out.records
	h.bytes -= out.bytes
	if len(h.parts) == 0 {
		h.parts = nil
	}
	return out
}
