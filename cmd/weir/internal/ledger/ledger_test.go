package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// Each record is booked once, though the store of leases forgets all of its progress and the shard
// is split.
func TestEachRecordIsBookedOnce(t *testing.T) {
	srv := kinesistest.NewServer(t)
	srv.CreateStream("orders", 1)
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), Tables); err != nil {
		t.Fatal(err)
	}
	put := 0
	for range 3 {
		for range 5 {
			srv.Put("orders", "customer-7", fmt.Appendf(nil, "o-%d", put))
			put++
		}
		// What the page says to do when leases are lost: here there were nine owners before.
		for _, epoch := range []int{9, 0} {
			if _, err := db.ExecContext(t.Context(), `update positions set epoch = $1`, epoch); err != nil {
				t.Fatal(err)
			}
		}
		booked(t, srv, &Ledger{DB: db}, put)
		srv.Split("orders", srv.OpenShards("orders")[0])
	}
	want := ""
	for i := range put {
		want += fmt.Sprintf("o-%d ", i)
	}
	got := ""
	if err := db.QueryRowContext(t.Context(), `select group_concat(data || ' ', '' order by rowid) from bookings`).Scan(&got); err != nil || got != want {
		t.Errorf("booked %q, want %q: %v", got, want, err)
	}
}

// booked runs a worker with leases of its own until so many records are booked.
func booked(t *testing.T, srv *kinesistest.Server, l *Ledger, records int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{
		Stream: "orders", App: "billing",
		Events: weir.Events{BatchHandled: func(context.Context, weir.BatchHandled) {
			n := 0
			if err := l.DB.QueryRowContext(ctx, `select count(*) from bookings`).Scan(&n); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			if n >= records {
				stop()
			}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.RunShards(ctx, l.Handlers()); err != nil {
		t.Error(err)
	}
}

// A worker whose shard has a later owner books nothing.
func TestALateOwnerIsRefused(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.ExecContext(t.Context(), Tables); err != nil {
		t.Fatal(err)
	}
	l := &Ledger{DB: db}
	for _, c := range []struct {
		epoch uint64
		want  error
	}{{3, nil}, {4, nil}, {3, weir.ErrLeaseLost}, {4, nil}} {
		err := l.Handle(t.Context(), &weir.Batch{Stream: "orders", Shard: "shardId-000000000000", Epoch: c.epoch, End: true})
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("epoch %d: %v", c.epoch, err)
		}
	}
}
