package main

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// lag is how far a shard is behind its checkpoint, or why that is not known.
type lag struct {
	age time.Duration
	err error
}

// askLags asks Kinesis about every lease that is not finished, a few at a time.
func askLags(ctx context.Context, client *kinesis.Client, leases []lease.Lease, stream string) map[lease.Key]lag {
	var (
		mu    sync.Mutex
		asked sync.WaitGroup
		lags  = map[lease.Key]lag{}
		turns = make(chan struct{}, 16)
	)
	for _, l := range leases {
		if l.Finished() || (stream != "" && l.Stream != stream) {
			continue
		}
		turns <- struct{}{}
		asked.Go(func() {
			defer func() { <-turns }()
			found := askLag(ctx, client, l)
			mu.Lock()
			defer mu.Unlock()
			lags[l.Key] = found
		})
	}
	asked.Wait()
	return lags
}

func askLag(ctx context.Context, client *kinesis.Client, l lease.Lease) lag {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	in := iteratorAt(l.Position)
	in.StreamName, in.ShardId = aws.String(l.Stream), aws.String(l.Shard)
	it, err := client.GetShardIterator(ctx, in)
	if err != nil {
		return lag{err: err}
	}
	page, err := client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: it.ShardIterator, Limit: aws.Int32(1)})
	if err != nil {
		return lag{err: err}
	}
	age := time.Duration(aws.ToInt64(page.MillisBehindLatest)) * time.Millisecond
	if len(page.Records) > 0 { // behind by this record too, which the answer counts as read
		age = max(age, time.Since(aws.ToTime(page.Records[0].ApproximateArrivalTimestamp)))
	}
	return lag{age: age}
}

// iteratorAt says where reading resumes at a position.
func iteratorAt(p shard.Position) *kinesis.GetShardIteratorInput {
	in := &kinesis.GetShardIteratorInput{}
	switch p.Kind() {
	case shard.Tip:
		in.ShardIteratorType = types.ShardIteratorTypeLatest
	case shard.Time:
		in.ShardIteratorType, in.Timestamp = types.ShardIteratorTypeAtTimestamp, aws.Time(p.Time())
	case shard.Sequence:
		in.StartingSequenceNumber = aws.String(p.SequenceNumber())
		in.ShardIteratorType = types.ShardIteratorTypeAfterSequenceNumber
		if p.Done() != shard.Whole { // a part of that record is still to be handled
			in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		}
	default:
		in.ShardIteratorType = types.ShardIteratorTypeTrimHorizon
	}
	return in
}
