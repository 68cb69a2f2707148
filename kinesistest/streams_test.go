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

func TestCreateStream(t *testing.T) {
	onDemand := &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand}
	cases := []struct {
		name string
		in   kinesis.CreateStreamInput
		code string // code of the expected error, if any
		open int32
	}{
		{name: "with one shard", in: kinesis.CreateStreamInput{StreamName: aws.String("a"), ShardCount: aws.Int32(1)}, open: 1},
		{name: "with a name of all allowed characters", in: kinesis.CreateStreamInput{StreamName: aws.String("aZ_.-9"), ShardCount: aws.Int32(3)}, open: 3},
		{name: "on demand it has four shards", in: kinesis.CreateStreamInput{StreamName: aws.String("od"), StreamModeDetails: onDemand}, open: 4},
		{name: "on demand and spread", in: kinesis.CreateStreamInput{StreamName: aws.String("auto"), StreamModeDetails: onDemand, RecordDistributionStrategy: types.RecordDistributionStrategyAuto}, open: 4},
		{name: "with large records", in: kinesis.CreateStreamInput{StreamName: aws.String("big"), ShardCount: aws.Int32(1), MaxRecordSizeInKiB: aws.Int32(10240)}, open: 1},
		{name: "a name that is taken", in: kinesis.CreateStreamInput{StreamName: aws.String("a"), ShardCount: aws.Int32(1)}, code: "ResourceInUseException"},
		{name: "a bad name", in: kinesis.CreateStreamInput{StreamName: aws.String("a/b"), ShardCount: aws.Int32(1)}, code: "ValidationException"},
		{name: "an empty name", in: kinesis.CreateStreamInput{StreamName: aws.String(""), ShardCount: aws.Int32(1)}, code: "ValidationException"},
		{name: "no shards", in: kinesis.CreateStreamInput{StreamName: aws.String("n"), ShardCount: aws.Int32(0)}, code: "ValidationException"},
		{name: "no shard count", in: kinesis.CreateStreamInput{StreamName: aws.String("n")}, code: "ValidationException"},
		{name: "on demand with a shard count", in: kinesis.CreateStreamInput{StreamName: aws.String("n"), ShardCount: aws.Int32(1), StreamModeDetails: onDemand}, code: "ValidationException"},
		{name: "spread but not on demand", in: kinesis.CreateStreamInput{StreamName: aws.String("n"), ShardCount: aws.Int32(1), RecordDistributionStrategy: types.RecordDistributionStrategyAuto}, code: "InvalidArgumentException"},
		{name: "records that are too large", in: kinesis.CreateStreamInput{StreamName: aws.String("n"), ShardCount: aws.Int32(1), MaxRecordSizeInKiB: aws.Int32(10241)}, code: "ValidationException"},
		{name: "more shards than the account may have", in: kinesis.CreateStreamInput{StreamName: aws.String("n"), ShardCount: aws.Int32(20_001)}, code: "LimitExceededException"},
		{name: "warm without the commitment", in: kinesis.CreateStreamInput{StreamName: aws.String("n"), StreamModeDetails: onDemand, WarmThroughputMiBps: aws.Int32(5)}, code: "ValidationException"},
	}
	_, c := start(t)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := c.CreateStream(t.Context(), &tc.in)
			if tc.code != "" {
				wantCode(t, err, tc.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := ok[*kinesis.DescribeStreamSummaryOutput](t)(c.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: tc.in.StreamName})).StreamDescriptionSummary
			if *got.OpenShardCount != tc.open || got.StreamStatus != types.StreamStatusActive || *got.RetentionPeriodHours != 24 {
				t.Errorf("got %d open shards, %s, %d h", *got.OpenShardCount, got.StreamStatus, *got.RetentionPeriodHours)
			}
			if want := aws.ToInt32(tc.in.MaxRecordSizeInKiB); *got.MaxRecordSizeInKiB != max(want, 1024) {
				t.Errorf("got records of %d KiB", *got.MaxRecordSizeInKiB)
			}
			if want := tc.in.RecordDistributionStrategy; want != "" && got.RecordDistributionStrategy != want {
				t.Errorf("got the strategy %q", got.RecordDistributionStrategy)
			}
			if want := "arn:aws:kinesis:us-east-1:000000000000:stream/" + *tc.in.StreamName; *got.StreamARN != want {
				t.Errorf("got %s", *got.StreamARN)
			}
		})
	}
}

func TestAStreamIsNamedByNameOrARNOrBoth(t *testing.T) {
	s, c := start(t)
	s.CreateStream("a", 1)
	s.CreateStream("b", 1)
	cases := []struct {
		name, stream, arn, code string
	}{
		{"by name", "a", "", ""},
		{"by ARN", "", s.StreamARN("a"), ""},
		{"by both", "a", s.StreamARN("a"), ""},
		{"by neither", "", "", "ValidationException"},
		{"by two that differ", "a", s.StreamARN("b"), "InvalidArgumentException"},
		{"by what is no ARN", "", "stream/a", "ValidationException"},
		{"in another region", "", "arn:aws:kinesis:eu-west-1:000000000000:stream/a", "ResourceNotFoundException"},
		{"in another account", "", "arn:aws:kinesis:us-east-1:111111111111:stream/a", "ResourceNotFoundException"},
		{"that does not exist", "c", "", "ResourceNotFoundException"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			in := &kinesis.DescribeStreamSummaryInput{}
			if tc.stream != "" {
				in.StreamName = &tc.stream
			}
			if tc.arn != "" {
				in.StreamARN = &tc.arn
			}
			got, err := c.DescribeStreamSummary(t.Context(), in)
			if tc.code != "" {
				wantCode(t, err, tc.code)
			} else if err != nil || *got.StreamDescriptionSummary.StreamName != "a" {
				t.Fatalf("got %+v, %v", got, err)
			}
		})
	}
}

func TestListStreamsPages(t *testing.T) {
	s, c := start(t)
	for i := range 7 {
		s.CreateStream(fmt.Sprintf("s%d", i), 1)
	}
	var names []string
	pages := kinesis.NewListStreamsPaginator(c, &kinesis.ListStreamsInput{Limit: aws.Int32(3)})
	for pages.HasMorePages() {
		page := ok[*kinesis.ListStreamsOutput](t)(pages.NextPage(t.Context()))
		names = append(names, page.StreamNames...)
		if len(page.StreamSummaries) != len(page.StreamNames) || *page.StreamSummaries[0].StreamName != page.StreamNames[0] {
			t.Errorf("summaries %+v do not match %v", page.StreamSummaries, page.StreamNames)
		}
	}
	if got := fmt.Sprint(names); got != "[s0 s1 s2 s3 s4 s5 s6]" {
		t.Errorf("got %s", got)
	}
	rest := ok[*kinesis.ListStreamsOutput](t)(c.ListStreams(t.Context(), &kinesis.ListStreamsInput{ExclusiveStartStreamName: aws.String("s4")}))
	if fmt.Sprint(rest.StreamNames) != "[s5 s6]" || *rest.HasMoreStreams {
		t.Errorf("got %v, more %v", rest.StreamNames, *rest.HasMoreStreams)
	}
	_, err := c.ListStreams(t.Context(), &kinesis.ListStreamsInput{NextToken: aws.String("what?")})
	wantCode(t, err, "InvalidArgumentException")
}

func TestDescribeStreamPages(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 5)
	in := &kinesis.DescribeStreamInput{StreamName: aws.String("s"), Limit: aws.Int32(2)}
	var seen []types.Shard
	for {
		d := ok[*kinesis.DescribeStreamOutput](t)(c.DescribeStream(t.Context(), in)).StreamDescription
		seen = append(seen, d.Shards...)
		if !*d.HasMoreShards {
			break
		}
		in.ExclusiveStartShardId = d.Shards[len(d.Shards)-1].ShardId
	}
	if got := ids(seen); got != "[0 1 2 3 4]" {
		t.Errorf("got %s", got)
	}
}

func TestDeleteStream(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 1)
	s.Put("s", "k", []byte("v"))
	r := reader{t, t.Context(), c, "s"}
	iterator := r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon)
	ok[*kinesis.RegisterStreamConsumerOutput](t)(c.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{StreamARN: aws.String(s.StreamARN("s")), ConsumerName: aws.String("c")}))
	_, err := c.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: aws.String("s")})
	wantCode(t, err, "ResourceInUseException")
	ok[*kinesis.DeleteStreamOutput](t)(c.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: aws.String("s"), EnforceConsumerDeletion: aws.Bool(true)}))
	_, err = c.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: aws.String("s")})
	wantCode(t, err, "ResourceNotFoundException")

	// A new stream with the same name is a different stream.
	s.CreateStream("s", 1)
	s.Put("s", "k", []byte("new"))
	_, err = c.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: iterator})
	wantCode(t, err, "ResourceNotFoundException")
}

func TestAStreamThatIsBeingCreatedCanBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, kinesistest.Config{InMemory: true, StateDelay: 10 * time.Second})
		name := aws.String("s")
		ok[*kinesis.CreateStreamOutput](t)(c.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: name, ShardCount: aws.Int32(1)}))
		time.Sleep(5 * time.Second)
		ok[*kinesis.DeleteStreamOutput](t)(c.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: name}))
		time.Sleep(9 * time.Second) // longer than the stream would have been CREATING
		d := ok[*kinesis.DescribeStreamOutput](t)(c.DescribeStream(t.Context(), &kinesis.DescribeStreamInput{StreamName: name})).StreamDescription
		if d.StreamStatus != types.StreamStatusDeleting || len(d.Shards) > 0 {
			t.Errorf("it is %s with %d shards", d.StreamStatus, len(d.Shards))
		}
		_, err := c.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: name, PartitionKey: aws.String("k"), Data: []byte("v")})
		wantCode(t, err, "ResourceNotFoundException")
		time.Sleep(time.Second)
		_, err = c.DescribeStream(t.Context(), &kinesis.DescribeStreamInput{StreamName: name})
		wantCode(t, err, "ResourceNotFoundException")
	})
}

func TestStatesLastAsLongAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true, StateDelay: 10 * time.Second})
		state := func() types.StreamStatus {
			t.Helper()
			out, err := c.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: aws.String("s")})
			if err != nil {
				wantCode(t, err, "ResourceNotFoundException")
				return "gone"
			}
			return out.StreamDescriptionSummary.StreamStatus
		}
		want := func(want types.StreamStatus) {
			t.Helper()
			if got := state(); got != want {
				t.Fatalf("the stream is %s, want %s", got, want)
			}
		}
		put := func() error {
			_, err := c.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: []byte("v")})
			return err
		}
		ok[*kinesis.CreateStreamOutput](t)(c.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: aws.String("s"), ShardCount: aws.Int32(1)}))
		want(types.StreamStatusCreating)
		wantCode(t, put(), "ResourceNotFoundException")
		time.Sleep(10 * time.Second)
		want(types.StreamStatusActive)

		split := &kinesis.SplitShardInput{StreamName: aws.String("s"), ShardToSplit: aws.String(shardID(0)), NewStartingHashKey: aws.String("1000")}
		ok[*kinesis.SplitShardOutput](t)(c.SplitShard(t.Context(), split))
		want(types.StreamStatusUpdating)
		if err := put(); err != nil {
			t.Fatalf("put while UPDATING: %v", err)
		}
		if got := s.OpenShards("s"); len(got) != 1 {
			t.Errorf("open while UPDATING: %v", got)
		}
		_, err := c.SplitShard(t.Context(), split)
		wantCode(t, err, "ResourceInUseException")
		time.Sleep(10 * time.Second)
		want(types.StreamStatusActive)
		if got := s.OpenShards("s"); len(got) != 2 {
			t.Errorf("open after UPDATING: %v", got)
		}

		s.SetStateDelay(time.Minute)
		ok[*kinesis.DeleteStreamOutput](t)(c.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: aws.String("s")}))
		time.Sleep(59 * time.Second)
		want(types.StreamStatusDeleting)
		wantCode(t, put(), "ResourceNotFoundException")
		time.Sleep(time.Second)
		want("gone")
	})
}

func TestAtMostFiveStreamsAreBeingCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true, StateDelay: time.Second})
		create := func(i int) error {
			_, err := c.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: aws.String(fmt.Sprint(i)), ShardCount: aws.Int32(1)})
			return err
		}
		for i := range 5 {
			if err := create(i); err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, create(5), "LimitExceededException")
		time.Sleep(time.Second)
		if err := create(5); err != nil {
			t.Fatal(err)
		}
	})
}

func TestDescribeLimits(t *testing.T) {
	s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true, ShardLimit: 10})
	s.CreateStream("a", 3)
	s.CreateStream("b", 2)
	s.Split("b", shardID(0))
	ok[*kinesis.CreateStreamOutput](t)(c.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: aws.String("od"), StreamModeDetails: &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand}}))
	got := ok[*kinesis.DescribeLimitsOutput](t)(c.DescribeLimits(t.Context(), &kinesis.DescribeLimitsInput{}))
	if *got.ShardLimit != 10 || *got.OpenShardCount != 6 || *got.OnDemandStreamCount != 1 || *got.OnDemandStreamCountLimit != 50 {
		t.Errorf("got limit %d, open %d, on demand %d of %d", *got.ShardLimit, *got.OpenShardCount, *got.OnDemandStreamCount, *got.OnDemandStreamCountLimit)
	}
	_, err := c.UpdateShardCount(t.Context(), &kinesis.UpdateShardCountInput{StreamName: aws.String("b"), TargetShardCount: aws.Int32(6), ScalingType: types.ScalingTypeUniformScaling})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.SplitShard(t.Context(), &kinesis.SplitShardInput{StreamName: aws.String("a"), ShardToSplit: aws.String(shardID(0)), NewStartingHashKey: aws.String("1000")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.SplitShard(t.Context(), &kinesis.SplitShardInput{StreamName: aws.String("a"), ShardToSplit: aws.String(shardID(1)), NewStartingHashKey: aws.String("200000000000000000000000000000000000000")})
	wantCode(t, err, "LimitExceededException")
}
