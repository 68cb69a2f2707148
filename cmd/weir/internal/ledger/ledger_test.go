package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/sink/sqlsink"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// The store of leases forgets all progress, and the shard is split. Each order is still booked only
// once, and each record that is not an order becomes one dead letter.
func TestEachOrderIsBookedOnce(t *testing.T) {
	for _, n := range []int{0, 16} {
		t.Run(fmt.Sprint(n, " partitions"), func(t *testing.T) {
			*partitions = n
			bookOnce(t)
		})
	}
}

func bookOnce(t *testing.T) {
	srv := kinesistest.NewServer(t)
	srv.CreateStream("orders", 1)
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), bookings); err != nil {
		t.Fatal(err)
	}
	var letters atomic.Int32
	box := deadletter.Func(func(_ context.Context, all []deadletter.Letter) error {
		letters.Add(int32(len(all)))
		return nil
	})
	put := 0
	booked := func() (orders string, n int) {
		if err := db.QueryRowContext(t.Context(), `select coalesce(group_concat(id || ' ', '' order by rowid), ''), count(*) from bookings`).Scan(&orders, &n); err != nil {
			t.Fatal(err)
		}
		return orders, n
	}
	for round := range int32(3) {
		for range 5 {
			srv.Put("orders", "customer-7", fmt.Appendf(nil, `{"ID": "o-%d"}`, put))
			put++
		}
		srv.Put("orders", "customer-7", []byte("???"))
		if err := reset(t.Context(), db); err != nil && round > 0 {
			t.Fatal(err)
		}
		worker := weirtest.Go(t, func(ctx context.Context) error {
			return run(ctx, srv.Client(), memstore.New(), db, box)
		})
		worker.Until(weirtest.When("all is booked", func() bool {
			_, n := booked()
			return n == put && letters.Load() == round+1
		}))
		worker.Stop()
		srv.Split("orders", srv.OpenShards("orders")[0])
	}
	want := ""
	for i := range put {
		want += fmt.Sprintf("o-%d ", i)
	}
	if got, _ := booked(); got != want || letters.Load() != 3 {
		t.Errorf("booked %q, want %q; %d dead letters", got, want, letters.Load())
	}
}

// reset resets the epochs in the sink. This is necessary after leases were lost, because their
// epochs start from the beginning.
func reset(ctx context.Context, db *sql.DB) error {
	sink, err := sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.SQLite, App: "billing"})
	if err != nil {
		return err
	}
	_, err = sink.ResetEpochs(ctx)
	return err
}
