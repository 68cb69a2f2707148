package weir

import (
	"reflect"
	"sync/atomic"

	"github.com/weir-go/weir/internal/shardrun"
)

// Counts are the counters of a [Consumer] since it was made. They are exact, even if events are
// dropped.
type Counts struct {
	// Reads is the number of answers that had records or the end of a shard. Each part of a large
	// answer counts as one.
	Reads               uint64
	RecordsRead         uint64 // an aggregate counts as one
	BytesRead           uint64 // of data and keys
	ReadsThrottled      uint64
	ReadsFailed         uint64 // otherwise
	BatchesHandled      uint64
	RecordsFiltered     uint64 // dropped by Options.Filter, each time they were read; those of an aggregate count one by one
	RecordsNotJSON      uint64 // records that Options.Filter could not read, with any NotJSON
	RecordsHandled      uint64 // those of an aggregate count one by one
	BytesHandled        uint64 // of data
	HandlerFailures     uint64
	RecordsDeadLettered uint64 // not among those that were handled
	RecordsSkipped      uint64 // done beyond the checkpoint by the owner before; see [Concurrency]
	DeadLettersFailed   uint64 // calls of OnFailure.Destination
	Checkpoints         uint64 // that were saved
	LeasesTaken         uint64
	LeasesEnded         uint64
	LeasesLost          uint64 // leases that ended because they were lost
	Stalls              uint64
	StoreFailures       uint64
	EventsDropped       uint64 // calls of OnEvent and of the logger that were not made
	EventsCoalesced     uint64 // changes of state that a later one replaced
	EventsPanicked      uint64
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
