package kinesistest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

func TestQuick(t *testing.T) {
	for _, mem := range []bool{false, true} {
		s := kinesistest.NewServer(t, kinesistest.Config{InMemory: mem})
		quick(t, s)
	}
}

func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		time.Sleep(time.Hour)
		quick(t, s)
	})
}

func quick(t *testing.T, s *kinesistest.Server) {
	c := s.Client()
	ctx := t.Context()
	if _, err := c.CreateStream(ctx, &kinesis.CreateStreamInput{StreamName: aws.String("s"), ShardCount: aws.Int32(2)}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		out, err := c.PutRecord(ctx, &kinesis.PutRecordInput{StreamName: aws.String("s"), PartitionKey: aws.String(fmt.Sprint(i)), Data: []byte(fmt.Sprint("data", i))})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(*out.ShardId, *out.SequenceNumber)
	}
	s.Split("s", "shardId-000000000000")
	ls, err := c.ListShards(ctx, &kinesis.ListShardsInput{StreamName: aws.String("s")})
	if err != nil {
		t.Fatal(err)
	}
	for _, sh := range ls.Shards {
		t.Log(*sh.ShardId, aws.ToString(sh.ParentShardId), *sh.HashKeyRange.StartingHashKey, *sh.HashKeyRange.EndingHashKey, *sh.SequenceNumberRange.StartingSequenceNumber, aws.ToString(sh.SequenceNumberRange.EndingSequenceNumber))
		it, err := c.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{StreamName: aws.String("s"), ShardId: sh.ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon})
		if err != nil {
			t.Fatal(err)
		}
		rs, err := c.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: it.ShardIterator})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(len(rs.Records), rs.NextShardIterator != nil, len(rs.ChildShards), *rs.MillisBehindLatest)
	}
}
