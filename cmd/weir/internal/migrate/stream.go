package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// atOnce is the number of shards that are read at the same time. readBound is the timeout for the
// reads of one shard.
const (
	atOnce    = 16
	readBound = 20 * time.Second
)

// readCheckpoints reads the record at the checkpoint of each shard. If it is gone, it reads the
// oldest record.
func readCheckpoints(
	ctx context.Context,
	t cli.Terminal,
	client *kinesis.Client,
	name string,
	want []change.Wanted,
) map[lease.Key]change.Seen {
	var (
		mu    sync.Mutex
		asked sync.WaitGroup
		seen  = map[lease.Key]change.Seen{}
		turns = make(chan struct{}, atOnce)
		shown = cli.NewBar(t, "reading checkpoints", len(want))
	)
	for _, w := range want {
		if w.Lease.Position.Kind() != shard.Sequence {
			shown.Advance(1)
			continue
		}
		turns <- struct{}{}
		asked.Go(func() {
			defer func() { <-turns }()
			s := readCheckpoint(ctx, client, name, w.Lease)
			shown.Advance(1)
			mu.Lock()
			defer mu.Unlock()
			seen[w.Lease.Key] = s
		})
	}
	asked.Wait()
	shown.Done()
	return seen
}

func readCheckpoint(
	ctx context.Context,
	client *kinesis.Client,
	name string,
	l lease.Lease,
) change.Seen {
	ctx, cancel := context.WithTimeout(ctx, readBound)
	defer cancel()
	at, err := shard.Before(l.Position.SequenceNumber())
	if err != nil {
		return change.Seen{Refused: err.Error()}
	}
	first, err := firstRecord(ctx, client, name, l.Shard, at)
	var invalid *types.InvalidArgumentException
	switch {
	case errors.As(err, &invalid):
		return change.Seen{Refused: explain.Error(err)}
	case err != nil:
		return change.Seen{Failed: explain.Error(err)}
	case first != nil && aws.ToString(first.SequenceNumber) == l.Position.SequenceNumber():
		return change.Seen{
			Records: userRecords(first.Data),
			Arrived: aws.ToTime(first.ApproximateArrivalTimestamp),
		}
	}
	oldest, err := firstRecord(ctx, client, name, l.Shard, shard.Oldest)
	if err != nil {
		return change.Seen{Failed: explain.Error(err)}
	}
	return change.Seen{
		Expired: oldest != nil &&
			shard.CompareSequence(
				aws.ToString(oldest.SequenceNumber),
				l.Position.SequenceNumber(),
			) > 0,
	}
}

// firstRecord reads the first record at a position. It returns nil if the read returns no record.
func firstRecord(
	ctx context.Context,
	client *kinesis.Client,
	name, id string,
	at shard.Position,
) (*types.Record, error) {
	in := shardlag.IteratorAt(at)
	in.StreamName, in.StreamARN = awsconf.NameOrARN(name)
	in.ShardId = aws.String(id)
	it, err := client.GetShardIterator(ctx, in)
	if err != nil {
		return nil, err
	}
	page, err := client.GetRecords(
		ctx,
		&kinesis.GetRecordsInput{
			ShardIterator: it.ShardIterator,
			StreamARN:     in.StreamARN,
			Limit:         aws.Int32(1),
		},
	)
	if err != nil || len(page.Records) == 0 {
		return nil, err
	}
	return &page.Records[0], nil
}

// userRecords returns the number of user records in a record: the records of an aggregate, or 1.
func userRecords(data []byte) int {
	if !aggregate.Marked(data) {
		return 1
	}
	var a aggregate.Aggregate
	// Both the KCL and weir treat a damaged aggregate as one record.
	if ok, err := a.Parse(data); !ok || err != nil {
		return 1
	}
	return max(a.Len(), 1)
}

// explainStream names the stream in an error about it.
func explainStream(name string, err error) error { return fmt.Errorf("stream %s: %w", name, err) }
