// Package moving_test contains the programs on the pages in this folder. Each replaces a program
// for another client, and runs on an embedded Kinesis.
package moving_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/queue"
	"github.com/weir-go/weir/store/memstore"
)

// harlow.md

func scan(ctx context.Context, client *kinesis.Client, store lease.Store) error {
	c, err := weir.New(client, store, weir.Options{Streams: []string{"orders"}, App: "billing", Start: weir.Latest})
	if err != nil {
		return err
	}
	return c.Run(ctx, weir.RecordFunc(func(ctx context.Context, r weir.Record) error {
		return bill(r.Data)
	}))
}

// kinsumer.md

func next(ctx context.Context, client *kinesis.Client, store lease.Store) error {
	c, err := weir.New(client, store, weir.Options{Streams: []string{"orders"}, App: "billing"})
	if err != nil {
		return err
	}
	for r, err := range c.Records(ctx) {
		if err != nil {
			return err
		}
		for bill(r.Data) != nil {
			select {
			case <-time.After(time.Second): // once more
			case <-ctx.Done():
				return nil // the record is not done
			}
		}
	}
	return nil
}

// vmware-go-kcl.md and java-kcl.md

type processor struct {
	shard string
}

func (p *processor) Handle(ctx context.Context, b *weir.Batch) error {
	for _, r := range b.Records {
		if err := bill(r.Data); err != nil {
			return err // the batch is handled again after a backoff, from this record on
		}
		if err := b.Done(r); err != nil {
			return err
		}
	}
	return nil // the checkpoint moves automatically
}

func (p *processor) Close(ctx context.Context, why event.EndReason) {
	fmt.Println(p.shard, why)
}

func process(ctx context.Context, client *kinesis.Client, store lease.Store) error {
	c, err := weir.New(client, store, weir.Options{Streams: []string{"orders"}, App: "billing", Start: weir.Latest})
	if err != nil {
		return err
	}
	return c.RunShards(ctx, weir.ShardHandlers{
		Open: func(ctx context.Context, t weir.Term) (weir.ShardHandler, error) {
			return &processor{shard: t.Shard}, nil
		},
	})
}

// lifion.md

func consume(ctx context.Context, client *kinesis.Client, store lease.Store) error {
	c, err := weir.New(client, store, weir.Options{Streams: []string{"orders"}, App: "billing", Start: weir.Latest})
	if err != nil {
		return err
	}
	return c.Run(ctx, weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
		for _, r := range b.Records {
			if err := bill(r.Data); err != nil {
				return err
			}
		}
		return nil
	}))
}

// sqs.md

func receive(ctx context.Context, cfg aws.Config) error {
	c, err := queue.New(cfg, queue.Options{Queue: "orders"})
	if err != nil {
		return err
	}
	return c.Run(ctx, queue.RecordFunc(func(ctx context.Context, r queue.Record) error {
		return bill(r.Data)
	}))
}

// billed collects the records that the programs have billed.
var billed []string

// failed is set after the one failure of bill.
var failed bool

// bill is your code for one record.
var bill func(data []byte) error

func init() {
	bill = func(data []byte) error {
		if !failed {
			failed = true
			return errors.New("try later")
		}
		billed = append(billed, string(data))
		return nil
	}
}

func TestTheProgramsHandleWhatComes(t *testing.T) {
	for name, run := range map[string]func(context.Context, *kinesis.Client, lease.Store) error{
		"harlow": scan, "kinsumer": next, "vmware-go-kcl, java-kcl": process, "lifion": consume,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				billed, failed = nil, false
				srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
				if err != nil {
					t.Fatal(err)
				}
				defer srv.Close()
				srv.CreateStream("orders", 1)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- run(ctx, srv.Client(), memstore.New()) }()
				time.Sleep(10 * time.Second)
				srv.Put("orders", "customer-7", []byte("one espresso"))
				srv.Put("orders", "customer-7", []byte("one more"))
				time.Sleep(30 * time.Second)
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if got := strings.Join(billed, ", "); got != "one espresso, one more" || !failed {
					t.Errorf("billed: %s", got)
				}
			})
		})
	}
}

func TestTheProgramForAQueueHandlesWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		billed, failed = nil, false
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateOnDemandStream("shop")
		srv.CreateQueue(kinesistest.Queue{Stream: "shop", Name: "orders"})
		srv.Put("shop", "customer-7", []byte("one espresso"))
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		err := receive(ctx, srv.AWSConfig())
		state := srv.QueueState("orders")
		if err != nil || strings.Join(billed, ", ") != "one espresso" || !failed || state.Acknowledged != 1 {
			t.Errorf("%v, billed %q, %+v", err, billed, state)
		}
	})
}

// The programs on the pages must be the ones in this file. A test in docs/guide compiles them as
// shown.
func TestThePagesShowThesePrograms(t *testing.T) {
	code, err := os.ReadFile("programs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) != 10 {
		t.Fatalf("the pages are %q, %v", pages, err)
	}
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, after, has := strings.Cut(string(page), "## After\n")
		if !has && name != "README.md" && name != "kcl-checkpoints.md" && name != "multilang.md" && name != "why.md" {
			t.Errorf("%s does not say what the program becomes", name)
		}
		for i, block := range strings.Split(after, "```go\n")[1:] {
			block, _, closed := strings.Cut(block, "```")
			_, program, starts := strings.Cut(block, "\nvar bill func(data []byte) error\n\n")
			if !closed || !starts || !strings.Contains(string(code), "\n"+program) {
				t.Errorf("%s: block %d after \"After\" is not among the programs", name, i+1)
			}
		}
	}
}
