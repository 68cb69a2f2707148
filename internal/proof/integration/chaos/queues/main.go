// Command queues consumes a queue of weir local with real processes. It kills, freezes and
// restarts the processes, and a proxy makes their calls fail. In the end it checks with the files
// that the handlers wrote that no record is lost, and explains each record that was handled again.
//
// The seed determines the faults and their order. The timing of real processes is not reproducible.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/queue"
)

const (
	hold   = 5 * time.Second
	drain  = 2 * time.Minute // for the records that are left in the end
	stream = "orders"
)

func main() {
	if text := os.Getenv(workerVariable); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	program := flag.String("weir", "bin/weir", "the weir command")
	lasts := flag.Duration("for", 2*time.Minute, "how long faults happen")
	workers := flag.Int("workers", 4, "number of processes")
	rate := flag.Int("rate", 100, "records per second")
	seed := flag.Uint64("seed", uint64(time.Now().Unix()), "determines the faults")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Printf("chaos-queue: %d processes for %v, seed %d\n", *workers, *lasts, *seed)
	if err := run(ctx, *program, *lasts, *workers, *rate, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "chaos-queue:", err)
		os.Exit(1)
	}
}

// stage is a run: the server, the proxy, the processes, and what happened.
type stage struct {
	dir     string
	arn     string
	proxy   *proxy
	random  *rand.Rand
	workers []*process

	mu   sync.Mutex // guards the fields below
	puts int        // numbers below it were put
	past []event
}

func config(url string) aws.Config {
	return aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(url), Credentials: credentials.NewStaticCredentialsProvider("weir", "weir", "")}
}

func run(ctx context.Context, program string, lasts time.Duration, workers, rate int, seed uint64) error {
	dir, err := os.MkdirTemp("", "chaos-queue")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	url, arn, end, err := startServer(program)
	if err != nil {
		return err
	}
	defer end()
	client, err := queue.NewClient(config(url))
	if err != nil {
		return err
	}
	// Faults spend receives, and dead letters would look like lost records.
	if _, err := client.UpdateQueue(ctx, arn, queue.Attributes{DeadLetters: "BUILT_IN", MaxReceiveCount: 1000}); err != nil {
		return err
	}
	p, err := startProxy(url)
	if err != nil {
		return err
	}
	defer p.close()
	s := &stage{dir: dir, arn: arn, proxy: p, random: rand.New(rand.NewPCG(seed, 1))}
	for i := range workers {
		w := &process{number: i}
		s.workers = append(s.workers, w)
		if err := s.start(w); err != nil {
			return err
		}
		defer w.kill()
	}
	putting, stopPuts := context.WithCancel(ctx)
	var producer sync.WaitGroup
	defer producer.Wait()
	defer stopPuts()
	failed := make(chan error, 1)
	producer.Go(func() { failed <- s.produce(putting, kinesis.NewFromConfig(config(url)), rate) })
	if err := s.faults(ctx, lasts); err != nil {
		return err
	}
	stopPuts()
	if err := <-failed; err != nil {
		return err
	}
	return s.finish(ctx, client)
}

var serverLine = regexp.MustCompile(`(http://[0-9.:]+)|is (arn:aws:kinesis:\S+:queue/[\w-]+)`)

// startServer starts weir local with a queue.
func startServer(program string) (url, arn string, end func(), err error) {
	cmd := exec.CommandContext(context.Background(), program, "local", "--addr=127.0.0.1:0", "--stream="+stream+":on-demand", "--queue=work:"+stream)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", "", nil, fmt.Errorf("weir local cannot be started: %w", err)
	}
	end = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	lines := bufio.NewScanner(out)
	for (url == "" || arn == "") && lines.Scan() {
		for _, m := range serverLine.FindAllStringSubmatch(lines.Text(), -1) {
			if url == "" {
				url = m[1]
			}
			if m[2] != "" {
				arn = m[2]
			}
		}
	}
	go func() { // ends with the process
		for lines.Scan() {
		}
	}()
	if url == "" || arn == "" {
		end()
		return "", "", nil, errors.New("weir local prints no URL or no queue")
	}
	return url, arn, end, nil
}

// produce puts records with increasing numbers.
func (s *stage) produce(ctx context.Context, c *kinesis.Client, rate int) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s.mu.Lock()
		first := s.puts
		s.mu.Unlock()
		var entries []types.PutRecordsRequestEntry
		for i := range max(rate/10, 1) {
			text := fmt.Sprint(first + i)
			entries = append(entries, types.PutRecordsRequestEntry{Data: []byte(text), PartitionKey: aws.String(text)})
		}
		out, err := c.PutRecords(context.WithoutCancel(ctx), &kinesis.PutRecordsInput{StreamName: aws.String(stream), Records: entries})
		if err != nil {
			return fmt.Errorf("the producer fails: %w", err)
		}
		if n := aws.ToInt32(out.FailedRecordCount); n > 0 {
			return fmt.Errorf("the producer fails: %d records are refused", n)
		}
		s.mu.Lock()
		s.puts += len(entries)
		s.mu.Unlock()
	}
}

// finish waits until all records are handled, stops the processes, and prints the verdict.
func (s *stage) finish(ctx context.Context, client *queue.Client) error {
	deadline := time.Now().Add(drain)
	var found []handling
	for {
		var err error
		if found, err = readAll(filepath.Join(s.dir, "*.journal")); err != nil {
			return err
		}
		if missing(found, s.puts) == 0 || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	time.Sleep(2 * hold) // records that come again
	var errs []error
	for _, w := range s.workers {
		errs = append(errs, w.stop())
	}
	found, err := readAll(filepath.Join(s.dir, "*.journal"))
	errs = append(errs, err)
	dead, err := client.ReceiveDeadLetters(context.WithoutCancel(ctx), queue.ReceiveInput{QueueARN: s.arn, Limit: 10, Wait: time.Second, Hold: hold})
	errs = append(errs, err)
	left, err := client.Receive(context.WithoutCancel(ctx), queue.ReceiveInput{QueueARN: s.arn, Limit: 10, Wait: time.Second, Hold: hold})
	errs = append(errs, err)
	v := judge(found, s.puts, s.past)
	v.print(s.past)
	if n := len(dead.Records); n > 0 {
		errs = append(errs, fmt.Errorf("%d dead letters or more", n))
	}
	if n := len(left.Records); n > 0 {
		errs = append(errs, fmt.Errorf("%d records or more are handled and not acknowledged", n))
	}
	if v.lost > 0 || v.unexplained > 0 {
		errs = append(errs, fmt.Errorf("%d records are lost, %d were handled again without an explanation", v.lost, v.unexplained))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Println("every promise was kept")
	return nil
}
