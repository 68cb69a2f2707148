package producer

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/benchserver"
	"github.com/weir-go/weir/internal/wire/codec"
)

// putBench is a case of BenchmarkProducer.
type putBench struct {
	name    string
	size    int // bytes of data
	plain   bool
	shards  int
	records int
	keys    []string
	data    []byte

	server *benchserver.Process
	roots  *x509.CertPool

	entries, conns int // records per request, and connections, of the last producer
}

// BenchmarkProducer compares the CPU time per record of three ways to put records in order over
// TLS. The first is a producer. The second is a loop of the SDK's PutRecords with 500 records each.
// The third is the lower limit: it sends prepared requests with net/http, and computes only their
// hashes, SHA-256 for the signature and MD5 for containers. It has as many records per request and
// as many connections as the producer had. The server is a separate process. One run measures the
// three ways in turn.
func BenchmarkProducer(b *testing.B) {
	for _, c := range []putBench{
		{name: "1KiB-plain", size: 1 << 10, plain: true, shards: 512, records: 100_000},
		{name: "10KiB-plain", size: 10 << 10, plain: true, shards: 512, records: 20_000},
		{name: "100B-packed", size: 100, shards: 64, records: 500_000},
		{name: "1KiB-packed", size: 1 << 10, shards: 256, records: 100_000},
	} {
		b.Run(c.name, c.run)
	}
}

func (c putBench) run(b *testing.B) {
	c.data = bytes.Repeat([]byte{0xa5}, c.size)
	for i := range 10_000 {
		c.keys = append(c.keys, fmt.Sprintf("%036d", i))
	}
	server, err := benchserver.Start(benchserver.Config{TLS: true, Shards: c.shards, Delay: time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	c.server, c.roots = server, x509.NewCertPool()
	c.roots.AppendCertsFromPEM(server.Certificate)
	var limit, sdk, weir time.Duration
	var allocs float64
	rounds := 0
	for b.Loop() {
		rounds++
		took, n := c.producer(b)
		weir += took
		allocs += n
		sdk += c.sdk(b)
		limit += c.limit(b)
	}
	each := func(d time.Duration) float64 { return float64(d) / float64(rounds*c.records) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(each(limit), "limit-ns")
	b.ReportMetric(each(weir), "weir-ns")
	b.ReportMetric(float64(weir)/float64(limit), "weir/limit")
	b.ReportMetric(float64(sdk)/float64(weir), "sdk/weir")
	b.ReportMetric(allocs/float64(rounds), "allocs/record")
}

func (c *putBench) key(i int) string { return c.keys[i%len(c.keys)] }

func (c *putBench) transport(b *testing.B) *http.Transport {
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.roots}, MaxIdleConnsPerHost: 100}
	b.Cleanup(t.CloseIdleConnections)
	return t
}

func (c *putBench) client(b *testing.B) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		Region: "us-east-1", HTTPClient: &http.Client{Transport: c.transport(b)}, BaseEndpoint: aws.String(c.server.URL),
		Credentials: aws.NewCredentialsCache(static{}),
	})
}

type static struct{}

func (static) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
}

// limit sends prepared requests in CBOR, over HTTP/1.1, and drops the answers.
func (c *putBench) limit(b *testing.B) time.Duration {
	client := &http.Client{Transport: c.transport(b)}
	perEntry, data := 1, c.data
	if !c.plain {
		var box aggregate.Builder
		for i := 0; box.Add(c.key(i), "", c.data) == nil; i++ {
			perEntry = i + 1
		}
		data = box.AppendContainer(nil)
	}
	body := codec.AppendText(codec.AppendText(codec.AppendMap(nil, 2), "StreamName"), benchserver.Stream)
	body = codec.AppendArray(codec.AppendText(body, "Records"), c.entries)
	for i := range c.entries {
		body = codec.AppendText(codec.AppendText(codec.AppendMap(body, 2), "PartitionKey"), c.key(i))
		body = append(codec.AppendBytesHead(codec.AppendText(body, "Data"), len(data)), data...)
	}
	var left atomic.Int64
	left.Store(int64(c.records))
	var senders sync.WaitGroup
	began := cpuTime()
	for range c.conns {
		senders.Go(func() {
			for n := left.Add(-int64(c.entries * perEntry)); n > -int64(c.entries*perEntry); n = left.Add(-int64(c.entries * perEntry)) {
				part := min(1, float64(int(n)+c.entries*perEntry)/float64(c.entries*perEntry))
				if !c.plain {
					for range int(float64(c.entries) * part) {
						md5.Sum(data)
					}
				}
				if err := c.post(b.Context(), client, body[:int(float64(len(body))*part)]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	return cpuTime() - began
}

// post hashes and sends a prepared request.
func (c *putBench) post(ctx context.Context, client *http.Client, body []byte) error {
	sum := sha256.Sum256(body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", codec.CBORType)
	r.Header.Set("X-Amz-Target", "Kinesis_20131202.PutRecords")
	r.Header.Set("Authorization", fmt.Sprintf("%x", sum))
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// sdk puts records as a program without a producer does.
func (c *putBench) sdk(b *testing.B) time.Duration {
	client := c.client(b)
	began := cpuTime()
	for i := 0; i < c.records; i += mostEntries {
		in := &kinesis.PutRecordsInput{StreamName: aws.String(benchserver.Stream), Records: make([]types.PutRecordsRequestEntry, 0, mostEntries)}
		for j := range mostEntries {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{Data: c.data, PartitionKey: aws.String(c.key(i + j))})
		}
		out, err := client.PutRecords(b.Context(), in)
		if err != nil || len(out.Records) != mostEntries {
			b.Fatal(err)
		}
	}
	return cpuTime() - began
}

// producer puts the same number of records with a producer. It returns the CPU time per record, and
// the allocations per record in the steady state.
func (c *putBench) producer(b *testing.B) (time.Duration, float64) {
	p, err := New(c.client(b), Options{Stream: benchserver.Stream, NoAggregation: c.plain, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := p.Put(b.Context(), Record{PartitionKey: "first", Data: c.data}); err != nil {
		b.Fatal(err)
	}
	if err := p.Flush(b.Context()); err != nil { // the shards are known
		b.Fatal(err)
	}
	if err := c.server.Reset(); err != nil {
		b.Fatal(err)
	}
	warm := p.Counts()
	put := func(records int) {
		for i := range records {
			if _, err := p.Put(b.Context(), Record{PartitionKey: c.key(i), Data: c.data}); err != nil {
				b.Fatal(err)
			}
		}
		if err := p.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	began := cpuTime()
	put(c.records)
	took := cpuTime() - began
	n := p.Counts()
	stats, err := c.server.Stats()
	if err != nil {
		b.Fatal(err)
	}
	requests := n.Requests - warm.Requests
	c.entries, c.conns = int((n.Entries-warm.Entries+requests/2)/requests), 1+stats.Accepted
	b.Logf("%d requests, %d entries, %d connections", requests, n.Entries-warm.Entries, c.conns)

	// The steady state: the connections and the buffers are there.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	put(c.records / 2)
	runtime.ReadMemStats(&after)
	if err := p.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	if n := p.Counts(); n.Stored != uint64(c.records+c.records/2)+1 || n.Retried > 0 {
		b.Fatalf("%+v", n)
	}
	return took, float64(after.Mallocs-before.Mallocs) / float64(c.records/2)
}
