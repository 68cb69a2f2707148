// Package delivery contains one batch that is passed to user code: its records, how many of them
// are done, and the calls that failed. It makes no calls and never waits.
//
// One goroutine passes the batch to the handler and calls all methods. Any goroutine may call
// [Delivery.MarkDone] and [Delivery.Mark] at any time, even after the batch is over.
package delivery

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"slices"
	"sort"
	"time"

	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Delivery is one batch that is passed to the handler until all of its records are done. A Delivery
// can then be reused for another batch.
type Delivery struct {
	From *source.Origin // the shard of the records; it never changes

	mu lock.Mutex[lock.Delivery] // guards progress and use
	state
}

// state contains everything that Begin sets.
type state struct {
	Batch
	failure.History
	Calls int // number of calls of the handler
	Gone  int // number of records that were dead-lettered
	progress
	use uint64 // number of batches for which the delivery was used
}

// Batch describes a batch. It does not change during the delivery.
type Batch struct {
	Behind time.Duration // the lag of the read
	End    bool          // the shard ends with the batch
	Idle   bool          // the call has nothing to handle
	Tip    time.Time     // with Idle: when there was nothing more to read
}

// progress describes how much of the batch is done.
type progress struct {
	records Records // empty after the end of the batch
	done    int     // number of records that are done
	ends    []int   // ends of separate parts, the next one last; nil if there are none
	over    bool    // the memory of the records may be reused
	whole   bool    // all of the batch is done
	upTo    shard.Position
}

// Begin starts the delivery of a batch. It sets everything that belongs to a batch, so nothing of
// the previous batch remains. It returns the number of this use, which [Delivery.MarkDone] needs.
func (d *Delivery) Begin(b Batch, r Records) (use uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = state{Batch: b, progress: progress{records: r}, use: d.use + 1}
	return d.use
}

// Size returns the number of records and the size of their data.
func (d *Delivery) Size() (records, bytes int) { return len(d.records.all), d.records.bytes }

// Part is a range of records for one call of the handler.
type Part struct {
	Records []source.Record
	From    int            // index of the first record
	Use     uint64         // number of the delivery's use
	End     bool           // the shard ends with the part
	UpTo    shard.Position // position after the part; zero for the last part
}

// Next returns the records of the next call: all records that are not done, or a part of them. It
// returns false if all records are done. Goroutines of an earlier call may have marked them as
// done. filtered is set if a filter may have failed at records. Each such record is a separate
// part.
func (d *Delivery) Next(filtered bool) (p Part, some bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropParts()
	if d.done == len(d.records.all) && !d.End && !d.Idle {
		return Part{}, false
	}
	if filtered {
		d.cutFailed()
	}
	d.Reach(d.done)
	d.Calls++
	limit := d.limit()
	p = Part{Records: d.records.all[d.done:limit:limit], From: d.done, Use: d.use, End: d.End && limit == len(d.records.all)}
	if limit < len(d.records.all) {
		p.UpTo = d.records.all[limit-1].After()
	}
	return p, true
}

// cutFailed shortens the next part, so that a record at which the filter failed is a part by
// itself.
func (d *Delivery) cutFailed() {
	limit := d.limit()
	i := slices.IndexFunc(d.records.all[d.done:limit], func(r source.Record) bool { return r.Failed })
	if i < 0 {
		return
	}
	if cut := d.done + max(i, 1); cut < limit {
		d.ends = append(d.ends, cut)
	}
}

// Single makes the next record a separate part.
func (d *Delivery) Single() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropParts()
	if d.limit()-d.done > 1 {
		d.ends = append(d.ends, d.done+1)
	}
}

// Halve splits the records at which the last call failed into two parts. until is the index after
// the last of these records.
func (d *Delivery) Halve(until int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ends = append(d.ends, d.Head+(until-d.Head+1)/2)
}

// Advance notes that the part of the last call is done. It reports whether the whole batch is done.
func (d *Delivery) Advance() (all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ends) == 0 {
		return true
	}
	d.done = max(d.done, d.limit())
	d.Forget() // a failure after the part was done does not concern the following records
	return false
}

// NoteFailure notes that the last call failed. named is set if the handler named the first record
// that is not done.
func (d *Delivery) NoteFailure(err error, named bool, now time.Time) {
	d.mu.Lock()
	done, limit := d.done, d.limit()
	d.mu.Unlock()
	d.Note(err, done, named || limit-done == 1, now)
}

// MoveHead moves the history to the first record that is not done. It returns the record's index.
func (d *Delivery) MoveHead() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Reach(d.done)
	return d.done
}

// PassOver notes that the next record is left out.
func (d *Delivery) PassOver() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done++
	d.Reach(d.done)
	d.Gone++
}

// GaveUp notes that the records of a verdict are done, and that n of them were dead-lettered.
func (d *Delivery) GaveUp(v failure.Verdict, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = max(d.done, v.Until())
	d.Gone += n
}

// Named is a record that an error of the handler names.
type Named struct {
	SequenceNumber string
	Done           uint32
	Elsewhere      bool // the record belongs to another shard
	Rejected       bool // the handler can never succeed with it
	Untried        int  // number of records from there on that were left out because of their age
}

// Blame finds the first record that an error names, and its placing. If the placing is NamedHere,
// Blame marks all records before that record as done.
func (d *Delivery) Blame(named []Named) (of failure.Blame, placed failure.Placing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, of := len(d.records.all), failure.Blame{Named: true}
	for _, r := range named {
		i, found := d.find(r.SequenceNumber, r.Done)
		if r.Elsewhere || !found || failure.Place(i, d.Head, d.done, d.limit()) == failure.NamedOther {
			return failure.Blame{}, failure.NamedOther
		}
		if i < first {
			first, of.Rejected, of.Untried = i, r.Rejected, min(r.Untried, d.limit()-i)
		}
	}
	if failure.Place(first, d.Head, d.done, d.limit()) == failure.NamedDone {
		return failure.Blame{Denied: true}, failure.NamedDone
	}
	d.done = first
	return of, failure.NamedHere
}

// Failed returns the last records of the current part, beginning with the record at which the last
// call failed. Records that the handler's goroutines have marked as done since then are included.
func (d *Delivery) Failed() []source.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.records.all[min(d.Head, d.limit()):d.limit()]
}

// Slice returns a range of the records.
func (d *Delivery) Slice(from, until int) []source.Record { return d.records.all[from:until] }

// Failing describes the first record at which the handler fails.
func (d *Delivery) Failing() lease.Failing {
	f := lease.Failing{Attempts: d.Attempts}
	switch d.Held {
	case failure.WaitForOthers:
		f.Held = lease.HeldForOutage
	case failure.WaitForRoom:
		f.Held = lease.HeldRate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.limit() - d.done
	if n <= 0 { // the handler fails at the end of the shard
		return f
	}
	if f.Records = n; d.Alone > 0 {
		f.Records = 1
	}
	r := &d.records.all[d.done]
	f.At = r.After().String()
	if r.Key != "" {
		hash := sha256.Sum256([]byte(r.Key))
		f.KeyHash = hex.EncodeToString(hash[:4])
	}
	return f
}

// Fingerprint returns a hash of all data that a handler must not modify.
func (d *Delivery) Fingerprint(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range d.records.all {
		_, _ = h.Write(d.records.all[i].Data)
	}
	return h.Sum64()
}

// find returns the index of a record. The caller holds the lock.
func (d *Delivery) find(number string, done uint32) (int, bool) {
	at := func(i int) int {
		of := &d.records.all[i]
		return cmp.Or(shard.CompareSequence(number, of.SequenceNumber), cmp.Compare(done, of.Done))
	}
	// This is nearly always true, because records are handled in order.
	if d.done < len(d.records.all) && at(d.done) == 0 {
		return d.done, true
	}
	return sort.Find(len(d.records.all), at)
}
