package sinks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/sink/sqlsink"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// app is an application whose effects are in a database.
type app struct {
	t    *testing.T
	srv  *kinesistest.Server
	db   *sql.DB
	sink *sqlsink.Sink
	put  map[string]int // number of records by key
	all  int
}

func newApp(t *testing.T, p Place, shards int) *app {
	a := &app{t: t, srv: kinesistest.NewServer(t, kinesistest.Config{NoLimits: true}), put: map[string]int{}}
	a.srv.CreateStream(stream, shards)
	a.db, a.sink = p.ready(t)
	return a
}

// more puts n records for each of some keys.
func (a *app) more(n int) {
	for range n {
		for k := range 4 {
			key := fmt.Sprint("key-", k)
			a.put[key]++
			a.all++
			a.srv.Put(stream, key, fmt.Appendf(nil, "%s:%d", key, a.put[key]))
		}
	}
}

// worker runs a worker until the test ends. end receives the worker's error. If end is nil, the
// worker must end without an error.
func (a *app) worker(store lease.Store, o weir.Options, f sqlsink.Func, end func(error)) *weirtest.Running {
	o.App, o.Streams = "billing", []string{stream}
	o.Timing.HeartbeatInterval, o.Timing.FailoverAfter, o.Polling.IdleInterval, o.Retry.MinBackoff, o.Retry.MaxBackoff = 100*time.Millisecond, 500*time.Millisecond, 200*time.Millisecond, time.Millisecond, 20*time.Millisecond
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	c, err := weir.New(a.srv.Client(), store, o)
	if err != nil {
		a.t.Fatal(err)
	}
	return weirtest.Go(a.t, func(ctx context.Context) error {
		err := c.RunShards(ctx, a.sink.Handlers(f))
		if end != nil {
			end(err)
			return nil
		}
		return err
	})
}

// applied waits until there are as many effects as records. It checks that each record has one
// effect, and that the effects of each key are in order.
func (a *app) applied() {
	a.t.Helper()
	eventually(a.t, "each record has its effect", func() bool { return len(effects(a.t, a.db)) >= a.all })
	a.judge()
}

func (a *app) judge() {
	a.t.Helper()
	seen := map[string]int{}
	for _, e := range effects(a.t, a.db) {
		key, n, _ := strings.Cut(e, ":")
		if seen[key]++; n != fmt.Sprint(seen[key]) {
			a.t.Fatalf("%s is the effect %d of %s", e, seen[key], key)
		}
	}
	for key, n := range a.put {
		if seen[key] != n {
			a.t.Errorf("%d effects of %s, which has %d records", seen[key], key, n)
		}
	}
}

// moody returns a function like apply that fails at every third call, before or after the effect.
func moody() sqlsink.Func {
	var mu sync.Mutex
	n := 0
	return func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
		mu.Lock()
		n++
		mood := n % 6
		mu.Unlock()
		switch mood {
		case 0:
			return errOops
		case 3:
			return errors.Join(apply(ctx, tx, b), errOops)
		}
		return apply(ctx, tx, b)
	}
}

func aggregates(t *testing.T, p Place) {
	a := newApp(t, p, 1)
	for range 5 {
		var b aggregate.Builder
		for range 10 {
			a.put["key-0"]++
			a.all++
			if err := b.Add("key-0", "", fmt.Appendf(nil, "key-0:%d", a.put["key-0"])); err != nil {
				t.Fatal(err)
			}
		}
		a.srv.Put(stream, "a", b.Append(nil))
	}
	// Each owner gets a little further, and stops in the middle of an aggregate.
	for owner := range 4 {
		store := memstore.New()
		ctx, done := context.WithCancel(t.Context())
		calls := 0
		w := a.worker(store, weir.Options{Batching: weir.Batching{MaxRecords: 3}}, func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
			if calls++; owner < 3 && calls > 4 {
				done()
				return errOops
			}
			return apply(ctx, tx, b)
		}, nil)
		if owner < 3 {
			<-ctx.Done()
		} else {
			a.applied()
		}
		done()
		w.Stop()
		if _, err := a.sink.ResetEpochs(t.Context()); err != nil { // leases are new each time
			t.Fatal(err)
		}
	}
	a.judge()
}

func leasesLost(t *testing.T, p Place) {
	a := newApp(t, p, 2)
	for round := range 3 {
		a.more(10)
		store := memstore.New() // no saved progress
		one, two := a.worker(store, weir.Options{Batching: weir.Batching{MaxRecords: 4}}, moody(), nil), a.worker(store, weir.Options{Batching: weir.Batching{MaxRecords: 7}}, moody(), nil)
		a.applied()
		open := a.srv.OpenShards(stream)
		if round == 1 {
			a.srv.Merge(stream, open[1], open[2])
		} else {
			a.srv.Split(stream, open[0])
		}
		a.more(10)
		a.applied()
		one.Stop()
		two.Stop()
		if _, err := a.sink.ResetEpochs(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func setBack(t *testing.T, p Place) {
	a := newApp(t, p, 1)
	store := memstore.New()
	restore := func() {
		t.Helper()
		tx, err := a.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		for _, s := range []string{
			"DELETE FROM effects", "DELETE FROM weir_positions",
			"INSERT INTO effects SELECT * FROM backup_effects", "INSERT INTO weir_positions SELECT * FROM backup_positions",
		} {
			if _, err := tx.ExecContext(t.Context(), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	a.more(5)
	w := a.worker(store, weir.Options{Batching: weir.Batching{MaxRecords: 3}}, apply, nil)
	a.applied()
	exec(t, a.db, "CREATE TABLE backup_effects AS SELECT * FROM effects")
	exec(t, a.db, "CREATE TABLE backup_positions AS SELECT * FROM weir_positions")
	a.more(5)
	lower, _ := a.srv.Split(stream, shardID)
	a.more(5)
	a.applied()
	a.srv.Split(stream, lower)
	a.more(5)
	a.applied()
	w.Stop()
	restore()
	w = a.worker(store, weir.Options{Batching: weir.Batching{MaxRecords: 3}}, apply, nil)
	a.applied()
	a.more(1)
	a.applied()
	w.Stop()

	// Change the rows while a worker is running. The worker must then be restarted.
	ended := make(chan error, 1)
	a.worker(store, weir.Options{Batching: weir.Batching{MaxRecords: 3}}, apply, func(err error) { ended <- err })
	a.more(1)
	a.applied()
	restore()
	a.more(1)
	if err := <-ended; !errors.Is(err, sqlsink.ErrSetBack) {
		t.Errorf("Run = %v", err)
	}
	a.worker(store, weir.Options{Batching: weir.Batching{MaxRecords: 3}}, apply, nil)
	a.applied()
}

// madeAnew tests a stream that is deleted and created again. Positions in shards of the old stream
// are invalid for shards of the new one.
func madeAnew(t *testing.T, p Place) {
	a := newApp(t, p, 1)
	a.more(5)
	w := a.worker(memstore.New(), weir.Options{}, apply, nil)
	a.applied()
	w.Stop()
	a.srv.DeleteStream(stream)
	deleted := time.Now() // sequence numbers contain the second in which their shard was created
	eventually(t, "that is some seconds ago", func() bool { return time.Since(deleted) > 2*time.Second })
	a.srv.CreateStream(stream, 1)
	a.more(5)
	told := make(chan error, 100)
	w = a.worker(memstore.New(), weir.Options{OnEvent: event.On(func(_ context.Context, f event.HandlerFailed) {
		select {
		case told <- f.Err:
		default:
		}
	})}, apply, nil)
	if err := <-told; !strings.Contains(err.Error(), "earlier stream of this name") {
		t.Errorf("the sink's positions are from before: %v", err)
	}
	w.Stop()
	if n := len(effects(t, a.db)); n != a.all/2 {
		t.Errorf("%d effects", n)
	}
	if n, err := a.sink.RemoveStream(t.Context(), stream); err != nil || n < 1 {
		t.Errorf("RemoveStream = %d, %v", n, err)
	}
	a.worker(memstore.New(), weir.Options{}, apply, nil)
	a.applied()
}

func givenUp(t *testing.T, p Place) {
	for name, wrap := range map[string]bool{"noted by the sink": true, "not noted": false} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, p, 1)
			for _, s := range []string{"1", "2", "bad", "3", "bad"} {
				a.srv.Put(stream, "k", []byte(s))
			}
			var mu sync.Mutex
			letters := 0
			to := deadletter.Destination(deadletter.Func(func(_ context.Context, all []deadletter.Letter) error {
				mu.Lock()
				defer mu.Unlock()
				letters += len(all)
				return nil
			}))
			if wrap {
				to = a.sink.Letters(to)
			}
			reject := func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
				for i, r := range b.Records {
					if string(r.Data) == "bad" {
						return weir.RejectAt(r, errOops)
					}
					one := *b
					one.Records = b.Records[i : i+1]
					if err := apply(ctx, tx, &one); err != nil {
						return err
					}
				}
				return nil
			}
			store := memstore.New()
			for round := range 2 {
				w := a.worker(store, weir.Options{OnFailure: weir.FailurePolicy{Destination: to}}, reject, nil)
				if round == 1 {
					a.srv.Put(stream, "k", []byte("4"))
				}
				eventually(t, "the good ones have their effects", func() bool {
					mu.Lock()
					defer mu.Unlock()
					return letters >= 2 && len(effects(t, a.db)) >= 3+round
				})
				w.Stop()
			}
			want(t, a.db, "1 2 3 4")
			// The last record was dead-lettered. The sink knows that only with Letters.
			if want := map[bool]int{true: 2, false: 3}[wrap]; letters != want {
				t.Errorf("%d letters, want %d", letters, want)
			}
		})
	}
}
