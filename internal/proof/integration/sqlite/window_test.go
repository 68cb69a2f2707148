package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/sink/sqlsink"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/window"
)

// Each record is in one row of the results exactly once, though workers stop in the middle of
// windows, forget their checkpoints, and fail before and after COMMIT, and though the shard is
// split. A result that was written twice would fail at the primary key.
func TestResultsOfWindowsAreWrittenOnce(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+empty(t)+"?_pragma=busy_timeout(50)&_pragma=journal_mode(WAL)&_pragma=synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	sink, err := sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.SQLite, App: "app"})
	if err == nil {
		err = sink.Migrate(t.Context())
	}
	if err == nil {
		_, err = db.ExecContext(t.Context(), "CREATE TABLE results (id TEXT PRIMARY KEY, records INTEGER, total INTEGER)")
	}
	if err != nil {
		t.Fatal(err)
	}
	srv, err := kinesistest.Start(kinesistest.Config{InMemory: true, NoLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	srv.CreateStream("s", 1)
	var calls, failedAfter atomic.Int64
	handlers, err := window.Handlers(window.Config[int]{
		Size: time.Second, ByKey: true, MaxRecords: 50, Allowance: 100 * time.Millisecond, Position: sink.Position,
		Add: func(total int, r weir.Record) (int, error) { return total + len(r.Data), nil },
		Emit: func(ctx context.Context, r window.Results[int]) error {
			call := calls.Add(1)
			err := sink.Move(ctx, r.Term, r.From, r.UpTo, r.End, func(ctx context.Context, tx *sql.Tx) error {
				for _, w := range r.Windows {
					if _, err := tx.ExecContext(ctx, "INSERT INTO results VALUES (?, ?, ?)", w.ID, w.Records, w.State); err != nil {
						return weir.Stop(err)
					}
				}
				if call%4 == 1 {
					return errors.New("before COMMIT")
				}
				return nil
			})
			if err == nil && call%3 == 0 {
				failedAfter.Add(1)
				return errors.New("after COMMIT")
			}
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	records, total := 0, 0
	put := func(n int) {
		for range n {
			data := slices.Repeat([]byte{'x'}, 1+records%9)
			srv.Put("s", fmt.Sprint("key-", records%5), data)
			records, total = records+1, total+len(data)
		}
	}
	written := func() (n, sum int) {
		row := db.QueryRowContext(t.Context(), "SELECT COALESCE(SUM(records), 0), COALESCE(SUM(total), 0) FROM results")
		if err := row.Scan(&n, &sum); err != nil {
			t.Fatal(err)
		}
		return n, sum
	}
	for round := range 4 {
		// a store that forgets everything: where reading begins is the sink's word alone
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{
			App: "app", Stream: "s", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), BeatInterval: 100 * time.Millisecond,
			RetryMin: 10 * time.Millisecond, RetryMax: 50 * time.Millisecond, IdleInterval: 200 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.RunShards(ctx, handlers) }()
		before, _ := written()
		put(130)
		if round == 1 {
			srv.Split("s", srv.OpenShards("s")[0])
			put(70)
		}
		for n := before; n < before+50 || round == 3 && n < records; n, _ = written() {
			select {
			case err := <-done:
				t.Fatalf("Run returned: %v", err)
			case <-t.Context().Done():
				t.Fatal("the results do not come")
			case <-time.After(10 * time.Millisecond):
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n, sum := written(); n != records || sum != total {
		t.Errorf("results have %d records and %d bytes, of %d and %d", n, sum, records, total)
	}
	if failedAfter.Load() == 0 {
		t.Error("nothing failed after COMMIT: the test shows little")
	}
	t.Logf("%d records, %d calls, %d of which failed after COMMIT", records, calls.Load(), failedAfter.Load())
}
