//go:build unix

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/benchserver"
	"github.com/weir-go/weir/store/memstore"
)

// spent is the cost of reading, in this process.
type spent struct {
	cpu     time.Duration
	mallocs uint64
	records int64

	// The following fields include everything before the measurement.
	all         int64   // number of records
	connections int     // connections that were opened
	reads       float64 // reads per handled page; more than one if answers were discarded
}

func (s spent) perRecord() float64 { return float64(s.cpu) / float64(s.records) }
func (s spent) allocs() float64    { return float64(s.mallocs) / float64(s.records) }

// meter starts a measurement. The returned function ends it.
func meter() func(records int64) spent {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime()
	return func(records int64) spent {
		cpu = cpuTime() - cpu
		runtime.ReadMemStats(&after)
		return spent{cpu: cpu, mallocs: after.Mallocs - before.Mallocs, records: records}
	}
}

// readCase describes the shards and records to read.
type readCase struct {
	name           string
	tls            bool
	records, bytes int // per page
	shards, pages  int // in the stream for weir, because the reads per second of a shard are limited
	read, readSDK  int // number of measured pages
	warm           int // pages of each shard that weir reads before the measurement; 0 means one
}

func (c readCase) config() benchserver.Config {
	return benchserver.Config{TLS: c.tls, Shards: c.shards, Records: c.records * c.pages, Page: c.records, Bytes: c.bytes}
}

// counted checks that whole records of the right size were handled.
func (c readCase) counted(tb testing.TB, who string, records, size int64) {
	tb.Helper()
	if records == 0 || size != records*int64(c.bytes) {
		tb.Fatalf("%s read %d records of %d bytes, not of %d each", who, records, size, c.bytes)
	}
}

// readByWeir runs a consumer and measures a number of pages. The measurement starts after each
// shard has delivered its first records, so that it does not include the start.
func readByWeir(tb testing.TB, client *kinesis.Client, c readCase, opts weir.Options) spent {
	tb.Helper()
	var (
		records, size, began atomic.Int64
		enough               atomic.Int64
		seen                 = make([]atomic.Int64, c.shards) // records by shard
		warm                 = int64(max(c.warm-1, 0)*c.records) + 1
		missing              atomic.Int64
		all, done            = make(chan struct{}), make(chan struct{})
		once                 sync.Once
	)
	enough.Store(1 << 62)
	missing.Store(int64(c.shards))
	opts.App, opts.Streams, opts.Logger = "bench", []string{benchserver.Stream}, quiet
	consumer, err := weir.New(client, memstore.New(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- consumer.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
			sum := 0
			for i := range b.Records {
				sum += len(b.Records[i].Data)
			}
			size.Add(int64(sum))
			if shard, err := strconv.Atoi(strings.TrimPrefix(b.Shard, "shardId-")); err != nil || len(b.Records) == 0 {
				return weir.Stop(fmt.Errorf("%d records of shard %q", len(b.Records), b.Shard))
			} else if n, more := seen[shard].Add(int64(len(b.Records))), int64(len(b.Records)); n >= warm && n-more < warm && missing.Add(-1) == 0 {
				close(all)
			}
			if records.Add(int64(len(b.Records))) >= enough.Load() {
				once.Do(func() { close(done) })
			}
			return nil
		}))
	}()
	wait := func(what string, c <-chan struct{}) {
		select {
		case <-c:
		case err := <-ended:
			tb.Fatalf("%s did not happen: Run returned %v after %d records; %d shards had too few", what, err, records.Load(), missing.Load())
		}
	}
	wait("the first records of each shard", all)
	stop := meter()
	began.Store(records.Load())
	enough.Store(began.Load() + int64(c.read*c.records))
	wait("reading enough", done)
	s := stop(records.Load() - began.Load())
	cancel()
	if err := <-ended; err != nil {
		tb.Fatal(err)
	}
	c.counted(tb, "weir", records.Load(), size.Load())
	s.all = records.Load()
	return s
}

// withMiddleware adds a middleware without effect to a client.
func withMiddleware(o *kinesis.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("mine", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
	})
}

// overNetHTTP gives a client an HTTP transport that weir does not know, so that net/http makes its
// calls. The transport has as many connections as weir's own client.
func overNetHTTP(o *kinesis.Options) {
	t := o.HTTPClient.(*http.Client).Transport.(*http.Transport)
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.MaxConnsPerHost, t.DisableCompression = 256, 256, 256, true
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	o.HTTPClient = &http.Client{Transport: struct{ http.RoundTripper }{t}}
}

// pageReader reads the page of a shard that begins at the record from. It returns the number of
// records and the size of their data in bytes.
type pageReader func(ctx context.Context, shard, from int) (records, size int, err error)

const readers = 8 // concurrent readers

// readPages measures the cost of reading pages on connections that are already open.
func readPages(tb testing.TB, who string, c readCase, pages int, read pageReader) spent {
	tb.Helper()
	var records, size atomic.Int64
	run := func(pages int) {
		var next atomic.Int64
		var group sync.WaitGroup
		for range readers {
			group.Go(func() {
				for i := int(next.Add(1)) - 1; i < pages; i = int(next.Add(1)) - 1 {
					n, bytes, err := read(tb.Context(), i%c.shards, i/c.shards%c.pages*c.records)
					if err != nil || n != c.records {
						tb.Errorf("%s: %d records, %v", who, n, err)
						return
					}
					records.Add(int64(n))
					size.Add(int64(bytes))
				}
			})
		}
		group.Wait()
	}
	run(readers)
	warm := records.Load()
	stop := meter()
	run(pages)
	s := stop(records.Load() - warm)
	if tb.Failed() {
		tb.FailNow()
	}
	c.counted(tb, who, records.Load(), size.Load())
	s.all = records.Load()
	return s
}

// drop reads pages over HTTP/1.1 into a buffer and discards them. Its cost is that of net/http
// alone.
func drop(addr benchserver.Address, c readCase) pageReader {
	t := benchTransport(addr)
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.DisableCompression = true
	client := &http.Client{Transport: t}
	buffers := sync.Pool{New: func() any { return new([64 << 10]byte) }}
	return func(ctx context.Context, shard, from int) (int, int, error) {
		resp, err := post(ctx, client, addr.URL, "GetRecords", "application/x-amz-cbor-1.1", cborRequest(benchserver.Iterator(shard, from), c.records))
		if err != nil {
			return 0, 0, err
		}
		defer func() { _ = resp.Body.Close() }()
		buf := buffers.Get().(*[64 << 10]byte)
		defer buffers.Put(buf)
		n, err := copyAway(resp.Body, buf[:])
		if err != nil || resp.StatusCode != http.StatusOK || n < c.records*c.bytes {
			return 0, 0, fmt.Errorf("status %d, %d bytes, %w", resp.StatusCode, n, err)
		}
		return c.records, c.records * c.bytes, nil
	}
}

// copyAway reads to the end. It returns the number of bytes.
func copyAway(r io.Reader, buf []byte) (n int, err error) {
	for err == nil {
		var k int
		k, err = r.Read(buf)
		n += k
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func post(ctx context.Context, client *http.Client, url, action, contentType string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Amz-Target", "Kinesis_20131202."+action)
	req.Header.Set("X-Amz-Date", time.Now().UTC().Format("20060102T150405Z"))
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/kinesis/aws4_request, SignedHeaders=host;x-amz-date, Signature=00")
	req.Header.Set("X-Amz-Date", "20260101T000000Z")
	return client.Do(req)
}

// cborRequest encodes {"ShardIterator": iterator, "Limit": limit}.
func cborRequest(iterator string, limit int) []byte {
	text := func(b []byte, s string) []byte {
		return append(append(b, 0x79, byte(len(s)>>8), byte(len(s))), s...)
	}
	b := text(text([]byte{0xa2}, "ShardIterator"), iterator)
	return append(append(append(b, 0x65), "Limit"...), 0x19, byte(limit>>8), byte(limit))
}

// bareSDK reads pages with only the SDK's client.
func bareSDK(client *kinesis.Client, limit int) pageReader {
	return func(ctx context.Context, shard, from int) (int, int, error) {
		iterator := benchserver.Iterator(shard, from)
		out, err := client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: &iterator, Limit: aws.Int32(int32(limit))})
		if err != nil {
			return 0, 0, err
		}
		size := 0
		for _, r := range out.Records {
			size += len(r.Data)
		}
		return len(out.Records), size, nil
	}
}
