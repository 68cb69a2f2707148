// Package s3_test tests the guarantee of s3sink on a real S3 server.
package s3_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/sink/s3sink"
	"github.com/weir-go/weir/store/memstore"
)

// asWriter is the environment variable that makes this program a worker process.
const asWriter = "WEIR_S3_WRITER"

func TestMain(m *testing.M) {
	if args := os.Getenv(asWriter); args != "" {
		os.Exit(writer(strings.Fields(args)))
	}
	os.Exit(leaktest.Run(m))
}

// writer writes the objects of all shards of the stream "s". Each writer process has its own
// leases, so several processes write the objects of a shard at the same time.
func writer(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	seed, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		panic(err)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	sink, err := s3sink.New(servers.S3Client(args[1]), servers.Bucket, s3sink.Options{
		Prefix: "under/fire", MaxBytes: 50 + random.IntN(500), MaxAge: time.Second + time.Duration(random.IntN(2000))*time.Millisecond,
	})
	if err != nil {
		panic(err)
	}
	client := kinesis.New(kinesis.Options{Region: servers.Region, BaseEndpoint: aws.String("http://" + args[0]), Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: servers.AccessKeyID, SecretAccessKey: servers.SecretAccessKey}, nil
		})})
	c, err := weir.New(client, memstore.New(), weir.Options{
		App: "app", Streams: []string{"s"}, Batching: weir.Batching{MaxRecords: 1 + random.IntN(50)}, Logger: slog.New(slog.DiscardHandler), Retry: weir.Retry{MaxBackoff: time.Second},
	})
	if err != nil {
		panic(err)
	}
	if err := c.RunPull(ctx, sink.PullHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// The other tests need a guarantee of the server. Many clients write the same key concurrently, on
// the condition that it does not exist. Exactly one of them must succeed.
func TestOneOfManyConditionalWritesWins(t *testing.T) {
	client := servers.S3Client(servers.S3(t).Addr)
	for round := range 5 {
		var won, refused atomic.Int32
		var all sync.WaitGroup
		for n := range 100 {
			all.Go(func() {
				_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
					Bucket: aws.String(servers.Bucket), Key: aws.String(fmt.Sprint("a/key-", round)), IfNoneMatch: aws.String("*"),
					Body: strings.NewReader(fmt.Sprint("writer ", n)),
				})
				var answer *awshttp.ResponseError
				switch {
				case err == nil:
					won.Add(1)
				case errors.As(err, &answer) && (answer.HTTPStatusCode() == http.StatusPreconditionFailed || answer.HTTPStatusCode() == http.StatusConflict):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || refused.Load() != 99 {
			t.Errorf("%d writes succeeded, %d were refused", won.Load(), refused.Load())
		}
	}
}

// Independent processes write the same chains. They are killed at any time and restarted, and
// answers of the server are lost. Each record must be in one object, and in order.
func TestProcessesThatAreKilledWriteEachRecordOnce(t *testing.T) {
	bucket := servers.S3(t)
	proxy := servers.NewProxy(t, bucket.Addr)
	stream := kinesistest.NewServer(t)
	stream.CreateStream("s", 2)
	var n atomic.Int64
	proxy.CutAnswers(func([]byte) bool { return n.Add(1)%23 == 0 })
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	begin := func(addr string) *exec.Cmd {
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", asWriter, stream.Addr(), addr, random.Uint64()))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	writers := []*exec.Cmd{begin(proxy.Addr), begin(proxy.Addr), begin(bucket.Addr)}
	kills := 0
	for i := range 300 {
		for j := range 5 {
			stream.Put("s", fmt.Sprint("key-", random.IntN(100)), fmt.Appendf(nil, `{"n":%d}`, 5*i+j))
		}
		<-time.After(50 * time.Millisecond)
		if i%15 == 14 {
			w := random.IntN(len(writers))
			if err := writers[w].Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = writers[w].Wait() // it was killed
			writers[w] = begin([]string{proxy.Addr, bucket.Addr}[random.IntN(2)])
			kills++
		}
	}
	proxy.CutAnswers(nil)
	sink, err := s3sink.New(servers.S3Client(bucket.Addr), servers.Bucket, s3sink.Options{Prefix: "under/fire"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, r := range stream.Records("s") {
		want[r.Shard] = append(want[r.Shard], string(r.Data))
	}
	objects := 0
	for shard, all := range want {
		var lines []string
		at := weir.Position{}
		for end := time.Now().Add(time.Minute); len(lines) < len(all) && time.Now().Before(end); <-time.After(100 * time.Millisecond) {
			for o, err := range sink.Objects(t.Context(), "s", shard, at) {
				if err != nil {
					t.Fatal(err)
				}
				at = o.To
				objects++
				lines = append(lines, linesOf(t, sink, o)...)
			}
		}
		if !slices.Equal(lines, all) {
			t.Errorf("%s has %d records, and its objects %d lines", shard, len(all), len(lines))
		}
	}
	for _, w := range writers {
		if err := errors.Join(w.Process.Signal(syscall.SIGTERM), w.Wait()); err != nil {
			t.Error(err)
		}
	}
	// Also check with a listing, because most programs list a bucket.
	pages := s3.NewListObjectsV2Paginator(servers.S3Client(bucket.Addr), &s3.ListObjectsV2Input{Bucket: aws.String(servers.Bucket), Prefix: aws.String("under/fire/s/")})
	listed, times := 0, map[string]int{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			listed++
			for _, line := range linesOf(t, sink, s3sink.Object{Key: *o.Key}) {
				times[line]++
			}
		}
	}
	for line, n := range times {
		if n != 1 {
			t.Errorf("%s is there %d times", line, n)
		}
	}
	if len(times) != 1500 || listed != objects {
		t.Errorf("%d records; the chains have %d objects, and the bucket %d", len(times), objects, listed)
	}
	t.Logf("%d objects, %d kills", objects, kills)
}

func linesOf(t *testing.T, s *s3sink.Sink, o s3sink.Object) (lines []string) {
	t.Helper()
	r, err := s.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(r)
	for in.Scan() {
		lines = append(lines, in.Text())
	}
	if err := errors.Join(in.Err(), r.Close()); err != nil {
		t.Fatal(err)
	}
	return lines
}
