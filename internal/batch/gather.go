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

// Waiting is a batch that waits for more records. The records are copies, so that the memory of
// their page is returned at once. The page may be much larger than the records, and the next read
// would wait for the page's memory.
type Waiting struct {
	Records []source.Record
	Behind  time.Duration
	Due     time.Time      // the end of the wait; zero if there are no records
	UpTo    shard.Position // everything before it is done with the batch, including dropped records

	copies [][]byte // the memory of the records' data
	bytes  int      // bytes of data
	held   int      // bytes that were taken from the share
}

// Gathering combines runs that are not full into batches. The goroutine that reads owns it. A nil
// Gathering never has a waiting batch.
type Gathering struct {
	Share Share
	Size  Size
	Waiting
}

// Then is the next step after Add.
type Then uint8

const (
	Wait     Then = iota // the run waits together with earlier records
	Direct               // the rest of the run is a batch, and no records wait
	HandOver             // the waiting records are a batch, and the rest of the run follows
)

// Run is a number of records that are added together.
type Run struct {
	Records []source.Record
	Behind  time.Duration
	Final   bool // do not wait for records after it
	Whole   bool // it is a full batch, because a further run of its page follows
}

// Waits reports whether a batch waits for more records.
func (g *Gathering) Waits() bool { return g != nil && len(g.Records) > 0 }

// IsDue reports whether the batch has waited for the maximum time.
func (g *Gathering) IsDue(now time.Time) bool { return g.Waits() && !now.Before(g.Due) }

// Add adds as much of a run as fits into the batch. It returns the rest and the next step.
func (g *Gathering) Add(r Run) (rest []source.Record, then Then) {
	if !g.Waits() && (r.Whole || r.Final || g.Size.full(len(r.Records), extentOf(r.Records).data)) {
		return r.Records, Direct
	}
	n := g.Size.Cut(r.Records, len(g.Records), g.bytes)
	switch {
	case n > 0 && g.add(r.Records[:n]):
		g.Behind, r.Records = r.Behind, r.Records[n:]
	case n > 0 && !g.Waits(): // there is no memory to keep a copy
		return r.Records, Direct
	} // otherwise the waiting records go first
	if len(r.Records) == 0 && !r.Final && !g.Size.full(len(g.Records), g.bytes) {
		return nil, Wait
	}
	return r.Records, HandOver
}

// add adds copies of records. It returns false if the share of memory has no room.
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

// Take returns the waiting batch and removes it.
func (g *Gathering) Take() Waiting {
	w := g.Waiting
	g.Waiting = Waiting{}
	return w
}

// Give returns the memory of a batch that was handled.
func (g *Gathering) Give(w Waiting) { g.Share.Give(w.held) }

// Fill overwrites the data of a batch that was handled, for tests of handlers that keep records.
func (w *Waiting) Fill(with byte) {
	for _, data := range w.copies {
		for i := range data {
			data[i] = with
		}
	}
}
