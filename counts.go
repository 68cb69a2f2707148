package weir

import (
	"sync/atomic"

	"github.com/weir-go/weir/internal/notify"
)

// Counts are what a [Consumer] has counted since it was made. They are exact, whatever its [Events]
// do.
type Counts struct {
	// that brought records or the end of a shard, or a part of a large answer
	Reads           uint64
	RecordsRead     uint64 // an aggregate counts as one
	BytesRead       uint64 // of data and keys
	ReadsThrottled  uint64
	ReadsFailed     uint64 // otherwise
	BatchesHandled  uint64
	RecordsFiltered uint64 // dropped by Options.Filter, each time they were read; those of an aggregate count one by one
	RecordsNotJSON  uint64 // that Options.Filter could not read, whatever became of them
	RecordsHandled  uint64 // those of an aggregate count one by one
	BytesHandled    uint64 // of data
	HandlerFailures uint64
	RecordsGivenUp  uint64 // not among those that were handled
	RecordsSkipped  uint64 // done beyond the checkpoint by the owner before; see [Parallel]
	LettersFailed   uint64 // calls of GiveUp.To
	Checkpoints     uint64 // that were saved
	LeasesTaken     uint64
	LeasesEnded     uint64
	LeasesLost      uint64 // of those that ended
	Stalls          uint64
	StoreFailures   uint64
	EventsDropped   uint64 // calls of Events and of the logger that were not made
	EventsCoalesced uint64 // changes of state in whose place a later one was told
	EventsPanicked  uint64
}

// counters are Counts as they are counted.
type counters struct {
	reads, recordsRead, bytesRead, readsThrottled, readsFailed                                                   atomic.Uint64
	batchesHandled, recordsHandled, bytesHandled, handlerFailures, recordsGivenUp, recordsSkipped, lettersFailed atomic.Uint64
	checkpoints, leasesTaken, leasesEnded, leasesLost, stalls, storeFailures                                     atomic.Uint64
	recordsFiltered, recordsNotJSON                                                                              atomic.Uint64
}

// Counts returns what was counted so far, by all calls of Run together. It may be called at any
// time, concurrently with [Consumer.Run] and by [Events].
func (c *Consumer) Counts() Counts {
	n := &c.counted
	all := Counts{
		Reads: n.reads.Load(), RecordsRead: n.recordsRead.Load(), BytesRead: n.bytesRead.Load(),
		ReadsThrottled: n.readsThrottled.Load(), ReadsFailed: n.readsFailed.Load(),
		RecordsFiltered: n.recordsFiltered.Load(), RecordsNotJSON: n.recordsNotJSON.Load(),
		BatchesHandled: n.batchesHandled.Load(), RecordsHandled: n.recordsHandled.Load(), BytesHandled: n.bytesHandled.Load(),
		HandlerFailures: n.handlerFailures.Load(), RecordsGivenUp: n.recordsGivenUp.Load(), RecordsSkipped: n.recordsSkipped.Load(), LettersFailed: n.lettersFailed.Load(), Checkpoints: n.checkpoints.Load(),
		LeasesTaken: n.leasesTaken.Load(), LeasesEnded: n.leasesEnded.Load(), LeasesLost: n.leasesLost.Load(),
		Stalls: n.stalls.Load(), StoreFailures: n.storeFailures.Load(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all.add(c.eventsMissed)
	for q := range c.queues {
		all.add(q.Counts())
	}
	return all
}

func (c *Counts) add(missed notify.Counts) {
	c.EventsDropped += missed.Dropped
	c.EventsCoalesced += missed.Coalesced
	c.EventsPanicked += missed.Panicked
}
