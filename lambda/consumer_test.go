package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lambda"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// bubble runs a test in a bubble with virtual time. The server has a stream "s" of one shard.
func bubble(t *testing.T, f func(t *testing.T, srv *kinesistest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", 1)
		f(t, srv)
	})
}

// worker starts a worker. The returned function stops it.
func worker(t *testing.T, srv *kinesistest.Server, store lease.Store, run func(context.Context, *weir.Consumer) error, o weir.Options) (stop func()) {
	t.Helper()
	o.App, o.Streams, o.Logger = "app", []string{"s"}, slog.New(slog.NewTextHandler(t.Output(), nil))
	o.Retry.MinBackoff, o.Retry.MaxBackoff = 100*time.Millisecond, time.Second
	c, err := weir.New(srv.Client(), store, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, c) }()
	return func() {
		cancel()
		// A worker cannot save its progress if its session was ended.
		if err := <-done; err != nil && !errors.Is(err, weir.ErrNotSaved) {
			t.Error(err)
		}
	}
}

// payloads returns the payloads of the records in an event.
func payloads(t *testing.T, event []byte) (all []string) {
	t.Helper()
	var e struct {
		Records []struct{ Kinesis struct{ Data []byte } }
	}
	if err := json.Unmarshal(event, &e); err != nil {
		t.Error(err)
	}
	for _, r := range e.Records {
		all = append(all, string(r.Kinesis.Data))
	}
	return all
}

// Records older than MaxAge become dead letters, and the function is not called for them. This
// includes a record that gets too old while the function keeps failing at it. Later records are
// handled.
func TestRecordsThatAreTooOldAreLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T, srv *kinesistest.Server) {
		for i := range 300 {
			srv.Put("s", "k", fmt.Appendf(nil, "old %d", i))
		}
		time.Sleep(time.Hour)
		srv.Put("s", "k", []byte("bad"))
		put := time.Now()
		time.Sleep(10 * time.Second)
		srv.Put("s", "k", []byte("young"))
		var mu sync.Mutex
		var got []string
		letters := map[string]deadletter.Letter{}
		h := lambda.Handler{
			MaxAge: time.Minute,
			Source: func(string) lambda.Source { return source },
			Invoke: func(_ context.Context, _ *weir.Batch, event []byte) ([]byte, error) {
				all := payloads(t, event)
				if slices.Contains(all, "bad") {
					return nil, &lambda.FunctionError{Type: "E", Message: "no"}
				}
				got = append(got, all...)
				return nil, nil
			},
		}
		to := deadletter.Func(func(_ context.Context, all []deadletter.Letter) error {
			mu.Lock()
			defer mu.Unlock()
			for _, l := range all {
				letters[string(l.Data)] = l
			}
			return nil
		})
		stop := worker(t, srv, memstore.New(), func(ctx context.Context, c *weir.Consumer) error { return c.Run(ctx, h) },
			weir.Options{Batching: weir.Batching{MaxRecords: 100}, OnFailure: weir.FailurePolicy{Destination: to}})
		time.Sleep(2 * time.Minute)
		stop()
		if strings.Join(got, " ") != "young" || len(letters) != 301 {
			t.Errorf("the function handled %q, and there are %d dead letters", got, len(letters))
		}
		for name, l := range letters {
			if l.Reason != deadletter.Age || (l.Attempts == 0) != strings.HasPrefix(name, "old") || !strings.Contains(l.Error, "older than 1m0s") {
				t.Errorf("%s: %+v", name, l)
			}
		}
		if age := letters["bad"].GivenUp.Sub(put); age < time.Minute || age > time.Minute+2*time.Second || !strings.Contains(letters["bad"].Error, "E: no") {
			t.Errorf("given up at the age of %v: %s", age, letters["bad"].Error)
		}
	})
}
