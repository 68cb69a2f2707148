package guide

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
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

// turnover stores the sales of each minute by product.
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
				s.rows[w.ID] = w.State // overwrites the row of a repeated result
			}
			return nil
		},
	}
}

// run computes the windows until ctx ends.
func (s *turnover) run(ctx context.Context, c *weir.Consumer) error {
	handler, err := window.PullHandler(s.config())
	if err != nil {
		return err
	}
	return c.RunPull(ctx, handler)
}

// visits counts visits by their own time.
type visits struct {
	mu   sync.Mutex
	rows map[string]row // by the result's ID
}

type row struct {
	start time.Time
	why   window.Why
	n     int
}

func (s *visits) config() window.Config[int] {
	return window.Config[int]{
		Size:     time.Minute,
		Lateness: 10 * time.Second, // phones send late if they are offline
		Time: func(r weir.Record) (time.Time, error) {
			var v struct{ At time.Time }
			err := json.Unmarshal(r.Data, &v)
			return v.At, err
		},
		Add: func(n int, _ weir.Record) (int, error) { return n + 1, nil },
		Emit: func(_ context.Context, r window.Results[int]) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, w := range r.Windows {
				s.rows[w.ID] = row{w.Start, w.Why, w.State}
			}
			return nil
		},
	}
}

// fewWrites gets batches of up to 4 MiB, and waits for them for up to 30 s.
var fewWrites = weir.Options{
	Streams: []string{"orders"}, App: "archive",
	Batching: weir.Batching{MaxRecords: 5000, MaxBytes: 4 << 20, MaxWait: 30 * time.Second},
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
		consumer, err := weir.New(srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "turnover", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- sold.run(ctx, consumer) }()
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

func TestWindowsOfATimeInThePayloadOfTheGuide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("visits", 1)
		seen := &visits{rows: map[string]row{}}
		handler, err := window.PullHandler(seen.config())
		if err != nil {
			t.Fatal(err)
		}
		consumer, err := weir.New(srv.Client(), memstore.New(), weir.Options{Streams: []string{"visits"}, App: "visits", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- consumer.RunPull(ctx, handler) }()
		began := time.Now().Truncate(time.Hour).Add(2 * time.Hour)
		time.Sleep(time.Until(began))
		for _, v := range []struct{ sent, made time.Duration }{
			{0, 0}, {30, 30}, {62, 62}, {65, 58}, // the last one belongs to the previous window, and is in time
			{71, 71}, {72, 59}, // late
			{73, 1000}, // the clock is wrong
			{74, 74},
		} {
			time.Sleep(time.Until(began.Add(v.sent * time.Second)))
			at := began.Add(v.made * time.Second).Format(time.RFC3339)
			srv.Put("visits", "phone", []byte(`{"at": "`+at+`"}`))
		}
		time.Sleep(5 * time.Minute) // no more records arrive, and the second window ends by its age
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		var got []string
		for _, r := range seen.rows {
			got = append(got, fmt.Sprintf("%v %v: %d", r.start.Sub(began), r.why, r.n))
		}
		slices.Sort(got)
		want := []string{"0s late: 1", "0s passed: 3", "1m0s aged: 3", "1m0s no time: 1"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
