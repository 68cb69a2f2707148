package weir

import (
	"strings"
	"time"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Record is one record of a shard. It is a small value; Data and the strings alias the page that was read, which lives
// for as long as anything points into it. Treat Data as read-only.
type Record struct {
	// Data is the payload.
	Data []byte
	// PartitionKey is the producer's; empty only on streams that distribute records themselves and got none.
	PartitionKey string
	// SequenceNumber is decimal, of up to 129 digits. It orders the records of one shard, as a number: compare positions.
	SequenceNumber string

	arrival   int64  // Unix milliseconds
	done      uint32 // sub-records of SequenceNumber that are done after this one; shard.Whole for a plain record
	encrypted bool
}

// Position is the place right after r, where reading resumes once r is done. It is a copy: it may be kept for longer than
// the record, and keeps no page in memory.
func (r Record) Position() Position {
	p, err := shard.Part(strings.Clone(r.SequenceNumber), r.done)
	if err != nil { // only a Record that no consumer made
		return Position{}
	}
	return p
}

// ArrivalTime is when the service took the record, to the millisecond. It is not strictly increasing inside a shard.
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

func newRecord(r *source.Record) Record { return *(*Record)(unsafe.Pointer(r)) }

// whole are records as they were read, in the same memory: a copy of each would be a large part of what reading small ones costs. [Record]
// is laid out as [source.Record] is, to which TestARecordIsLaidOutAsItWasRead holds it.
func whole(read []source.Record) []Record {
	return unsafe.Slice((*Record)(unsafe.Pointer(unsafe.SliceData(read))), len(read))
}
