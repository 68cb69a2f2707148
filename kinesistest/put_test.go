package kinesistest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

func TestPutRecordRoutesByHash(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 4)
	put := func(key string, hash *string) string {
		t.Helper()
		out := ok[*kinesis.PutRecordOutput](t)(c.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("s"), PartitionKey: &key, ExplicitHashKey: hash, Data: []byte("x")}))
		return number(*out.ShardId)
	}
	const half = "170141183460469231731687303715884105728" // 2^127
	for _, tc := range []struct{ hash, want string }{
		{"0", "0"},
		{half, "2"},
		{"170141183460469231731687303715884105727", "1"},
		{"340282366920938463463374607431768211455", "3"},
	} {
		if got := put("k", &tc.hash); got != tc.want {
			t.Errorf("hash key %s went to shard %s, want %s", tc.hash, got, tc.want)
		}
	}
	// MD5("a") begins with 0c, MD5("b") with 92, MD5("é") in UTF-8 with 4f.
	for key, want := range map[string]string{"a": "0", "b": "2", "é": "1"} {
		if got := put(key, nil); got != want {
			t.Errorf("key %q went to shard %s, want %s", key, got, want)
		}
	}
}

func TestSequenceNumbersIncreaseAndAreOfTheirShard(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 3)
	shards := reader{t, t.Context(), c, "s"}.shards(nil)
	last := map[string]string{}
	for _, sh := range shards {
		last[*sh.ShardId] = *sh.SequenceNumberRange.StartingSequenceNumber
	}
	ordering := map[string]*string{} // by key, as a producer would keep it
	for i := range 300 {
		out := ok[*kinesis.PutRecordOutput](t)(c.PutRecord(t.Context(), &kinesis.PutRecordInput{
			StreamName: aws.String("s"), PartitionKey: aws.String(fmt.Sprint(i % 17)), Data: []byte("x"), SequenceNumberForOrdering: ordering[fmt.Sprint(i%17)],
		}))
		if len(*out.SequenceNumber) != 56 || bigOf(t, *out.SequenceNumber).Cmp(bigOf(t, last[*out.ShardId])) <= 0 {
			t.Fatalf("%s follows %s", *out.SequenceNumber, last[*out.ShardId])
		}
		last[*out.ShardId] = *out.SequenceNumber
		ordering[fmt.Sprint(i%17)] = out.SequenceNumber
	}
}

func TestPutErrors(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 1)
	key := aws.String("k")
	var entries []types.PutRecordsRequestEntry
	for range 501 {
		entries = append(entries, types.PutRecordsRequestEntry{PartitionKey: key, Data: []byte("x")})
	}
	huge := make([]types.PutRecordsRequestEntry, 11)
	for i := range huge {
		huge[i] = types.PutRecordsRequestEntry{PartitionKey: key, Data: make([]byte, 1<<20-1)}
	}
	one := func(in kinesis.PutRecordInput) func() error {
		return func() error {
			if in.StreamName == nil {
				in.StreamName = aws.String("s")
			}
			_, err := c.PutRecord(t.Context(), &in)
			return err
		}
	}
	many := func(in kinesis.PutRecordsInput) func() error {
		return func() error {
			in.StreamName = aws.String("s")
			_, err := c.PutRecords(t.Context(), &in)
			return err
		}
	}
	for _, tc := range []struct {
		name string
		do   func() error
		code string
	}{
		{"no key", one(kinesis.PutRecordInput{Data: []byte("x")}), "ValidationException"},
		{"an empty key", one(kinesis.PutRecordInput{PartitionKey: aws.String(""), Data: []byte("x")}), "ValidationException"},
		{"a key of 257 characters", one(kinesis.PutRecordInput{PartitionKey: aws.String(strings.Repeat("é", 257)), Data: []byte("x")}), "ValidationException"},
		{"a hash key that is no number", one(kinesis.PutRecordInput{PartitionKey: key, ExplicitHashKey: aws.String("-1"), Data: []byte("x")}), "ValidationException"},
		{"a hash key of 2^128", one(kinesis.PutRecordInput{PartitionKey: key, ExplicitHashKey: aws.String("340282366920938463463374607431768211456"), Data: []byte("x")}), "InvalidArgumentException"},
		{"too large a record", one(kinesis.PutRecordInput{PartitionKey: key, Data: make([]byte, 1<<20)}), "ValidationException"},
		{"a number for ordering that is none", one(kinesis.PutRecordInput{PartitionKey: key, Data: []byte("x"), SequenceNumberForOrdering: aws.String("x")}), "ValidationException"},
		{"an unknown stream", one(kinesis.PutRecordInput{StreamName: aws.String("none"), PartitionKey: key, Data: []byte("x")}), "ResourceNotFoundException"},
		{"dry run", one(kinesis.PutRecordInput{PartitionKey: key, Data: []byte("x"), DryRun: aws.Bool(true)}), "DryRunOperationException"},
		{"501 records", many(kinesis.PutRecordsInput{Records: entries}), "ValidationException"},
		{"no records", many(kinesis.PutRecordsInput{Records: entries[:0]}), "ValidationException"},
		{"more than 10 MiB", many(kinesis.PutRecordsInput{Records: huge}), "InvalidArgumentException"},
		{"one record without a key", many(kinesis.PutRecordsInput{Records: []types.PutRecordsRequestEntry{entries[0], {Data: []byte("x")}}}), "ValidationException"},
		{"dry run of many", many(kinesis.PutRecordsInput{Records: entries[:500], DryRun: aws.Bool(true)}), "DryRunOperationException"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantCode(t, tc.do(), tc.code) })
	}
	if got := s.Records("s"); len(got) != 0 {
		t.Errorf("%d records were stored all the same", len(got))
	}
	t.Run("exactly as large as allowed", func(t *testing.T) {
		if err := one(kinesis.PutRecordInput{PartitionKey: aws.String(strings.Repeat("é", 256)), Data: make([]byte, 1<<20-512)})(); err != nil {
			t.Error(err)
		}
		if err := many(kinesis.PutRecordsInput{Records: entries[:500]})(); err != nil {
			t.Error(err)
		}
		if err := many(kinesis.PutRecordsInput{Records: huge[:10]})(); err != nil {
			t.Error(err)
		}
	})
}

func TestRecordsComeBackAsTheyWerePut(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 1)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	entries := []types.PutRecordsRequestEntry{
		{PartitionKey: aws.String("plain"), Data: []byte("text")},
		{PartitionKey: aws.String("quotes \" and \\ and \n and \x01 and ü and 🛶"), Data: all},
		{PartitionKey: aws.String("empty"), Data: []byte{}},
		{PartitionKey: aws.String("</script>&\u2028"), Data: bytes.Repeat([]byte{0xff}, 1000)},
	}
	out := ok[*kinesis.PutRecordsOutput](t)(c.PutRecords(t.Context(), &kinesis.PutRecordsInput{StreamName: aws.String("s"), Records: entries}))
	if *out.FailedRecordCount != 0 || len(out.Records) != len(entries) || out.EncryptionType != "" {
		t.Fatalf("got %+v", out)
	}
	r := reader{t, t.Context(), c, "s"}
	page := r.page(r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon))
	for i, got := range page.Records {
		if *got.PartitionKey != *entries[i].PartitionKey || !bytes.Equal(got.Data, entries[i].Data) || *got.SequenceNumber != *out.Records[i].SequenceNumber {
			t.Errorf("record %d came back as %q %q", i, *got.PartitionKey, got.Data)
		}
		if got.EncryptionType != "" || got.ApproximateArrivalTimestamp.IsZero() {
			t.Errorf("record %d: %s, %v", i, got.EncryptionType, got.ApproximateArrivalTimestamp)
		}
	}
}

func TestMaxBytesBoundsTheMemory(t *testing.T) {
	s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true, MaxBytes: 1000})
	s.CreateStream("s", 1)
	put := func() error {
		_, err := c.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: make([]byte, 499)})
		return err
	}
	for range 2 {
		if err := put(); err != nil {
			t.Fatal(err)
		}
	}
	err := put()
	wantCode(t, err, "LimitExceededException")
	if !strings.Contains(err.Error(), "MaxBytes") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	s.DeleteStream("s")
	s.CreateStream("s", 1)
	if err := put(); err != nil {
		t.Errorf("after the stream was deleted: %v", err)
	}
}

// A put uses the current size limit of the stream, even if no call has read the stream since the
// limit changed.
func TestALargerRecordIsTakenOnceTheChangeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true})
		s.CreateStream("s", 1)
		s.SetStateDelay(time.Minute)
		ok[*kinesis.UpdateMaxRecordSizeOutput](t)(c.UpdateMaxRecordSize(t.Context(), &kinesis.UpdateMaxRecordSizeInput{
			StreamARN: aws.String(s.StreamARN("s")), MaxRecordSizeInKiB: aws.Int32(2048),
		}))
		put := func() error {
			_, err := c.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: make([]byte, 3<<19)})
			return err
		}
		wantCode(t, put(), "ValidationException")
		time.Sleep(time.Minute)
		if err := put(); err != nil {
			t.Error(err)
		}
	})
}
