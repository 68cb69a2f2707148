package weir

import (
	"time"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/source"
)

// Record is one record of a shard. It is a small value; Data and the strings alias the page that
// was read, which lives for as long as anything points into it. Data is read-only: writing into it
// changes what a later attempt sees, and WEIR_POISON=1 in the environment of a test catches it.
type Record struct {
	// Data is the payload.
	Data []byte
	// PartitionKey is the producer's; empty only on streams that distribute records themselves and
	// got none.
	PartitionKey string
	// SequenceNumber is decimal, of up to 129 digits. It orders the records of one shard, as a
	// number: compare positions.
	SequenceNumber string

	arrival int64 // Unix milliseconds
	// sub-records of SequenceNumber that are done after this one; shard.Whole for a plain record
	done      uint32
	encrypted bool
	failed    bool    // it is not handed over, see FailNotJSON
	from      *origin // nil only for a Record that weir did not make
}

// Aggregates says what becomes of records into which the Kinesis Producer Library (KPL) has packed
// many.
type Aggregates int

const (
	// Unpack makes each packed record a separate [Record] with its own key and position. The
	// default. A payload that only looks like an aggregate, or a damaged one, is delivered
	// unchanged.
	Unpack Aggregates = iota
	// UnpackOwn is Unpack without the packed records whose keys do not belong to the shard: after a
	// split the KPL sends those once more, to the right shard. Only for streams whose producers do
	// that: elsewhere, and on streams that distribute records by themselves, it drops the only
	// copy. [Events].Unpacked counts the dropped ones.
	UnpackOwn
	// KeepPacked delivers aggregates as they are.
	KeepPacked
)

// origin is the shard that records were read from, and what belongs to a record with tags. It keeps
// no page in memory.
type origin = source.Origin

// Position is the place right after r, where reading resumes once r is done. It is a copy: it may
// be kept for longer than the record, and keeps no page in memory.
func (r Record) Position() Position { return source.After(r.SequenceNumber, r.done) }

// ID names r among all records of all streams: stream, shard and [Record.Position] as text, such as
// "orders/shardId-000000000003/4959…" or, for the second record of an aggregate, "…+2". It is the
// same each time the record is read with the same [Options].Aggregates, so an idempotent sink can
// use it as a key. It is "" for a Record that weir did not make.
func (r Record) ID() string {
	if r.from == nil {
		return ""
	}
	return r.from.Stream + "/" + r.from.Shard + "/" + r.Position().String()
}

// Stream is the name of the stream that r was read from.
func (r Record) Stream() string {
	if r.from == nil {
		return ""
	}
	return r.from.Stream
}

// Shard is the ID of the shard that r was read from.
func (r Record) Shard() string {
	if r.from == nil {
		return ""
	}
	return r.from.Shard
}

// Tags are tags that the producer added to the record in an aggregate, such as the context of its
// trace; nearly always nil. They are copies and may be kept for longer than the record.
func (r Record) Tags() aggregate.Tags {
	if r.from == nil {
		return aggregate.Tags{}
	}
	return r.from.TagsOf(r.SequenceNumber, r.done)
}

// ArrivalTime is when the service took the record, to the millisecond. It is not strictly
// increasing inside a shard.
func (r Record) ArrivalTime() time.Time { return time.UnixMilli(r.arrival) }

// SDK returns r as the AWS SDK's type, for code that expects that. Data is shared.
func (r Record) SDK() types.Record {
	sdk := types.Record{
		ApproximateArrivalTimestamp: aws.Time(r.ArrivalTime()),
		Data:                        r.Data,
		PartitionKey:                aws.String(r.PartitionKey),
		SequenceNumber:              aws.String(r.SequenceNumber),
	}
	if r.encrypted {
		sdk.EncryptionType = types.EncryptionTypeKms
	}
	return sdk
}

func asRecord(r *source.Record) *Record { return (*Record)(unsafe.Pointer(r)) }

func asSource(r *Record) *source.Record { return (*source.Record)(unsafe.Pointer(r)) }

// whole returns the records of a read in the same memory: a copy of each would be a large part of
// the cost of small ones. [Record] has the layout of [source.Record];
// TestARecordIsLaidOutAsItWasRead checks that.
func whole(read []source.Record) []Record {
	return unsafe.Slice(asRecord(unsafe.SliceData(read)), len(read))
}

// asRead is the reverse of whole.
func asRead(records []Record) []source.Record {
	return unsafe.Slice(asSource(unsafe.SliceData(records)), len(records))
}
