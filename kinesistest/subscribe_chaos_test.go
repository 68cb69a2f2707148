package kinesistest_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/kinesistest"
)

// chaos starts and stops consumers while records are put and shards split and merge. The consumers
// take subscriptions over from each other, and are deregistered. Each reader must receive
// consecutive records of a shard, without gaps.
func chaos(t *testing.T, s *kinesistest.Server, opt func(*kinesis.Options)) {
	const consumers, readers = 3, 6
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s.CreateStream("s", 2)
	var arns [consumers]atomic.Pointer[string]
	for i := range consumers {
		arns[i].Store(aws.String(s.RegisterConsumer("s", fmt.Sprint("c", i))))
	}
	c := s.Client(noRetry)
	pause := func(n int64) bool {
		select {
		case <-time.After(time.Duration(rand.Int64N(n)) * time.Millisecond):
			return true
		case <-ctx.Done():
			return false
		}
	}
	// failed reports errors that are not among the expected ones.
	failed := func(what string, err error, may ...string) {
		var api smithy.APIError
		if err == nil || ctx.Err() != nil || errors.As(err, &api) && slices.Contains(may, api.ErrorCode()) {
			return
		}
		t.Errorf("%s: %v", what, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; pause(200); i++ {
			_, err := c.PutRecord(ctx, &kinesis.PutRecordInput{StreamName: aws.String("s"), PartitionKey: aws.String(fmt.Sprint(i)), Data: strconv.AppendInt(nil, int64(i), 10)})
			failed("put", err)
		}
	})
	wg.Go(func() {
		for i := 0; pause(3000); i++ {
			open := ok[*kinesis.ListShardsOutput](t)(c.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("s"), ShardFilter: &types.ShardFilter{Type: types.ShardFilterTypeAtLatest}})).Shards
			at := rand.IntN(len(open))
			if at+1 < len(open) && len(open) > 3 {
				_, err := c.MergeShards(ctx, &kinesis.MergeShardsInput{StreamName: aws.String("s"), ShardToMerge: open[at].ShardId, AdjacentShardToMerge: open[at+1].ShardId})
				// The listing is not sorted by hash range, so these errors are expected.
				failed("merge", err, "InvalidArgumentException", "ResourceInUseException")
			} else {
				_, err := c.SplitShard(ctx, &kinesis.SplitShardInput{StreamName: aws.String("s"), ShardToSplit: open[at].ShardId, NewStartingHashKey: halfway(open[at])})
				failed("split", err, "ResourceInUseException")
			}
		}
	})
	wg.Go(func() {
		for pause(10_000) {
			i := rand.IntN(consumers)
			_, err := c.DeregisterStreamConsumer(ctx, &kinesis.DeregisterStreamConsumerInput{ConsumerARN: arns[i].Load()})
			if failed("deregister", err, "ResourceInUseException"); err != nil {
				continue // the consumer is still CREATING
			}
			// Repeat until the old consumer is gone and the stream is ACTIVE.
			for again := true; again && pause(500); {
				out, err := c.RegisterStreamConsumer(ctx, &kinesis.RegisterStreamConsumerInput{StreamARN: aws.String(s.StreamARN("s")), ConsumerName: aws.String(fmt.Sprint("c", i))})
				failed("register", err, "ResourceInUseException")
				if again = err != nil; !again {
					arns[i].Store(out.Consumer.ConsumerARN)
				}
			}
		}
	})
	var streams, records atomic.Int64
	for range readers {
		wg.Go(func() {
			for pause(1500) {
				shard := shardID(rand.IntN(6))
				ctx, cancel := context.WithCancel(ctx)
				out, err := s.Client(opt, noRetry).SubscribeToShard(ctx, &kinesis.SubscribeToShardInput{
					ConsumerARN: arns[rand.IntN(consumers)].Load(), ShardId: &shard, StartingPosition: position(oldest),
				})
				failed("subscribe", err, "ResourceInUseException", "ResourceNotFoundException")
				if err == nil {
					streams.Add(1)
					stop := time.AfterFunc(time.Duration(rand.IntN(9000))*time.Millisecond, cancel)
					var read []string
					for got := range out.GetStream().Events() {
						for _, r := range got.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent).Value.Records {
							read = append(read, *r.SequenceNumber)
						}
					}
					stop.Stop()
					if err := out.GetStream().Err(); ctx.Err() == nil {
						failed("read", err, "ResourceInUseException", "ResourceNotFoundException")
					}
					_ = out.GetStream().Close()
					records.Add(int64(len(read)))
					var kept []string
					for _, r := range s.Records("s") {
						if r.Shard == shard {
							kept = append(kept, r.SequenceNumber)
						}
					}
					if len(read) > len(kept) || !slices.Equal(read, kept[:len(read)]) {
						t.Errorf("%s: read %v of %v", shard, read, kept)
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
	synctest.Wait()
	if live := s.Subscriptions("s"); len(live) != 0 {
		t.Errorf("live are %v", live)
	}
	if streams.Load() < 10 || records.Load() < 100 {
		t.Errorf("%d streams, %d records", streams.Load(), records.Load())
	}
}

func halfway(sh types.Shard) *string {
	start, _ := new(big.Int).SetString(*sh.HashKeyRange.StartingHashKey, 10)
	end, _ := new(big.Int).SetString(*sh.HashKeyRange.EndingHashKey, 10)
	return aws.String(start.Add(start, end).Rsh(start, 1).String())
}

func TestChaosOfSubscriptions(t *testing.T) {
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p.cfg.NoLimits, p.cfg.InMemory, p.cfg.StateDelay = true, true, 300*time.Millisecond
				s := kinesistest.NewServer(t, p.cfg)
				chaos(t, s, p.opt(s))
			})
		})
	}
}
