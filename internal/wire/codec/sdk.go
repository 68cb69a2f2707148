package codec

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/shard"
)

// FromSDK fills the page from an output of the SDK.
func (p *Page) FromSDK(out *kinesis.GetRecordsOutput) {
	stale := p.begin()
	p.Next, p.Children = aws.ToString(out.NextShardIterator), out.ChildShards
	if out.MillisBehindLatest != nil {
		p.Behind = millis(*out.MillisBehindLatest)
	}
	p.reserve(len(out.Records))
	for i := range out.Records {
		in := &out.Records[i]
		r := Record{
			Data: in.Data[:len(in.Data):len(in.Data)], Key: aws.ToString(in.PartitionKey), SequenceNumber: aws.ToString(in.SequenceNumber),
			Done: shard.Whole, Encrypted: in.EncryptionType == types.EncryptionTypeKms,
		}
		if t := in.ApproximateArrivalTimestamp; t != nil {
			r.Arrival = t.UnixMilli()
		}
		p.Append(r)
	}
	p.Last = true
	if p.Memory != nil && p.Bytes > 0 {
		p.Memory.TakeExcess(p.Bytes) // the SDK has already allocated this memory
		p.held += p.Bytes
	}
	p.finish(stale)
}

// EventFromSDK fills the page from an event of the SDK.
func (p *Page) EventFromSDK(ev *types.SubscribeToShardEvent) {
	p.FromSDK(&kinesis.GetRecordsOutput{
		Records: ev.Records, ChildShards: ev.ChildShards, MillisBehindLatest: ev.MillisBehindLatest,
		NextShardIterator: ev.ContinuationSequenceNumber,
	})
}
