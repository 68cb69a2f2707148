package guide

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// billAll takes records one by one until ctx ends.
func billAll(ctx context.Context, c *weir.Consumer, bill func(weir.Record) error) error {
	for r, err := range c.Records(ctx) {
		if err != nil {
			return err
		}
		if err := bill(r); err != nil {
			return err // r is not done; the next owner of the shard gets it again
		}
	}
	return nil
}

// firstOf takes n records and stops the worker.
func firstOf(ctx context.Context, c *weir.Consumer, n int) ([]string, error) {
	next, stop := iter.Pull2(c.Records(ctx))
	defer stop()
	var all []string
	for len(all) < n {
		r, err, more := next()
		if err != nil || !more {
			return all, err
		}
		all = append(all, string(r.Data))
	}
	_, _, _ = next() // marks the last record as done
	return all, nil
}

// show follows a stream from now on, without saved progress.
func show(ctx context.Context, client *kinesis.Client, to func(weir.Record)) error {
	r, err := weir.NewReader(client, weir.ReaderOptions{Stream: "orders", Start: weir.Latest})
	if err != nil {
		return err
	}
	for rec, err := range r.Records(ctx) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err // or continue: the Reader then retries
		}
		to(rec)
	}
	return nil
}

// lookOn handles records that arrive from now on, and saves no progress.
func lookOn(ctx context.Context, client *kinesis.Client, h weir.Handler) error {
	c, err := weir.New(client, memstore.New(), weir.Options{Streams: []string{"orders"}, App: "look", Start: weir.Latest})
	if err != nil {
		return err
	}
	return c.Run(ctx, h)
}

// orders runs f with a stream "orders" of one shard.
func orders(t *testing.T, f func(t *testing.T, srv *kinesistest.Server)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("orders", 1)
		f(t, srv)
	})
}

func TestOneByOne(t *testing.T) {
	orders(t, func(t *testing.T, srv *kinesistest.Server) {
		store := memstore.New()
		consumer := func() *weir.Consumer {
			c, err := weir.New(srv.Client(), store, weir.Options{Streams: []string{"orders"}, App: "billing", Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		for _, data := range []string{"a", "b", "c", "d", "e"} {
			srv.Put("orders", "k", []byte(data))
		}
		var billed []string
		tired := errors.New("tired")
		err := billAll(t.Context(), consumer(), func(r weir.Record) error {
			if string(r.Data) == "b" {
				return tired
			}
			billed = append(billed, string(r.Data))
			return nil
		})
		if !errors.Is(err, tired) || !slices.Equal(billed, []string{"a"}) {
			t.Errorf("first: %q, %v", billed, err)
		}
		if got, err := firstOf(t.Context(), consumer(), 2); err != nil || !slices.Equal(got, []string{"b", "c"}) {
			t.Errorf("then: %q, %v", got, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got, err := firstOf(ctx, consumer(), 3); err != nil || !slices.Equal(got, []string{"d", "e"}) {
			t.Errorf("at last: %q, %v", got, err)
		}
	})
}

func TestWithoutACheckpoint(t *testing.T) {
	orders(t, func(t *testing.T, srv *kinesistest.Server) {
		var mu sync.Mutex
		seen := map[string][]string{}
		see := func(by string, r weir.Record) {
			mu.Lock()
			defer mu.Unlock()
			seen[by] = append(seen[by], string(r.Data))
		}
		for _, data := range []string{"one", "two"} { // at each start
			srv.Put("orders", "k", []byte("before "+data))
			time.Sleep(2 * time.Second) // the service's clock has a resolution of seconds
			ctx, stop := context.WithCancel(t.Context())
			var both sync.WaitGroup
			both.Go(func() {
				if err := show(ctx, srv.Client(), func(r weir.Record) { see("show", r) }); err != nil {
					t.Error(err)
				}
			})
			both.Go(func() {
				err := lookOn(ctx, srv.Client(), weir.RecordFunc(func(_ context.Context, r weir.Record) error { see("lookOn", r); return nil }))
				if err != nil {
					t.Error(err)
				}
			})
			time.Sleep(10 * time.Second)
			srv.Put("orders", "k", []byte(data))
			time.Sleep(10 * time.Second)
			stop()
			both.Wait()
		}
		for _, by := range []string{"show", "lookOn"} {
			if !slices.Equal(seen[by], []string{"one", "two"}) {
				t.Errorf("%s has seen %q", by, seen[by])
			}
		}
	})
}
