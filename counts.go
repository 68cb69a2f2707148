package weir

import (
	"reflect"
	"sync/atomic"

	"github.com/weir-go/weir/internal/shardrun"
)

// Counts are the counters of a [Consumer] since it was made, over all calls of Run. They are exact,
// even if events are dropped, and only grow.
type Counts struct {
	// Reads is the number of answers that had records or the end of a shard. Each part of a large
	// answer counts as one.
	Reads           uint64
	RecordsRead     uint64 // records in these answers; an aggregate counts as one
	BytesRead       uint64 // bytes of data and partition keys in these answers
	ReadsThrottled  uint64 // reads that the service throttled
	ReadsFailed     uint64 // reads that failed for another reason
	BatchesHandled  uint64 // batches that were done; with RunPull, before the next batch was requested
	RecordsFiltered uint64 // records that Options.Filter dropped, each time they were read; those of an aggregate count one by one
	RecordsNotJSON  uint64 // records that Options.Filter could not read because they are not JSON, whatever Filter.NotJSON is
	RecordsHandled  uint64 // records of these batches that were not dead-lettered; those of an aggregate count one by one
	BytesHandled    uint64 // bytes of data of these records
	HandlerFailures uint64 // failed calls of the handler, and of Open, Position and Pull
	// RecordsDeadLettered is the number of records that were dead-lettered or skipped. They do not
	// count as handled.
	RecordsDeadLettered uint64
	// RecordsSkipped is the number of records beyond the checkpoint that the previous owner had
	// already handled; see [Concurrency].
	RecordsSkipped    uint64
	RepeatsDropped    uint64 // records that Options.DropRepeats dropped, each time they were read
	DeadLettersFailed uint64 // calls of OnFailure.Destination that failed
	Checkpoints       uint64 // checkpoints that were saved
	LeasesTaken       uint64 // leases that this consumer took
	LeasesEnded       uint64 // leases that ended, for any reason
	LeasesLost        uint64 // leases that ended because they were lost
	Stalls            uint64 // shards that made no progress; see [event.Stalled]
	StoreFailures     uint64 // failed calls that [event.StoreFailed] reports
	EventsDropped     uint64 // calls of OnEvent and of the logger that were not made
	EventsCoalesced   uint64 // changes of state that a later one replaced
	EventsPanicked    uint64 // calls of OnEvent and of the logger that panicked
}

// countsField contains, for each counter, the index of its field in Counts.
var countsField = func() (indexes []int) {
	from, to := reflect.TypeFor[shardrun.Counters](), reflect.TypeFor[Counts]()
	for i := range from.NumField() {
		field, _ := to.FieldByName(from.Field(i).Name)
		indexes = append(indexes, field.Index[0])
	}
	return indexes
}()

// Counts returns the sums over all calls of Run. It may be called at any time, concurrently with
// [Consumer.Run], and by Options.OnEvent.
func (c *Consumer) Counts() (all Counts) {
	from, to := reflect.ValueOf(&c.counted).Elem(), reflect.ValueOf(&all).Elem()
	for i, field := range countsField {
		counter := (*atomic.Uint64)(from.Field(i).Addr().UnsafePointer())
		to.Field(field).SetUint(counter.Load())
	}
	missed := c.runs.Missed()
	all.EventsDropped, all.EventsCoalesced, all.EventsPanicked = missed.Dropped, missed.Coalesced, missed.Panicked
	return all
}
