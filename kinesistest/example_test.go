package kinesistest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

// A program starts a server with Start and closes it. A test calls NewServer instead, which closes
// the server when the test ends.
func Example() {
	s, err := kinesistest.Start(kinesistest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	s.CreateStream("orders", 1)
	s.Put("orders", "customer-7", []byte("two tins of paint"))
	s.Split("orders", "shardId-000000000000")

	ctx, client := context.Background(), s.Client()
	it, err := client.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{
		StreamName:        aws.String("orders"),
		ShardId:           aws.String("shardId-000000000000"),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		log.Print(err)
		return
	}
	page, err := client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: it.ShardIterator})
	if err != nil {
		log.Print(err)
		return
	}
	for _, r := range page.Records {
		fmt.Printf("%s: %s\n", *r.PartitionKey, r.Data)
	}
	for _, child := range page.ChildShards {
		fmt.Println("goes on in", *child.ShardId)
	}
	// Output:
	// customer-7: two tins of paint
	// goes on in shardId-000000000001
	// goes on in shardId-000000000002
}

// Every second call of ListStreams is throttled.
func ExampleServer_Control() {
	s, err := kinesistest.Start(kinesistest.Config{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	s.Control("ListStreams", func(call *kinesistest.Call) kinesistest.Fault {
		if call.N%2 == 0 {
			return kinesistest.Fault{Err: &kinesistest.Error{Code: "LimitExceededException", Message: "slow down"}}
		}
		return kinesistest.Fault{}
	})
	client := s.Client(func(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} })
	for range 3 {
		_, err := client.ListStreams(context.Background(), &kinesis.ListStreamsInput{})
		var limit *types.LimitExceededException
		fmt.Println("throttled:", errors.As(err, &limit))
	}
	// Output:
	// throttled: false
	// throttled: true
	// throttled: false
}

// The stream of a fan-out consumer fails after the first event.
func ExampleSubscriptionFault() {
	s, err := kinesistest.Start(kinesistest.Config{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	s.Control("SubscribeToShard", func(*kinesistest.Call) kinesistest.Fault {
		return kinesistest.Fault{Subscription: kinesistest.SubscriptionFault{
			Events:    1,
			Exception: &kinesistest.Error{Code: "KMSDisabledException", Message: "the key was switched off"},
		}}
	})

	s.CreateStream("orders", 1)
	s.Put("orders", "customer-7", []byte("two tins of paint"))
	out, err := s.Client().SubscribeToShard(context.Background(), &kinesis.SubscribeToShardInput{
		ConsumerARN:      aws.String(s.RegisterConsumer("orders", "billing")),
		ShardId:          aws.String("shardId-000000000000"),
		StartingPosition: &types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon},
	})
	if err != nil {
		log.Print(err)
		return
	}
	stream := out.GetStream()
	for ev := range stream.Events() {
		for _, r := range ev.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent).Value.Records {
			fmt.Printf("%s: %s\n", *r.PartitionKey, r.Data)
		}
	}
	fmt.Println(stream.Close())
	// Output:
	// customer-7: two tins of paint
	// KMSDisabledException: the key was switched off
}

// In a bubble, a day of virtual time takes no real time. After that day the record has expired.
func TestExampleOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		s.CreateStream("orders", 1)
		s.Put("orders", "customer-7", []byte("two tins of paint"))
		time.Sleep(24 * time.Hour)
		if got := len(s.Records("orders")); got != 0 {
			t.Errorf("%d records are left", got)
		}
	})
}
