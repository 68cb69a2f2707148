package benchserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/kinesistest"
)

var formats = []format{jsonFormat, cborFormat}

func call(t *testing.T, url, action string, f format, body []byte) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", f.contentType())
	r.Header.Set("X-Amz-Target", "Kinesis_20131202."+action)
	r.Header.Set("X-Amz-Date", "20260101T000000Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=k, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", action, resp.Status)
	}
	return resp
}

func getRecords(t *testing.T, url string, f format, iterator string) []byte {
	t.Helper()
	body := []byte(`{"ShardIterator":"` + iterator + `"}`)
	if f == cborFormat {
		body = appendText(appendText([]byte{cborMap | 1}, "ShardIterator"), iterator)
	}
	answer, err := io.ReadAll(call(t, url, "GetRecords", f, body).Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// For the same records, the answers must equal those of kinesistest byte by byte.
func TestAnswersAreThoseOfKinesistest(t *testing.T) {
	real := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	real.CreateStream("s", 1)
	var want []record
	for i := range 3 {
		want = append(want, record{key: strings.Repeat("k", 10+i), data: bytes.Repeat([]byte{byte(i), 0xfe}, 15*i+1)})
		real.Put("s", want[i].key, want[i].data)
	}
	client := real.Client()
	it, err := client.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
		StreamName: aws.String("s"), ShardId: aws.String("shardId-000000000000"), ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: it.ShardIterator})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range out.Records {
		want[i].sequence, want[i].arrival = *r.SequenceNumber, r.ApproximateArrivalTimestamp.UnixMilli()
	}
	list := func(f format) (b []byte) {
		for i := range want {
			if b = appendRecord(b, f, &want[i]); f == jsonFormat && i < len(want)-1 {
				b = append(b, ',')
			}
		}
		return b
	}
	for _, f := range formats {
		got := getRecords(t, real.URL(), f, *it.ShardIterator)
		_, after, _ := bytes.Cut(got, []byte("NextShardIterator"))
		next := after[3:][:len(*it.ShardIterator)] // after the quotation marks and the colon
		if f == cborFormat {
			next = after[len(appendHead(nil, cborText, uint64(len(next)))):][:len(next)]
		}
		page := appendPageTail(append(appendPageHead(nil, f, 0, string(next), len(want)), list(f)...), f)
		if !bytes.Equal(got, page) {
			t.Errorf("kinesistest answers\n%q, this server\n%q", got, page)
		}
	}

	subscribe := object{"ConsumerARN": real.RegisterConsumer("s", "c"), "ShardId": "shardId-000000000000", "StartingPosition": object{"Type": "TRIM_HORIZON"}}
	body, err := json.Marshal(subscribe)
	if err != nil {
		t.Fatal(err)
	}
	stream := call(t, real.URL(), "SubscribeToShard", jsonFormat, body)
	initial := append(appendFrameHead(nil, "initial-response", jsonFormat, 2), "{}"...)
	if got := frame(t, stream.Body); !bytes.Equal(got, append(initial, checksum(initial)...)) {
		t.Errorf("kinesistest begins with\n%q, this server with\n%q", got, initial)
	}
	payload := append(appendEventHead(nil, jsonFormat, 3), list(jsonFormat)...)
	payload = appendEventTail(payload, jsonFormat, want[2].sequence, 0)
	event := append(appendFrameHead(nil, "SubscribeToShardEvent", jsonFormat, len(payload)), payload...)
	if got := frame(t, stream.Body); !bytes.Equal(got, append(event, checksum(event)...)) {
		t.Errorf("kinesistest sends\n%q, this server\n%q", got, event)
	}
}

// frame reads a frame and checks its checksums.
func frame(t *testing.T, r io.Reader) []byte {
	t.Helper()
	b := make([]byte, 12)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	b = append(b, make([]byte, binary.BigEndian.Uint32(b)-12)...)
	if _, err := io.ReadFull(r, b[12:]); err != nil {
		t.Fatal(err)
	}
	end := len(b) - 4
	if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) || crc32.ChecksumIEEE(b[:end]) != binary.BigEndian.Uint32(b[end:]) {
		t.Fatalf("a checksum of %q is wrong", b)
	}
	return b
}

func start(t *testing.T, cfg Config) (*Server, string, *kinesis.Client) {
	t.Helper()
	s, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, srv.URL, kinesis.New(kinesis.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(srv.URL),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
	})
}

// All clients read the same records: the SDK in JSON, and weir in both formats, by polling and by
// fan-out.
func TestEverybodyReadsTheSame(t *testing.T) {
	_, _, client := start(t, Config{Shards: 2, Records: 25, Page: 10, Bytes: 333, Delay: time.Millisecond})
	sums := map[string]uint32{}
	add := func(who string, i int, seq, key string, data []byte) {
		if got, err := indexOf(seq); err != nil || got != i {
			t.Fatalf("%s: record %d has number %s, %v", who, i, seq, err)
		}
		if len(data) != 333 || len(key) != 36 || len(seq) != 56 {
			t.Errorf("%s: record %d is of %d bytes, its key %q", who, i, len(data), key)
		}
		sums[who] = crc32.Update(crc32.Update(sums[who], crc32.IEEETable, data), crc32.IEEETable, []byte(key))
	}
	iterator, n := Iterator(1, 0), 0
	for range 4 {
		out, err := client.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: &iterator})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out.Records {
			add("SDK", n, *r.SequenceNumber, *r.PartitionKey, r.Data)
			n++
		}
		if want := int64(25 - n); *out.MillisBehindLatest != want {
			t.Errorf("after %d records it is %d behind", n, *out.MillisBehindLatest)
		}
		iterator = *out.NextShardIterator
	}
	for _, f := range []codec.Format{codec.CBOR, codec.JSON} {
		caller, err := wire.NewCaller(client, wire.Options{Format: f})
		if err != nil {
			t.Fatal(err)
		}
		defer caller.Close()
		n, iterator := 0, Iterator(0, 0)
		for n < 25 {
			var p codec.Page
			if err := caller.GetRecords(t.Context(), wire.Request{Iterator: iterator, Limit: 7}, &p); err != nil {
				t.Fatal(err)
			}
			if len(p.Records) != min(7, 25-n) {
				t.Fatalf("%s: %d records", f, len(p.Records))
			}
			for _, r := range p.Records {
				add(f.String(), n, r.SequenceNumber, r.Key, r.Data)
				n++
			}
			iterator = p.Next
		}
	}
	out, err := client.SubscribeToShard(t.Context(), &kinesis.SubscribeToShardInput{
		ConsumerARN: aws.String(ConsumerARN), ShardId: aws.String("shardId-000000000001"),
		StartingPosition: &types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon},
	})
	if err != nil {
		t.Fatal(err)
	}
	n = 0
	for e := range out.GetStream().Events() {
		event := e.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent).Value
		for _, r := range event.Records {
			add("fan-out", n, *r.SequenceNumber, *r.PartitionKey, r.Data)
			n++
		}
		if got := *event.ContinuationSequenceNumber; got != sequence(n-1) {
			t.Errorf("after %d records it goes on after %s", n, got)
		}
	}
	if err := out.GetStream().Close(); err != nil || n != 25 {
		t.Errorf("%d records by fan-out, %v", n, err)
	}
	for who, sum := range sums {
		if sum != sums["SDK"] {
			t.Errorf("%s read other records than the SDK", who)
		}
	}
	if len(sums) != 4 {
		t.Errorf("%d ways to read", len(sums))
	}
}

func TestWhatAConsumerAsksFor(t *testing.T) {
	s, _, client := start(t, Config{Shards: 2001, Records: 10, Page: 4, Bytes: 1})
	in := &kinesis.ListShardsInput{StreamName: aws.String(Stream)}
	var shards []types.Shard
	for pages := 1; ; pages++ {
		out, err := client.ListShards(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, out.Shards...)
		if out.NextToken == nil {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		in = &kinesis.ListShardsInput{NextToken: out.NextToken}
	}
	first, last := shards[0].HashKeyRange, shards[len(shards)-1].HashKeyRange
	if len(shards) != 2001 || *first.StartingHashKey != "0" || *last.EndingHashKey != "340282366920938463463374607431768211455" {
		t.Errorf("%d shards from %s to %s", len(shards), *first.StartingHashKey, *last.EndingHashKey)
	}
	for _, c := range []struct {
		kind types.ShardIteratorType
		seq  *string
		want int
	}{
		{types.ShardIteratorTypeTrimHorizon, nil, 0},
		{types.ShardIteratorTypeLatest, nil, 10},
		{types.ShardIteratorTypeAtSequenceNumber, aws.String(sequence(4)), 4},
		{types.ShardIteratorTypeAfterSequenceNumber, aws.String(sequence(4)), 5},
		{types.ShardIteratorTypeAfterSequenceNumber, aws.String(sequence(9)), 10},
	} {
		out, err := client.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
			StreamName: aws.String(Stream), ShardId: shards[2000].ShardId, ShardIteratorType: c.kind, StartingSequenceNumber: c.seq,
		})
		if err != nil {
			t.Fatal(err)
		}
		if shard, index, err := parseIterator(*out.ShardIterator); shard != 2000 || index != c.want || err != nil {
			t.Errorf("%s: shard %d, record %d, %v", c.kind, shard, index, err)
		}
	}
	summary, err := client.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: aws.String(Stream)})
	if err != nil || *summary.StreamDescriptionSummary.StreamARN != streamARN {
		t.Errorf("%+v, %v", summary, err)
	}
	described, err := client.DescribeStreamConsumer(t.Context(), &kinesis.DescribeStreamConsumerInput{StreamARN: aws.String(streamARN), ConsumerName: aws.String("c")})
	if err != nil || *described.ConsumerDescription.ConsumerARN != ConsumerARN || described.ConsumerDescription.ConsumerStatus != types.ConsumerStatusActive {
		t.Errorf("%+v, %v", described, err)
	}
	registered, err := client.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{StreamARN: aws.String(streamARN), ConsumerName: aws.String("c")})
	if err != nil || *registered.Consumer.ConsumerARN != ConsumerARN {
		t.Errorf("%+v, %v", registered, err)
	}
	for range 2 {
		iterator := Iterator(7, 3)
		if out, err := client.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: &iterator, Limit: aws.Int32(2)}); err != nil || len(out.Records) != 2 {
			t.Errorf("%+v, %v", out, err)
		}
	}
	bad := Iterator(2001, 0)
	if _, err := client.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: &bad}); err == nil {
		t.Error("an iterator of a shard that is not there is answered")
	}
	if got := s.stats.now(); got.Calls["ListShards"] != 3 || got.Calls["GetRecords"] != 3 || got.Fewest != 0 || got.Most != 2 || got.Together != 1 || got.Requests() != 14 {
		t.Errorf("counted %+v", got)
	}
}

func TestMostWithin(t *testing.T) {
	for _, c := range []struct {
		counts []int
		want   int
	}{{nil, 0}, {[]int{3}, 3}, {[]int{1, 2, 3, 4}, 7}, {[]int{9, 0, 0, 9, 1}, 10}} {
		if got := mostWithin(c.counts, 2); got != c.want {
			t.Errorf("%v: %d, want %d", c.counts, got, c.want)
		}
	}
}
