package guide

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/window"
)

// turnover has what was sold in a minute, product by product.
type turnover struct {
	mu   sync.Mutex
	rows map[string]int // by the result's ID
}

func (s *turnover) config() window.Config[int] {
	return window.Config[int]{
		Size:  time.Minute,
		ByKey: true,
		Add: func(cents int, r weir.Record) (int, error) {
			price, err := strconv.Atoi(string(r.Data))
			return cents + price, err
		},
		Emit: func(_ context.Context, r window.Results[int]) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, w := range r.Windows {
				s.rows[w.ID] = w.State // over the one that is there, should it come again
			}
			return nil
		},
	}
}

// fewWrites gets batches of up to 4 MiB, and waits for them for up to 30 s.
var fewWrites = weir.Options{
	Stream: "orders", App: "archive",
	Batch: 5000, BatchBytes: 4 << 20, BatchWait: 30 * time.Second,
}

func TestWindowsOfTheGuide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("orders", 1)
		sold := &turnover{rows: map[string]int{}}
		handlers, err := window.Handlers(sold.config())
		if err != nil {
			t.Fatal(err)
		}
		consumer, err := weir.New(srv.Client(), memstore.New(), weir.Options{Stream: "orders", App: "turnover", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- consumer.RunShards(ctx, handlers) }()
		for range 90 {
			srv.Put("orders", "tea", []byte("250"))
			srv.Put("orders", "cake", []byte("400"))
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		total := 0
		for _, cents := range sold.rows {
			total += cents
		}
		if total != 90*650 || len(sold.rows) < 4 {
			t.Errorf("%d cents in %d rows", total, len(sold.rows))
		}
		if _, err := weir.New(srv.Client(), memstore.New(), fewWrites); err != nil {
			t.Error(err)
		}
	})
}
