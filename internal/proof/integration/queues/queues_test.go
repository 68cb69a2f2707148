// Package queues_test measures what the consumption of a queue costs, next to boto3 and to a plain
// loop, with the embedded Kinesis (make bench-queue).
package queues_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/queue"
)

var full = flag.Bool("full", false, "the sizes of make bench-queue")

// consumerVariable makes a process a child process. It contains the settings.
const consumerVariable = "WEIR_QUEUES_CONSUMER"

func TestMain(m *testing.M) {
	if text := os.Getenv(consumerVariable); text != "" {
		if err := consume(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(leaktest.Run(m))
}

// settings are the settings of a child process.
type settings struct {
	URL, ARN    string
	Plain       bool // a loop of one receive and one acknowledgement
	Records     int
	Concurrency int
	Handling    time.Duration // on average
	Hold        time.Duration
}

// costs is the output of a child process.
type costs struct {
	Records       int
	CPU           time.Duration
	Took          time.Duration
	Allocations   uint64
	Calls         int
	Extensions    int // calls
	EmptyReceives int
}

func config(url string) aws.Config {
	return aws.Config{
		Region: servers.Region, BaseEndpoint: aws.String(url),
		Credentials: credentials.NewStaticCredentialsProvider(servers.AccessKeyID, servers.SecretAccessKey, ""),
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// consume is the main function of a child process. It prints costs as JSON.
func consume(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	run := weir
	if s.Plain {
		run = plain
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, cpu := time.Now(), cpuTime()
	c, err := run(context.Background(), config(s.URL), &s)
	if err != nil {
		return err
	}
	c.CPU = cpuTime() - cpu
	if c.Took == 0 {
		c.Took = time.Since(began)
	}
	runtime.ReadMemStats(&after)
	c.Allocations = after.Mallocs - before.Mallocs
	return json.NewEncoder(os.Stdout).Encode(c)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// weir consumes with a consumer until it has handled all records.
func weir(ctx context.Context, cfg aws.Config, s *settings) (c costs, err error) {
	consumer, err := queue.New(cfg, queue.Options{Queue: s.ARN, Concurrency: s.Concurrency, Hold: s.Hold, Logger: quiet()})
	if err != nil {
		return c, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var handled atomic.Int64
	began, took := time.Now(), time.Duration(0)
	err = consumer.Run(ctx, queue.RecordFunc(func(context.Context, queue.Record) error {
		if s.Handling > 0 {
			time.Sleep(s.Handling/2 + rand.N(s.Handling))
		}
		if handled.Add(1) == int64(s.Records) {
			took = time.Since(began)
			cancel()
		}
		return nil
	}))
	n := consumer.Counts()
	return costs{Took: took, Records: n.Handled, Calls: n.Receives - n.EmptyReceives + n.AckCalls, Extensions: n.VisibilityCalls, EmptyReceives: n.EmptyReceives}, err
}

// plain consumes with one receive and one acknowledgement after the other.
func plain(ctx context.Context, cfg aws.Config, s *settings) (c costs, err error) {
	client, err := queue.NewClient(cfg)
	if err != nil {
		return c, err
	}
	for c.Records < s.Records {
		got, err := client.Receive(ctx, queue.ReceiveInput{QueueARN: s.ARN, Limit: 10, Wait: time.Second, Hold: 30 * time.Second})
		if err != nil {
			return c, err
		}
		if len(got.Records) == 0 {
			return c, fmt.Errorf("the queue is empty after %d records", c.Records)
		}
		handles := make([]string, len(got.Records))
		for i := range got.Records {
			handles[i] = got.Records[i].ReceiptHandle
		}
		if out, err := client.Acknowledge(ctx, s.ARN, handles); err != nil || len(out.Failed) > 0 {
			return c, fmt.Errorf("acknowledging: %+v, %w", out, err)
		}
		c.Records += len(handles)
		c.Calls += 2
	}
	return c, nil
}

// child starts a child process with the settings, and returns its costs.
func child(t *testing.T, s settings) costs {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), consumerVariable+"="+string(text))
	return output(t, cmd)
}

func output(t *testing.T, cmd *exec.Cmd) (c costs) {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &c)
	}
	if err != nil {
		t.Fatalf("%v: %v, %.300s", cmd.Args, err, out)
	}
	return c
}

// filled starts a server with a queue that has records of 1 KiB.
func filled(t *testing.T, records int) (s *kinesistest.Server, arn string) {
	t.Helper()
	s = kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, NoLimits: true})
	return s, fill(s, records)
}

// fill creates a queue with records.
func fill(s *kinesistest.Server, records int) (arn string) {
	s.CreateOnDemandStream("s")
	arn = s.CreateQueue(kinesistest.Queue{Stream: "s", Name: "q", FromOldest: true, MaxReceiveCount: 100})
	data := make([]byte, 1<<10)
	for i := range records {
		s.Put("s", strconv.Itoa(i), data)
	}
	return arn
}

// verdict returns "met" or "MISSED".
func verdict(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}

// TestCosts prints what consumption costs. The short form has few records and judges nothing.
func TestCosts(t *testing.T) {
	records := 300
	if *full {
		records = 20_000
	}
	row := func(who string, c costs) {
		t.Logf("%-42s %7.1f µs CPU per record  %6.1f allocations per record  %.3f calls per record  %6.0f records a second",
			who, float64(c.CPU.Microseconds())/float64(c.Records), float64(c.Allocations)/float64(c.Records), float64(c.Calls)/float64(c.Records), float64(c.Records)/c.Took.Seconds())
	}
	s, arn := filled(t, records)
	own := child(t, settings{URL: s.URL(), ARN: arn, Records: records, Concurrency: 10})
	row("weir, 10 handlers", own)
	s, arn = filled(t, records)
	loop := child(t, settings{URL: s.URL(), ARN: arn, Records: records, Plain: true})
	row("a plain loop of package queue's client", loop)
	s, arn = filled(t, records)
	boto := output(t, servers.Python(t, "loop.py", s.URL(), arn, strconv.Itoa(records)))
	t.Logf("%-42s %7.1f µs CPU per record  %.3f calls per record  %6.0f records a second", "boto3 in such a loop",
		float64(boto.CPU.Microseconds())/float64(boto.Records), float64(boto.Calls)/float64(boto.Records), float64(boto.Records)/boto.Took.Seconds())
	if own.Records < records || loop.Records != records || boto.Records != records {
		t.Errorf("%d, %d and %d records were handled, of %d", own.Records, loop.Records, boto.Records, records)
	}
	calls := float64(own.Calls) / float64(own.Records)
	t.Logf("calls per record: %.3f, target at most 0.25: %s", calls, verdict(calls <= 0.25))
	t.Logf("CPU: %.2f of the plain loop, %.3f of boto3", own.CPU.Seconds()/loop.CPU.Seconds(), own.CPU.Seconds()/boto.CPU.Seconds())
}

// TestThroughput prints the throughput if each call takes 10 ms and each record 20 ms, in virtual
// time.
func TestThroughput(t *testing.T) {
	const handling = 20 * time.Millisecond
	for _, handlers := range []int{1, 10, 100} {
		synctest.Test(t, func(t *testing.T) {
			records := handlers * 100 // two seconds
			s := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, InMemory: true, NoLimits: true})
			arn := fill(s, records)
			s.Control("", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: 10 * time.Millisecond} })
			cfg := config(s.URL())
			cfg.HTTPClient = s.HTTPClient()
			c, err := weir(t.Context(), cfg, &settings{ARN: arn, Records: records, Concurrency: handlers, Handling: handling})
			if err != nil {
				t.Fatal(err)
			}
			rate, possible := float64(c.Records)/c.Took.Seconds(), float64(handlers)/handling.Seconds()
			calls := float64(c.Calls) / float64(c.Records)
			t.Logf("10 ms per call, %3d handlers of %v: %6.0f of %6.0f records a second, target at least 80%%: %s; %.3f calls per record, target at most 0.25: %s; %d calls for extensions",
				handlers, handling, rate, possible, verdict(rate >= 0.8*possible), calls, verdict(calls <= 0.25), c.Extensions)
		})
	}
}

// TestSlowHandlers prints the calls for a few slow handlers, in virtual time. The target applies if
// they finish ten records within half of a hold, because weir fetches no more than that ahead.
func TestSlowHandlers(t *testing.T) {
	for _, c := range []struct {
		handlers       int
		handling, hold time.Duration
	}{
		{1, time.Second, 30 * time.Second},
		{1, 14 * time.Second, 30 * time.Second},
		{2, 14 * time.Second, 30 * time.Second},
		{5, 14 * time.Second, 30 * time.Second},
		{10, 14 * time.Second, 30 * time.Second},
		{1, 14 * time.Second, 5 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			records := 200 * c.handlers
			s := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, InMemory: true, NoLimits: true})
			arn := fill(s, records)
			cfg := config(s.URL())
			cfg.HTTPClient = s.HTTPClient()
			n, err := weir(t.Context(), cfg, &settings{ARN: arn, Records: records, Concurrency: c.handlers, Handling: c.handling, Hold: c.hold})
			if err != nil {
				t.Fatal(err)
			}
			calls := float64(n.Calls) / float64(n.Records)
			target := "no target"
			if float64(c.handlers)*(c.hold/2).Seconds() >= 10*c.handling.Seconds() {
				target = "target at most 0.25: " + verdict(calls <= 0.25)
			}
			t.Logf("%2d handlers of %3v, holds of %4v: %.2f calls per record and %.2f for extensions, %.1f a minute in all; %s",
				c.handlers, c.handling, c.hold, calls, float64(n.Extensions)/float64(n.Records), float64(n.Calls+n.Extensions)/n.Took.Minutes(), target)
		})
	}
}

// TestIdle prints and checks the calls of a consumer of an empty queue, in virtual time.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, InMemory: true})
		s.CreateOnDemandStream("s")
		arn := s.CreateQueue(kinesistest.Queue{Stream: "s", Name: "q"})
		cfg := config(s.URL())
		cfg.HTTPClient = s.HTTPClient()
		c, err := queue.New(cfg, queue.Options{Queue: arn, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := c.Run(ctx, queue.RecordFunc(func(context.Context, queue.Record) error { return nil })); err != nil {
			t.Error(err)
		}
		calls := float64(s.Requests("")) / 10
		t.Logf("idle: %.1f calls a minute, target at most 3.2: %s", calls, verdict(calls <= 3.2))
		if calls > 3.2 {
			t.Errorf("%.1f calls a minute", calls)
		}
	})
}
