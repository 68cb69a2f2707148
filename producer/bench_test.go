package producer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/shard"
)

// prepared is a service that costs next to nothing: it answers each call of PutRecords with as many
// results as the request has records, and lists shards. It is a transport, so that a benchmark
// measures the client alone.
type prepared struct {
	shards  int
	mu      sync.Mutex // guards answers
	answers map[int][]byte
}

func (s *prepared) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var out []byte
	switch _, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); action {
	case "PutRecords":
		out = s.answer(bytes.Count(body, []byte(`"Data":`)))
	case "ListShards":
		out = s.listing()
	default:
		out = []byte(`{"StreamDescriptionSummary":{"OpenShardCount":1,"MaxRecordSizeInKiB":1024}}`)
	}
	return &http.Response{
		StatusCode: 200, Request: r, Body: io.NopCloser(bytes.NewReader(out)), ContentLength: int64(len(out)),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}},
	}, nil
}

// answer has one shard's ID for all: the benchmark's shards are all taken for AUTO or plain ones.
func (s *prepared) answer(n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if out := s.answers[n]; out != nil {
		return out
	}
	var b bytes.Buffer
	b.WriteString(`{"FailedRecordCount":0,"Records":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"SequenceNumber":"4950%052d","ShardId":"shardId-%012d"}`, i, 999_999)
	}
	b.WriteString(`]}`)
	s.answers[n] = b.Bytes()
	return b.Bytes()
}

// listing lists the shards, and one more that is closed, has the whole range, and answers for all
// of them: so containers are taken for stored where they belong.
func (s *prepared) listing() []byte {
	var b strings.Builder
	b.WriteString(`{"Shards":[`)
	width := ^uint64(0)/uint64(s.shards) + 1
	for i := range s.shards {
		start := shard.HashKey{Hi: uint64(i) * width}
		end := shard.HashKey{Hi: uint64(i+1)*width - 1, Lo: ^uint64(0)}
		if i == s.shards-1 {
			end = shard.MaxHashKey
		}
		fmt.Fprintf(&b, `{"ShardId":"shardId-%012d","HashKeyRange":{"StartingHashKey":"%s","EndingHashKey":"%s"},"SequenceNumberRange":{"StartingSequenceNumber":"1"}},`, i, start, end)
	}
	fmt.Fprintf(&b, `{"ShardId":"shardId-%012d","HashKeyRange":{"StartingHashKey":"0","EndingHashKey":"%s"},"SequenceNumberRange":{"StartingSequenceNumber":"1","EndingSequenceNumber":"2"}}]}`, 999_999, shard.MaxHashKey)
	return []byte(b.String())
}

func preparedClient(shards int) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		Region: "eu-west-1", HTTPClient: &http.Client{Transport: &prepared{shards: shards, answers: map[int][]byte{}}},
		BaseEndpoint: aws.String("http://127.0.0.1"), Credentials: aws.NewCredentialsCache(static{}),
	})
}

type static struct{}

func (static) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
}

// BenchmarkProducer compares the CPU of a producer with that of a loop that calls PutRecords with
// 500 records each, over the same client of the SDK and a service that costs nothing. The figures
// are for one record; the loop's are measured in the same run.
func BenchmarkProducer(b *testing.B) {
	for _, c := range []struct {
		name  string
		size  int
		plain bool
	}{{"1KiB-plain", 1024, true}, {"100B-packed", 100, false}, {"1KiB-packed", 1024, false}, {"10KiB-plain", 10 << 10, true}} {
		b.Run(c.name, func(b *testing.B) {
			keys := make([]string, 10_000)
			for i := range keys {
				keys[i] = fmt.Sprintf("%036d", i)
			}
			data := bytes.Repeat([]byte{0xa5}, c.size)
			records := max(20_000, min(200_000, 100<<20/c.size))
			var loop, producer, allocs float64
			rounds := 0
			for b.Loop() {
				rounds++
				loop += float64(bareLoop(b, keys, data, records))
				cpu, n := withProducer(b, keys, data, records, c.plain)
				producer += float64(cpu)
				allocs += n
			}
			total := float64(rounds * records)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(loop/total, "loop-ns/record")
			b.ReportMetric(producer/total, "producer-ns/record")
			b.ReportMetric(loop/producer, "loop/producer")
			b.ReportMetric(allocs/float64(rounds), "allocs/record")
		})
	}
}

// bareLoop puts records as people do without a producer, and returns the CPU time.
func bareLoop(b *testing.B, keys []string, data []byte, records int) time.Duration {
	client := preparedClient(1)
	began := cpuTime()
	for i := 0; i < records; i += mostEntries {
		in := &kinesis.PutRecordsInput{StreamName: aws.String("s"), Records: make([]types.PutRecordsRequestEntry, 0, mostEntries)}
		for j := range mostEntries {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{Data: data, PartitionKey: aws.String(keys[(i+j)%len(keys)])})
		}
		out, err := client.PutRecords(b.Context(), in)
		if err != nil || len(out.Records) != mostEntries {
			b.Fatal(err)
		}
	}
	return cpuTime() - began
}

// withProducer puts as many with a producer, and returns the CPU time and allocations per record.
func withProducer(b *testing.B, keys []string, data []byte, records int, plain bool) (time.Duration, float64) {
	p, err := New(preparedClient(512), Options{Stream: "s", NoAggregation: plain, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := p.Put(b.Context(), Record{PartitionKey: "first", Data: data}); err != nil {
		b.Fatal(err)
	}
	if err := p.Flush(b.Context()); err != nil { // the shards are known
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpuTime()
	for i := range records {
		if _, err := p.Put(b.Context(), Record{PartitionKey: keys[i%len(keys)], Data: data}); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	took := cpuTime() - began
	runtime.ReadMemStats(&after)
	if n := p.Counts(); n.Stored != uint64(records)+1 || n.Retried > 0 {
		b.Fatalf("%+v", n)
	}
	return took, float64(after.Mallocs-before.Mallocs) / float64(records)
}
