package delivery

import "github.com/weir-go/weir/shard"

// Noted is the result of MarkDone.
type Noted struct {
	Found bool // the record is part of the batch
	Over  bool // the batch is over
	Whole bool // all of the batch is done
	Done  int  // number of records that are done
}

// MarkDone notes that the records of a batch are done, up to and including the given record. use is
// the number that [Delivery.Begin] returned for the batch. upTo is the position after the part of
// the batch that the caller got, or nil if that part is the last one. MarkDone marks no record
// after upTo.
func (d *Delivery) MarkDone(use uint64, number string, done uint32, upTo *shard.Position) Noted {
	var at shard.Position
	if upTo != nil {
		at, _ = shard.Part(number, done)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if use != d.use { // a delivery is reused only after its previous batch is done
		return Noted{Over: true, Whole: true}
	}
	found := false
	if upTo == nil || at.Compare(*upTo) <= 0 {
		var i int
		if i, found = d.find(number, done); found {
			d.done = max(d.done, i+1)
		}
		// If a call comes after the records were dropped, only positions can be compared. Such a
		// late call never marks the end of the shard.
		if d.whole {
			at, _ = shard.Part(number, done)
			found = at.Compare(d.upTo) <= 0
		}
	}
	return Noted{Found: found, Over: d.over, Whole: d.whole, Done: d.done}
}

// Mark returns the position after the last done record, or zero. Heartbeats save this position
// while the handler is running.
func (d *Delivery) Mark() shard.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mark()
}

func (d *Delivery) mark() shard.Position {
	if d.done == 0 || d.over {
		return shard.Position{}
	}
	return d.records.all[d.done-1].After()
}

// limit returns the index after the records of the next call. The caller holds the lock.
func (d *Delivery) limit() int {
	if n := len(d.ends); n > 0 {
		return d.ends[n-1]
	}
	return len(d.records.all)
}

// dropParts removes parts that are done. The caller holds the lock.
func (d *Delivery) dropParts() {
	for len(d.ends) > 0 && d.limit() <= d.done {
		d.ends = d.ends[:len(d.ends)-1]
	}
}

// PartDone reports whether all records of the last call are done.
func (d *Delivery) PartDone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done >= d.limit() && !(d.End && d.limit() == len(d.records.all)) && !d.Idle
}

// Done returns the number of records that are done.
func (d *Delivery) Done() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// Rest returns the number of records that are not done, and the positions after the first and the
// last of them as text.
func (d *Delivery) Rest() (n int, first, last string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rest := d.records.all[d.done:]
	if len(rest) == 0 {
		return 0, "", ""
	}
	return len(rest), rest[0].After().String(), rest[len(rest)-1].After().String()
}

// NextRecord returns the position after the first record that is not done, and its ID. It returns
// false if all records are done.
func (d *Delivery) NextRecord() (at shard.Position, id string, some bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done >= len(d.records.all) {
		return shard.Position{}, "", false
	}
	at = d.records.all[d.done].After()
	return at, d.From.Stream + "/" + d.From.Shard + "/" + at.String(), true
}

// Finish notes that the whole batch is done, and returns the position after it.
func (d *Delivery) Finish() shard.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done, d.whole = len(d.records.all), true
	d.upTo = d.mark()
	return d.upTo
}

// Complete notes that the whole batch is done, and drops the records.
func (d *Delivery) Complete() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done, d.whole, d.over = len(d.records.all), true, true
	d.records.release()
}

// Close drops the records, because the memory of their page may be reused.
func (d *Delivery) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	d.records.release()
}
