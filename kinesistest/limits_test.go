package kinesistest_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

// limited runs f in a bubble, with a server that applies its limits.
func limited(t *testing.T, f func(t *testing.T, s *kinesistest.Server, c *kinesis.Client, r reader)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true})
		s.CreateStream("s", 1)
		f(t, s, c, reader{t, t.Context(), c, "s"})
	})
}

func throughput(t *testing.T, err error) {
	t.Helper()
	wantCode(t, err, "ProvisionedThroughputExceededException")
	var typed *types.ProvisionedThroughputExceededException
	if !errors.As(err, &typed) {
		t.Errorf("the SDK does not know %v", err)
	}
}

func TestFiveReadsASecond(t *testing.T) {
	limited(t, func(t *testing.T, s *kinesistest.Server, c *kinesis.Client, r reader) {
		it := r.iterator(shardID(0), types.ShardIteratorTypeLatest)
		read := func() error {
			_, err := c.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: it})
			return err
		}
		for range 5 {
			if err := read(); err != nil {
				t.Fatal(err)
			}
		}
		throughput(t, read())
		time.Sleep(time.Second)
		// At a steady rate of five reads per second, no read is refused.
		for range 50 {
			if err := read(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
}

func TestTwoMebibytesReadASecond(t *testing.T) {
	limited(t, func(t *testing.T, s *kinesistest.Server, c *kinesis.Client, r reader) {
		for range 12 {
			s.Put("s", "k", make([]byte, 1<<20-1))
		}
		it := r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon)
		page := r.page(it) // 10 MiB
		began := time.Now()
		for {
			_, err := c.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: page.NextShardIterator})
			if err == nil {
				break
			}
			throughput(t, err)
			time.Sleep(500 * time.Millisecond)
		}
		if blocked := time.Since(began); blocked != 5*time.Second {
			t.Errorf("after 10 MiB the shard was blocked for %v", blocked)
		}
	})
}

func TestWritesOfAShardAreLimited(t *testing.T) {
	limited(t, func(t *testing.T, s *kinesistest.Server, c *kinesis.Client, r reader) {
		put := func(n, size int) (failed int) {
			t.Helper()
			in := &kinesis.PutRecordsInput{StreamName: aws.String("s")}
			for i := range n {
				in.Records = append(in.Records, types.PutRecordsRequestEntry{PartitionKey: aws.String(fmt.Sprint(i)), Data: make([]byte, size)})
			}
			out := ok[*kinesis.PutRecordsOutput](t)(c.PutRecords(t.Context(), in))
			for _, r := range out.Records {
				switch {
				case r.ErrorCode == nil && r.SequenceNumber != nil && r.ShardId != nil:
				case aws.ToString(r.ErrorCode) == "ProvisionedThroughputExceededException" && r.SequenceNumber == nil && *r.ErrorMessage != "":
					failed++
				default:
					t.Fatalf("got %+v", r)
				}
			}
			if int(*out.FailedRecordCount) != failed {
				t.Fatalf("FailedRecordCount %d, but %d failed", *out.FailedRecordCount, failed)
			}
			return failed
		}
		for i, tc := range []struct {
			after           time.Duration
			n, size, failed int
		}{
			{0, 500, 10, 0},
			{0, 500, 10, 0},
			{0, 500, 10, 500}, // more than 1000 records
			{500 * time.Millisecond, 500, 10, 0},
			{time.Second, 10, 100 << 10, 0},
			{0, 10, 100 << 10, 10}, // more than 1 MiB
			{time.Second, 20, 100 << 10, 10},
		} {
			time.Sleep(tc.after)
			if got := put(tc.n, tc.size); got != tc.failed {
				t.Errorf("step %d: %d failed, want %d", i, got, tc.failed)
			}
		}
		_, err := c.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: make([]byte, 500<<10)})
		throughput(t, err)
		// The limit is per shard: two shards have twice the limit.
		s.Split("s", shardID(0))
		if got := put(500, 10); got != 0 {
			t.Errorf("after the split %d failed", got)
		}
	})
}

func TestLargeRecordsBorrowFromTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true})
		s.CreateStream("s", 1)
		put := func(size int) error {
			_, err := c.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: make([]byte, size)})
			return err
		}
		wantCode(t, put(5<<20), "ValidationException")
		ok[*kinesis.UpdateMaxRecordSizeOutput](t)(c.UpdateMaxRecordSize(t.Context(), &kinesis.UpdateMaxRecordSizeInput{StreamARN: aws.String(s.StreamARN("s")), MaxRecordSizeInKiB: aws.Int32(10240)}))
		if err := put(5 << 20); err != nil {
			t.Fatal(err)
		}
		throughput(t, put(10))
		time.Sleep(5 * time.Second)
		if err := put(10); err != nil {
			t.Error(err)
		}
	})
}

func TestCallsAreLimited(t *testing.T) {
	limited(t, func(t *testing.T, s *kinesistest.Server, c *kinesis.Client, r reader) {
		name := aws.String("s")
		ctx := t.Context()
		for what, tc := range map[string]struct {
			rate int
			call func() error
		}{
			"DescribeStreamSummary": {20, func() error {
				_, err := c.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: name})
				return err
			}},
			"DescribeStream": {10, func() error {
				_, err := c.DescribeStream(ctx, &kinesis.DescribeStreamInput{StreamName: name})
				return err
			}},
			"DescribeLimits": {1, func() error { _, err := c.DescribeLimits(ctx, &kinesis.DescribeLimitsInput{}); return err }},
			"ListStreams":    {5, func() error { _, err := c.ListStreams(ctx, &kinesis.ListStreamsInput{}); return err }},
			"ListShards": {1000, func() error {
				_, err := c.ListShards(ctx, &kinesis.ListShardsInput{StreamName: name})
				return err
			}},
			"ListTagsForStream": {5, func() error {
				_, err := c.ListTagsForStream(ctx, &kinesis.ListTagsForStreamInput{StreamName: name})
				return err
			}},
		} {
			for range tc.rate {
				if err := tc.call(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			wantCode(t, tc.call(), "LimitExceededException")
			time.Sleep(time.Second)
			if err := tc.call(); err != nil {
				t.Errorf("%s a second later: %v", what, err)
			}
		}
		iterator := func() error {
			_, err := c.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{StreamName: name, ShardId: aws.String(shardID(0)), ShardIteratorType: "LATEST"})
			return err
		}
		for range 5 {
			if err := iterator(); err != nil {
				t.Fatal(err)
			}
		}
		throughput(t, iterator())
		if got := s.Requests("ListShards"); got != 1002 {
			t.Errorf("%d calls of ListShards were counted", got)
		}
	})
}

func TestChangesADayAreLimited(t *testing.T) {
	limited(t, func(t *testing.T, s *kinesistest.Server, c *kinesis.Client, r reader) {
		scale := func(n int32) error {
			_, err := c.UpdateShardCount(t.Context(), &kinesis.UpdateShardCountInput{StreamName: aws.String("s"), TargetShardCount: &n, ScalingType: types.ScalingTypeUniformScaling})
			return err
		}
		mode := func(m types.StreamMode) error {
			_, err := c.UpdateStreamMode(t.Context(), &kinesis.UpdateStreamModeInput{StreamARN: aws.String(s.StreamARN("s")), StreamModeDetails: &types.StreamModeDetails{StreamMode: m}})
			return err
		}
		for i := range 10 {
			if err := scale(int32(1 + i%2)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		wantCode(t, scale(2), "LimitExceededException")
		for _, m := range []types.StreamMode{types.StreamModeOnDemand, types.StreamModeProvisioned} {
			if err := mode(m); err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, mode(types.StreamModeOnDemand), "LimitExceededException")
		time.Sleep(24 * time.Hour)
		if err := scale(2); err != nil {
			t.Error(err)
		}
		if err := mode(types.StreamModeOnDemand); err != nil {
			t.Error(err)
		}
	})
}

func TestTheSDKRetriesThrottledCalls(t *testing.T) {
	limited(t, func(t *testing.T, s *kinesistest.Server, _ *kinesis.Client, r reader) {
		c := s.Client() // uses the SDK's own retries; the waits take virtual time
		for range 20 {
			it := reader{t, t.Context(), c, "s"}.iterator(shardID(0), types.ShardIteratorTypeLatest)
			if _, err := c.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: it}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(150 * time.Millisecond)
		}
	})
}
