//go:build unix

package weir_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// BenchmarkConsumer reads streams through the whole consumer (Run, leases, checkpoints, a handler that counts bytes) and compares the
// CPU time of this process with that of reading the same answers and dropping them, and with a bare loop of the SDK's
// client, in turn in one run. The server is a process of its own. Ratios are what counts; they are printed as a table.
//
//	go test -run '^$' -bench Consumer -benchtime 1x .
func BenchmarkConsumer(b *testing.B) {
	for _, scheme := range []string{"TLS", "HTTP"} {
		for _, c := range []readCase{{1000, 1024, 12}, {10_000, 100, 8}, {100, 10 << 10, 12}, {10, 1024, 40}} {
			b.Run(fmt.Sprintf("%s/%dx%dB", scheme, c.records, c.bytes), func(b *testing.B) { benchmarkConsumer(b, scheme == "TLS", c) })
		}
	}
}

// readCase is pages of so many records of so many bytes, in each of benchShards shards.
type readCase struct{ records, bytes, pages int }

func (c readCase) total() int64 { return int64(c.records) * int64(c.pages) * benchShards }

const benchShards = 16

type readMode struct {
	name string
	read func(s *benchServer, b *testing.B, c readCase)
}

var readModes = []readMode{
	{"limit: read and drop", (*benchServer).readAndDrop},
	{"bare SDK loop", (*benchServer).readBySDK},
	{"weir", func(s *benchServer, b *testing.B, c readCase) { s.readByWeir(b, c, weir.Options{}, false) }},
	{"weir, reused buffers", func(s *benchServer, b *testing.B, c readCase) {
		s.readByWeir(b, c, weir.Options{ReuseBuffers: true}, false)
	}},
	{"weir, client with middleware, reused", func(s *benchServer, b *testing.B, c readCase) {
		s.readByWeir(b, c, weir.Options{ReuseBuffers: true}, true)
	}},
}

func benchmarkConsumer(b *testing.B, tls bool, c readCase) {
	s := startBenchServer(b, tls)
	s.fill(b, c)
	const rounds = 3
	cpu, allocs := map[string][]float64{}, map[string]float64{}
	for b.Loop() {
		for range rounds {
			for _, m := range readModes {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				began := cpuTime(b)
				m.read(s, b, c)
				cpu[m.name] = append(cpu[m.name], float64(cpuTime(b)-began)/float64(c.total()))
				runtime.ReadMemStats(&after)
				allocs[m.name] = float64(after.Mallocs-before.Mallocs) / float64(c.total())
			}
		}
	}
	median := func(name string) float64 { return slices.Sorted(slices.Values(cpu[name]))[len(cpu[name])/2] }
	limit, sdk := median(readModes[0].name), median(readModes[1].name)
	table := &strings.Builder{}
	fmt.Fprintf(table, "\n%-40s %10s %8s %8s %10s\n", "", "ns/record", "÷ limit", "SDK ÷", "allocs/rec")
	for _, m := range readModes {
		fmt.Fprintf(table, "%-40s %10.0f %8.2f %8.2f %10.3f\n", m.name, median(m.name), median(m.name)/limit, sdk/median(m.name), allocs[m.name])
	}
	b.Log(table)
	b.ReportMetric(median("weir, reused buffers")/limit, "reused/limit")
	b.ReportMetric(median("weir")/limit, "weir/limit")
	b.ReportMetric(sdk/median("weir, reused buffers"), "sdk/reused")
	b.ReportMetric(0, "ns/op")
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchServer is an embedded Kinesis in a process of its own: the test binary run once more.
type benchServer struct {
	url, stream string
	roots       *x509.CertPool
	iterators   []string // one at the beginning of each shard
}

const benchServerVariable = "WEIR_BENCH_SERVER"

func TestMain(m *testing.M) {
	scheme := os.Getenv(benchServerVariable)
	if scheme == "" {
		os.Exit(m.Run())
	}
	srv, err := kinesistest.Start(kinesistest.Config{TLS: scheme == "TLS", NoLimits: true, MaxBytes: -1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(srv.URL(), hex.EncodeToString(srv.CACertPEM()))
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = srv.Close()
}

func startBenchServer(b *testing.B, tls bool) *benchServer {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), benchServerVariable+"="+map[bool]string{true: "TLS", false: "HTTP"}[tls])
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	s := &benchServer{stream: "s", roots: x509.NewCertPool()}
	var pem string
	if _, err := fmt.Fscanln(stdout, &s.url, &pem); err != nil && !tls && s.url == "" {
		b.Fatal(err)
	}
	if cert, err := hex.DecodeString(pem); err == nil {
		s.roots.AppendCertsFromPEM(cert)
	}
	return s
}

func (s *benchServer) client(opts ...func(*kinesis.Options)) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(s.url), HTTPClient: &http.Client{Transport: s.transport()},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
	}, opts...)
}

func (s *benchServer) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}
	t.MaxIdleConnsPerHost = 2 * benchShards
	return t
}

// fill makes the stream, with equally many records in each shard.
func (s *benchServer) fill(b *testing.B, c readCase) {
	b.Helper()
	client := s.client()
	if _, err := client.CreateStream(b.Context(), &kinesis.CreateStreamInput{StreamName: &s.stream, ShardCount: aws.Int32(benchShards)}); err != nil {
		b.Fatal(err)
	}
	shards, err := client.ListShards(b.Context(), &kinesis.ListShardsInput{StreamName: &s.stream})
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, c.bytes)
	_, _ = rand.Read(data)
	key := strings.Repeat("k", 36)
	for _, sh := range shards.Shards {
		for left := c.records * c.pages; left > 0; {
			n := min(left, 250)
			left -= n
			in := &kinesis.PutRecordsInput{StreamName: &s.stream}
			for range n {
				in.Records = append(in.Records, types.PutRecordsRequestEntry{
					Data: data, PartitionKey: &key, ExplicitHashKey: sh.HashKeyRange.StartingHashKey,
				})
			}
			if _, err := client.PutRecords(b.Context(), in); err != nil {
				b.Fatal(err)
			}
		}
		it, err := client.GetShardIterator(b.Context(), &kinesis.GetShardIteratorInput{
			StreamName: &s.stream, ShardId: sh.ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			b.Fatal(err)
		}
		s.iterators = append(s.iterators, *it.ShardIterator)
	}
}

// each runs f for each shard side by side, eight at a time.
func (s *benchServer) each(b *testing.B, f func(iterator string) error) {
	b.Helper()
	slots, done := make(chan struct{}, 8), make(chan error)
	for _, it := range s.iterators {
		go func() {
			slots <- struct{}{}
			err := f(it)
			<-slots
			done <- err
		}()
	}
	for range s.iterators {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}

// readAndDrop posts requests for the same pages over HTTP/1.1 and drops the answers: what net/http costs.
func (s *benchServer) readAndDrop(b *testing.B, c readCase) {
	t := s.transport()
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.DisableCompression = true
	defer t.CloseIdleConnections()
	client := &http.Client{Transport: t}
	s.each(b, func(iterator string) error {
		body := cborRequest(iterator, c.records)
		buf := make([]byte, 64<<10)
		for range c.pages {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.url, bytes.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/x-amz-cbor-1.1")
			req.Header.Set("X-Amz-Target", "Kinesis_20131202.GetRecords")
			req.Header.Set("X-Amz-Date", time.Now().UTC().Format("20060102T150405Z"))
			req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/kinesis/aws4_request, SignedHeaders=host;x-amz-date, Signature=00")
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			n := 0
			for {
				k, err := resp.Body.Read(buf)
				n += k
				if err == io.EOF {
					break
				}
				if err != nil {
					return err
				}
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK || n < c.records*c.bytes {
				return fmt.Errorf("status %d, %d bytes: %.200s", resp.StatusCode, n, buf[:min(n, 200)])
			}
		}
		return nil
	})
}

// cborRequest is {"ShardIterator": iterator, "Limit": limit}.
func cborRequest(iterator string, limit int) []byte {
	text := func(b []byte, s string) []byte {
		return append(append(b, 0x79, byte(len(s)>>8), byte(len(s))), s...)
	}
	b := text(append(text([]byte{0xa2}, "ShardIterator"), text(nil, iterator)...), "Limit")
	return append(b, 0x19, byte(limit>>8), byte(limit))
}

func (s *benchServer) readBySDK(b *testing.B, c readCase) {
	client := s.client()
	s.each(b, func(iterator string) error {
		sum := 0
		for range c.pages {
			out, err := client.GetRecords(b.Context(), &kinesis.GetRecordsInput{ShardIterator: &iterator, Limit: aws.Int32(int32(c.records))})
			if err != nil {
				return err
			}
			for _, r := range out.Records {
				sum += len(r.Data)
			}
			iterator = *out.NextShardIterator
		}
		if want := c.records * c.pages * c.bytes; sum != want {
			return fmt.Errorf("the SDK read %d bytes, want %d", sum, want)
		}
		return nil
	})
}

func (s *benchServer) readByWeir(b *testing.B, c readCase, opts weir.Options, withMiddleware bool) {
	client := s.client(func(o *kinesis.Options) {
		if withMiddleware {
			o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
				return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("mine", func(
					ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
				) (middleware.InitializeOutput, middleware.Metadata, error) {
					return next.HandleInitialize(ctx, in)
				}), middleware.Before)
			})
		}
	})
	opts.App, opts.Stream, opts.Batch, opts.Logger = "bench", s.stream, c.records, quiet
	consumer, err := weir.New(client, memstore.New(), opts)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var records, size atomic.Int64
	if err := consumer.Run(ctx, weir.HandlerFunc(func(_ context.Context, batch *weir.Batch) error {
		sum := 0
		for i := range batch.Records {
			sum += len(batch.Records[i].Data)
		}
		size.Add(int64(sum))
		if records.Add(int64(len(batch.Records))) >= c.total() {
			cancel()
		}
		return nil
	})); err != nil {
		b.Fatal(err)
	}
	if records.Load() != c.total() || size.Load() != c.total()*int64(c.bytes) {
		b.Fatalf("weir handled %d records of %d", records.Load(), c.total())
	}
}
