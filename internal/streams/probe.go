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
	// probed is among how many shards of a stream a probe chooses.
	probed = 100
	// probeReads is of how many of them one has to be readable.
	probeReads = 2
)

// Probe tries whether this process can read at all: it lists a page of a stream's shards and reads
// the nth of them, counted around, at its tip, and then the next if that fails. What the service
// would answer to everybody, such as that calls come too fast, shows that it can. It is for the one
// who cannot tell whether its shards are at fault or itself.
func Probe(ctx context.Context, client *kinesis.Client, caller *wire.Caller, s Stream, n int) error {
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

func probe(ctx context.Context, client *kinesis.Client, caller *wire.Caller, s Stream, id *string) error {
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

// unlessForAll is err, or nil when every worker would be told the same.
func unlessForAll(err error) error {
	if Throttled(err) || Code(err) == "ResourceNotFoundException" {
		return nil
	}
	return err
}
