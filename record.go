package weir

import (
	"time"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/source"
)

// Record is one record of a shard. It is a small value. Data and the strings point into the memory
// of the read, which stays in memory as long as the program keeps Data or one of the strings. Data
// is read-only: a later attempt would see changes. With WEIR_POISON=1 in the environment, a test
// fails if a handler writes into Data.
type Record struct {
	// Data is the payload.
	Data []byte
	// PartitionKey is the key that the producer chose. It is empty only on streams that distribute
	// records by themselves, if the producer gave no key.
	PartitionKey string
	// SequenceNumber is a decimal number of up to 129 digits. The records of one shard are in the
	// order of their sequence numbers. To compare records, compare their positions.
	SequenceNumber string

	arrival int64 // Unix milliseconds
	// done is the number of sub-records of SequenceNumber that are done once this record is done.
	// It is shard.Whole for a record that is not from an aggregate.
	done      uint32
	encrypted bool
	failed    bool    // it is not handed over, see FailNotJSON
	from      *origin // nil only for a Record that weir did not make
}

// Aggregates says how weir treats aggregates: records into which the Kinesis Producer Library (KPL)
// has packed several records.
type Aggregates int

const (
	// Unpack makes each packed record a separate [Record] with its own key and position. The
	// default. A payload that only looks like an aggregate, or a damaged one, is delivered
	// unchanged.
	Unpack Aggregates = iota
	// UnpackOwn unpacks, and drops packed records whose keys do not belong to the shard. After a
	// split, the KPL sends such records again to the right shard. Use UnpackOwn only if all
	// producers of the stream do that: otherwise, and on streams that distribute records by
	// themselves, it drops the only copy. [event.Unpacked] reports the number of dropped records.
	UnpackOwn
	// KeepPacked delivers aggregates as they are.
	KeepPacked
)

// origin is the shard that records were read from. A record with tags has its own origin, which
// also contains the tags. An origin does not point into the memory of a read.
type origin = source.Origin

// Position returns the place right after r, where reading resumes once r is done. The result shares
// no memory with the record, so it may be kept.
func (r Record) Position() Position { return source.After(r.SequenceNumber, r.done) }

// ID identifies r among the records of all streams. It consists of the stream, the shard and the
// text of [Record.Position], such as "orders/shardId-000000000003/4959…" or, for the second record
// of an aggregate, "…+2". The ID is the same each time the record is read with the same
// [Options].Aggregates, so an idempotent sink can use it as a key. It is "" for a Record that weir
// did not make.
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

// Tags returns the tags that the producer added to the record in an aggregate, such as the context
// of a trace. Nearly all records have no tags. The tags are copies and may be kept for longer than
// the record.
func (r Record) Tags() aggregate.Tags {
	if r.from == nil {
		return aggregate.Tags{}
	}
	return r.from.TagsOf(r.SequenceNumber, r.done)
}

// ArrivalTime returns the time at which the service accepted the record, with a precision of a
// millisecond. In a shard, later records may have earlier times.
func (r Record) ArrivalTime() time.Time { return time.UnixMilli(r.arrival) }

// SDK returns r as the AWS SDK's type. Both share Data.
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

// whole returns the records of a read as Records in the same memory. For small records, a copy of
// each would be a large part of the cost. [Record] has the layout of [source.Record];
// TestARecordIsLaidOutAsItWasRead checks that.
func whole(read []source.Record) []Record {
	return unsafe.Slice(asRecord(unsafe.SliceData(read)), len(read))
}

// asRead is the reverse of whole.
func asRead(records []Record) []source.Record {
	return unsafe.Slice(asSource(unsafe.SliceData(records)), len(records))
}
