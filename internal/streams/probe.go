package streams

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/internal/wire/codec"
)

const (
	// probed is the number of shards of a stream from which a probe selects.
	probed = 100
	// probeReads is the number of shards that a probe tries. One of them must be readable.
	probeReads = 2
)

// Probe tests whether this process can read at all. It lists a page of a stream's shards. It reads
// shard n (modulo their number) at its tip, and the next shard if that fails. Errors that every
// worker would get, such as throttling, count as success. A worker uses Probe to find out whether
// the cause of a problem is the worker itself or its shards.
func Probe(ctx context.Context, client wire.Kinesis, caller *wire.Caller, s Stream, n int) error {
	in := &kinesis.ListShardsInput{MaxResults: aws.Int32(probed)}
	in.StreamName, in.StreamARN = s.NameAndARN()
	listed, err := client.ListShards(ctx, in, Once)
	if err != nil {
		return unlessForAll(err)
	}
	if len(listed.Shards) == 0 {
		return fmt.Errorf("stream %s has no shards", s.Name)
	}
	for i := range probeReads {
		if err = probe(ctx, client, caller, s, listed.Shards[(n+i)%len(listed.Shards)].ShardId); err == nil {
			return nil
		}
	}
	return err
}

func probe(ctx context.Context, client wire.Kinesis, caller *wire.Caller, s Stream, id *string) error {
	in := &kinesis.GetShardIteratorInput{ShardId: id, ShardIteratorType: types.ShardIteratorTypeLatest}
	in.StreamName, in.StreamARN = s.NameAndARN()
	at, err := caller.Iterator(ctx, in, nil, nil)
	if err != nil {
		return unlessForAll(err)
	}
	var page codec.Page
	if err := caller.GetRecords(ctx, wire.Request{Iterator: at, Limit: 1, StreamARN: s.ARN}, &page); err != nil {
		return unlessForAll(err)
	}
	page.Release()
	return nil
}

// unlessForAll returns err, or nil if every worker would get the same error.
func unlessForAll(err error) error {
	if Throttled(err) || Code(err) == "ResourceNotFoundException" {
		return nil
	}
	return err
}
