package sinks

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/sink/sqlsink"
)

const fireWriters = 4

// underFire lets four writers apply the same records of one shard, in different batches. Each
// writer behaves like the owner of the shard. In one of three commits, the commit does not arrive,
// its answer is lost, or it takes effect after the writer received an error. During some commits
// all connections are cut.
func underFire(t *testing.T, p Place) {
	n := 6000
	if p.Full || p.Addr == "" {
		n = 60_000
	}
	if testing.Short() {
		n = 1500
	}
	for _, c := range []struct {
		name   string
		epochs bool // owners have different epochs, and return with higher ones
		change func(*disturbance)
		once   bool // each record must take effect once
	}{
		{"as it is", false, func(*disturbance) {}, true},
		{"with epochs", true, func(*disturbance) {}, true},
		// The following cases must fail. A test that cannot detect a duplicate effect proves
		// nothing.
		{"control: the row is read without a lock", false, func(d *disturbance) { d.unlocked = true }, false},
		{"control: the position is saved after the commit", false, func(d *disturbance) { d.apart = true }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "control: the row is read without a lock" && p.Dialect == sqlsink.SQLite {
				t.Skip("SQLite has one writer, and refuses one that has read what is not true any more")
			}
			size := n
			if !c.once {
				size = min(n, 3000)
			}
			began := time.Now()
			rows, distinct, ordered, failed, calls := fire(t, p, size, c.epochs, c.change)
			t.Logf("%d records, %d writers: %d effects of %d records, in order: %t; %d calls, of which %d failed, %.1f s",
				size, fireWriters, rows, distinct, ordered, calls, failed, time.Since(began).Seconds())
			switch {
			case c.once && (rows != size || distinct != size || !ordered):
				t.Errorf("%d records have %d effects, of %d; in order: %t", size, rows, distinct, ordered)
			case !c.once && rows <= size:
				t.Errorf("%d records have %d effects: the test does not see what it is there for", size, rows)
			case distinct != size:
				t.Errorf("%d of %d records have an effect", distinct, size)
			case int(failed) < size/400:
				t.Errorf("only %d calls failed", failed)
			}
		})
	}
}

func fire(t *testing.T, p Place, n int, epochs bool, change func(*disturbance)) (rows, distinct int, ordered bool, failed, calls int64) {
	dsn := p.Fresh(t)
	db := p.open(t, dsn)
	if err := p.sink(t, db, sqlsink.Options{}).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "CREATE TABLE fired (id "+p.Serial+", n INTEGER)")
	cut := func() {}
	if p.Addr != "" {
		proxy := servers.NewProxy(t, p.Addr)
		cut, dsn = proxy.CutAll, strings.Replace(dsn, p.Addr, proxy.Addr, 1)
	}
	insert := func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
		var values []string
		for _, r := range b.Records {
			values = append(values, "("+r.SequenceNumber+")")
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO fired (n) VALUES "+strings.Join(values, ", "))
		return err
	}
	var (
		epoch          atomic.Uint64
		fails, handles atomic.Int64
		all            sync.WaitGroup
	)
	for w := range fireWriters {
		d := &disturbance{cut: cut, rng: rand.New(rand.NewPCG(uint64(n), uint64(w)))}
		change(d)
		own := disturbed(t, p.Driver, dsn, d)
		s := p.sink(t, own, sqlsink.Options{LockTimeout: 10 * time.Second})
		all.Go(func() {
			var h weir.ShardHandler
			mine := uint64(1)
			for at := 1; at <= n; {
				if h == nil {
					var err error
					if epochs {
						mine = epoch.Add(1)
					}
					if h, err = tryTerm(t.Context(), s, mine, insert); err != nil {
						fails.Add(1)
						continue
					}
				}
				if d.once(20) { // weir may deliver done records again
					at = max(1, at-100)
				}
				to := min(n, at+d.upTo(100))
				ctx, cancel := context.WithCancel(t.Context())
				if d.once(20) {
					time.AfterFunc(time.Duration(d.upTo(3000))*time.Microsecond, cancel)
				}
				handles.Add(1)
				err := h.Handle(ctx, batch(mine, at, to))
				cancel()
				switch {
				case err == nil:
					at = to + 1
				case errors.Is(err, sqlsink.ErrFenced), errors.Is(err, sqlsink.ErrSetBack):
					h = nil
					fallthrough
				default:
					fails.Add(1)
				}
			}
		})
	}
	all.Wait()
	seen, last := map[int]bool{}, 0
	ordered = true
	found, err := db.QueryContext(t.Context(), "SELECT n FROM fired ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var n int
		if err := found.Scan(&n); err != nil {
			t.Fatal(err)
		}
		rows++
		seen[n] = true
		ordered = ordered && n > last
		last = n
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return rows, len(seen), ordered, fails.Load(), handles.Load()
}

var errLost = errors.New("the connection was lost")
