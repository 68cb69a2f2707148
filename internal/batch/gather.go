package batch

import (
	"time"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Share is the memory that a shard may use.
type Share interface {
	TryTake(least, most int) int
	Give(n int)
}

// Waiting is a batch that waits for more records. They are copies, so that what they were read in
// goes back at once: it may be much larger, and the next read would wait for it.
type Waiting struct {
	Records []source.Record
	Behind  time.Duration
	Due     time.Time      // it waits until then; zero while there are no records
	UpTo    shard.Position // everything before that is done when the batch is, also what was dropped

	copies [][]byte // the memory of the data
	bytes  int      // of data
	held   int      // of the share
}

// Gathering makes batches of runs that are not full. It belongs to the goroutine that reads. A nil
// Gathering has no batch that waits.
type Gathering struct {
	Share Share
	Size  Size
	Waiting
}

// Then is the next step after a run was added.
type Then uint8

const (
	Wait     Then = iota // the run waits with what waited before
	Direct               // the rest of the run is a batch, and nothing waits
	HandOver             // the waiting records are a batch, and the rest of the run comes after it
)

// Run is a number of records that are added together.
type Run struct {
	Records []source.Record
	Behind  time.Duration
	Final   bool // nothing after it is waited for
	Whole   bool // what is left of it may go with the next run, so it need not wait
}

// Waits reports whether a batch waits.
func (g *Gathering) Waits() bool { return g != nil && len(g.Records) > 0 }

// IsDue reports whether the batch has waited for as long as it may.
func (g *Gathering) IsDue(now time.Time) bool { return g.Waits() && !now.Before(g.Due) }

// Add adds as much of a run as belongs to the batch, and returns the rest and what follows.
func (g *Gathering) Add(r Run) (rest []source.Record, then Then) {
	if !g.Waits() && (r.Whole || r.Final || g.Size.full(len(r.Records), extentOf(r.Records).data)) {
		return r.Records, Direct
	}
	n := g.Size.Cut(r.Records, len(g.Records), g.bytes)
	switch {
	case n > 0 && g.add(r.Records[:n]):
		g.Behind, r.Records = r.Behind, r.Records[n:]
	case n > 0 && !g.Waits(): // there is no memory to have it wait
		return r.Records, Direct
	} // else what waits goes first
	if len(r.Records) == 0 && !r.Final && !g.Size.full(len(g.Records), g.bytes) {
		return nil, Wait
	}
	return r.Records, HandOver
}

// add adds copies of records. It fails when the share of memory allows no more.
func (g *Gathering) add(records []source.Record) bool {
	n := extentOf(records)
	all := n.names + n.data
	if g.Share.TryTake(all, all) == 0 && all > 0 {
		return false
	}
	g.held += all
	g.bytes += n.data
	from := len(g.Records)
	g.Records = append(g.Records, records...)
	g.copies = append(g.copies, detach(g.Records[from:], n))
	return true
}

// Take returns the batch that waits. After that none does.
func (g *Gathering) Take() Waiting {
	w := g.Waiting
	g.Waiting = Waiting{}
	return w
}

// Give returns the memory of a batch that was handled.
func (g *Gathering) Give(w Waiting) { g.Share.Give(w.held) }

// Fill writes over the data of a batch that was handled, for tests of handlers that keep records.
func (w *Waiting) Fill(with byte) {
	for _, data := range w.copies {
		for i := range data {
			data[i] = with
		}
	}
}
