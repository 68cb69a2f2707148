package sinks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/sink/sqlsink"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/window"
)

// windows checks that each record is in one row of the results exactly once. In the meantime,
// workers stop while windows are open, lose their checkpoints, and fail before and after COMMIT.
// The shard is split. A result that is written twice would violate the primary key.
func windows(t *testing.T, p Place) { sums(t, p, window.Config[int]{Size: time.Second}) }

// timedWindows tests windows by a time in the payload. The records are not in the order of these
// times. Some are late, and some have an impossible time.
func timedWindows(t *testing.T, p Place) {
	sums(t, p, window.Config[int]{
		Size: time.Second, Lateness: 200 * time.Millisecond, Ahead: 100 * time.Millisecond, MaxAge: 2 * time.Second,
		Time: func(r weir.Record) (time.Time, error) {
			_, text, _ := strings.Cut(string(r.Data), " ")
			ms, err := strconv.ParseInt(text, 10, 64)
			return time.UnixMilli(ms), err
		},
	})
}

// timed returns the payload of a record.
func timed(n int) []byte {
	at := time.Now().Add(-time.Duration(n*37%300) * time.Millisecond)
	switch n % 40 {
	case 7:
		at = at.Add(-3 * time.Second)
	case 19:
		at = at.Add(time.Hour)
	}
	return fmt.Appendf(nil, "%d %d", n, at.UnixMilli())
}

// intoDatabase makes c store the results of windows and their position in one transaction. insert
// writes the results.
func intoDatabase(
	c window.Config[int], sink *sqlsink.Sink,
	insert func(ctx context.Context, tx *sql.Tx, results []window.Result[int]) error,
) window.Config[int] {
	c.Position = sink.Position // reading begins at the position in the database
	c.Emit = func(ctx context.Context, r window.Results[int]) error {
		return sink.Move(ctx, r.Term, r.From, r.UpTo, r.End, func(ctx context.Context, tx *sql.Tx) error {
			return insert(ctx, tx, r.Windows)
		})
	}
	return c
}

func sums(t *testing.T, p Place, c window.Config[int]) {
	db, sink := p.ready(t)
	exec(t, db, "CREATE TABLE results (id VARCHAR(300) PRIMARY KEY, why VARCHAR(20), records BIGINT, total BIGINT)")
	srv, err := kinesistest.Start(kinesistest.Config{InMemory: true, NoLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	srv.CreateStream("s", 1)
	var calls, inserts, failedAfter atomic.Int64
	c.ByKey, c.MaxRecords, c.Allowance = true, 400, 100*time.Millisecond
	c.Add = func(total int, r weir.Record) (int, error) { return total + len(r.Data), nil }
	c = intoDatabase(c, sink, func(ctx context.Context, tx *sql.Tx, results []window.Result[int]) error {
		for _, w := range results {
			row := fmt.Sprintf("INSERT INTO results VALUES ('%s', '%v', %d, %d)", w.ID, w.Why, w.Records, w.State)
			if _, err := tx.ExecContext(ctx, row); err != nil {
				return weir.Stop(err)
			}
		}
		if inserts.Add(1)%4 == 1 {
			return errors.New("before COMMIT")
		}
		return nil
	})
	emit := c.Emit
	c.Emit = func(ctx context.Context, r window.Results[int]) error {
		call := calls.Add(1)
		err := emit(ctx, r)
		if err == nil && call%3 == 0 {
			failedAfter.Add(1)
			return errors.New("after COMMIT")
		}
		return err
	}
	handler, err := window.PullHandler(c)
	if err != nil {
		t.Fatal(err)
	}
	put, total := 0, 0
	write := func(n int) {
		for range n {
			data := timed(put)
			srv.Put("s", fmt.Sprint("key-", put%5), data)
			put, total = put+1, total+len(data)
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
		// The store loses everything, so only the sink decides where reading begins.
		w, err := weir.New(srv.Client(), memstore.New(), weir.Options{
			App: "app", Streams: []string{"s"}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Timing: weir.Timing{HeartbeatInterval: 100 * time.Millisecond},
			Retry: weir.Retry{MinBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond}, Polling: weir.Polling{IdleInterval: 200 * time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.RunPull(ctx, handler) }()
		before, _ := written()
		write(130)
		if round == 1 {
			srv.Split("s", srv.OpenShards("s")[0])
			write(70)
		}
		eventually(t, "results are written", func() bool {
			select {
			case err := <-done:
				t.Fatalf("Run returned: %v", err)
			default:
			}
			write(3) // so that windows overlap
			n, _ := written()
			return n >= before+100
		})
		if round == 3 {
			eventually(t, "all results are written", func() bool {
				n, _ := written()
				return n >= put
			})
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n, sum := written(); n != put || sum != total {
		t.Errorf("results have %d records and %d bytes, of %d and %d", n, sum, put, total)
	}
	if failedAfter.Load() == 0 {
		t.Error("nothing failed after COMMIT: the test shows little")
	}
	rows, err := db.QueryContext(t.Context(), "SELECT why, COUNT(*), SUM(records) FROM results GROUP BY why ORDER BY why")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var by []string
	for rows.Next() {
		var why string
		var n, records int
		if err := rows.Scan(&why, &n, &records); err != nil {
			t.Fatal(err)
		}
		by = append(by, fmt.Sprintf("%s: %d results of %d records", why, n, records))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records, %d calls, %d of which failed after COMMIT; %s", put, calls.Load(), failedAfter.Load(), strings.Join(by, ", "))
}
