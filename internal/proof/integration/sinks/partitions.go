package sinks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/sink"
	"github.com/weir-go/weir/sink/sinktest"
	"github.com/weir-go/weir/sink/sqlsink"
	"github.com/weir-go/weir/store/memstore"
)

// contract tests the rows of the sink with the test suite of package sink.
func contract(t *testing.T, p Place) {
	var db *sql.DB
	sinktest.Run(t, sinktest.Place[*sql.Tx]{
		Open: func(t testing.TB) sink.Rows[*sql.Tx] {
			var s *sqlsink.Sink
			db, s = p.ready(t)
			return s.Rows()
		},
		Add: func(ctx context.Context, tx *sql.Tx, effect string) error {
			return apply(ctx, tx, &weir.Batch{Records: []weir.Record{{Data: []byte(effect)}}})
		},
		Effects: func(t testing.TB) []string { return effects(t, db) },
	})
}

// parted returns a test that runs with partitions.
func parted(test func(*testing.T, Place)) func(*testing.T, Place) {
	return func(t *testing.T, p Place) {
		p.Partitions = 8
		test(t, p)
	}
}

// renumbered lets workers with different numbers of partitions follow each other and work at the
// same time, while shards are split and merged and leases are lost.
func renumbered(t *testing.T, p Place) {
	if testing.Short() {
		t.Skip("it waits for many handoffs")
	}
	a := newApp(t, p, 2)
	numbers := []int{16, 0, 3, 8, 16, 1, 64, 0}
	var all []*sqlsink.Sink
	for _, n := range numbers {
		p.Partitions = n
		all = append(all, p.sink(t, a.db, sqlsink.Options{}))
	}
	store := memstore.New()
	for round := range numbers {
		a.more(10)
		a.sink = all[round]
		one := a.worker(store, weir.Options{Batching: weir.Batching{MaxRecords: 4}}, moody(), nil)
		a.sink = all[(round+1)%len(all)]
		two := a.worker(store, weir.Options{Batching: weir.Batching{MaxRecords: 7}}, moody(), nil)
		a.more(5)
		if round%2 == 0 {
			a.applied()
		}
		open := a.srv.OpenShards(stream)
		if len(open) > 3 {
			a.srv.Merge(stream, open[len(open)-2], open[len(open)-1])
		} else {
			a.srv.Split(stream, open[0])
		}
		a.more(10)
		one.Stop()
		a.more(5)
		if round%3 != 0 {
			a.applied()
		}
		two.Stop()
		if round == 4 { // the leases are lost
			store = memstore.New()
			if _, err := a.sink.ResetEpochs(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.worker(store, weir.Options{}, apply, nil)
	a.applied()
}

// partsUnderFire does what underFire does, with partitions: four writers apply the same records of
// one shard, partition by partition.
func partsUnderFire(t *testing.T, p Place) {
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
		parts  []int
		change func(*disturbance)
		once   bool // each record must take effect once
	}{
		{"as it is", false, []int{8}, func(*disturbance) {}, true},
		{"with epochs", true, []int{8}, func(*disturbance) {}, true},
		{"with different numbers of partitions", true, []int{8, 3, 0, 32}, func(*disturbance) {}, true},
		{"control: rows are read without a lock", false, []int{8}, func(d *disturbance) { d.unlocked = true }, false},
		{"control: positions are saved after the commit", false, []int{8}, func(d *disturbance) { d.apart = true }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.HasSuffix(c.name, "without a lock") && p.Dialect == sqlsink.SQLite {
				t.Skip("SQLite has one writer, and refuses one that has read what is not true any more")
			}
			f := &partsFire{t: t, place: p, n: n, epochs: c.epochs, parts: c.parts, change: c.change}
			if !c.once {
				f.n = min(n, 3000)
			}
			began := time.Now()
			rows, distinct, ordered := f.run()
			t.Logf("%d records, %d writers, partitions %v: %d effects of %d records, in order of their keys: %t; %d calls, of which %d failed, %.1f s",
				f.n, fireWriters, c.parts, rows, distinct, ordered, f.calls.Load(), f.failed.Load(), time.Since(began).Seconds())
			switch {
			case c.once && (rows != f.n || distinct != f.n || !ordered):
				t.Errorf("%d records have %d effects, of %d; in order: %t", f.n, rows, distinct, ordered)
			case !c.once && rows <= f.n:
				t.Errorf("%d records have %d effects: the test does not see what it is there for", f.n, rows)
			case distinct != f.n:
				t.Errorf("%d of %d records have an effect", distinct, f.n)
			case int(f.failed.Load()) < f.n/400:
				t.Errorf("only %d calls failed", f.failed.Load())
			}
		})
	}
}

// partsFire is one run of partsUnderFire.
type partsFire struct {
	t      *testing.T
	place  Place
	n      int
	epochs bool
	parts  []int
	change func(*disturbance)

	epoch         atomic.Uint64
	calls, failed atomic.Int64
}

// fireKeys is the number of keys of the records. Record i has the key i modulo fireKeys.
const fireKeys = 100

func (f *partsFire) record(i int) weir.Record {
	return weir.Record{SequenceNumber: fmt.Sprint(i), PartitionKey: fmt.Sprint("k", i%fireKeys)}
}

func (f *partsFire) run() (rows, distinct int, ordered bool) {
	t, p := f.t, f.place
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
	var all sync.WaitGroup
	for w := range fireWriters {
		d := &disturbance{cut: cut, rng: rand.New(rand.NewPCG(uint64(f.n), uint64(w)))}
		f.change(d)
		own := disturbed(t, p.Driver, dsn, d)
		all.Go(func() { f.write(own, d) })
	}
	all.Wait()
	seen, last := map[int]bool{}, map[int]int{}
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
		ordered = ordered && n > last[n%fireKeys]
		last[n%fireKeys] = n
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return rows, len(seen), ordered
}

// write behaves like an owner of the shard until all records have taken effect. After an error that
// ends its term, it returns with another number of partitions.
func (f *partsFire) write(db *sql.DB, d *disturbance) {
	insert := func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
		var values []string
		for _, r := range b.Records {
			values = append(values, "("+r.SequenceNumber+")")
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO fired (n) VALUES "+strings.Join(values, ", "))
		return err
	}
	w := &fireWriter{partsFire: f, d: d, done: make([]bool, f.n+2), left: f.n}
	for fresh, mine := true, uint64(1); w.left > 0 && f.t.Context().Err() == nil; {
		if fresh && f.epochs {
			mine = f.epoch.Add(1)
		}
		place := f.place
		place.Partitions = f.parts[d.upTo(len(f.parts))-1]
		s := place.sink(f.t, db, sqlsink.Options{LockTimeout: 10 * time.Second})
		h, err := tryTerm(f.t.Context(), s, mine, insert)
		if err == nil {
			err = w.term(h, mine, place.Partitions)
		} else {
			f.failed.Add(1)
		}
		// Like weir, the writer tries again with the same epoch unless another one is the owner.
		if fresh = err == nil || errors.Is(err, sqlsink.ErrFenced); fresh && f.epochs {
			time.Sleep(time.Duration(d.upTo(100)) * time.Millisecond) // until it gets the lease back
		}
	}
}

// fireWriter is one of the writers.
type fireWriter struct {
	*partsFire
	d    *disturbance
	done []bool // by number of the record
	mark int    // all records up to it are done
	left int    // number of records that are not done
}

// term handles the records that are not done, until the term ends. It returns the error that ends
// it.
func (w *fireWriter) term(h weir.ShardHandler, epoch uint64, parts int) error {
	d := w.d
	waits := make([][]int, max(parts, 1)) // numbers of records that are not done, by partition
	for i := 1; i <= w.n; i++ {
		if !w.done[i] {
			part := shard.Partition(w.record(i).PartitionKey, parts)
			waits[part] = append(waits[part], i)
		}
	}
	for w.left > 0 {
		part := d.upTo(len(waits)) - 1
		if len(waits[part]) == 0 {
			continue
		}
		some := waits[part][:min(len(waits[part]), d.upTo(100))]
		b := &weir.Batch{Stream: stream, Shard: shardID, Epoch: epoch, Partition: part, Attempt: 1}
		for _, i := range some {
			b.Records = append(b.Records, w.record(i))
		}
		if parts > 0 && w.mark > 0 {
			b.DoneBefore = w.record(w.mark).Position()
		}
		ctx, cancel := context.WithCancel(w.t.Context())
		if d.once(20) {
			time.AfterFunc(time.Duration(d.upTo(3000))*time.Microsecond, cancel)
		}
		w.calls.Add(1)
		err := h.Handle(ctx, b)
		cancel()
		if err != nil {
			w.failed.Add(1)
			if errors.Is(err, sqlsink.ErrFenced) || errors.Is(err, sqlsink.ErrSetBack) {
				return err
			}
			continue
		}
		waits[part] = waits[part][len(some):]
		w.left -= len(some)
		for _, i := range some {
			w.done[i] = true
		}
		for w.mark < w.n && w.done[w.mark+1] {
			w.mark++
		}
		if w.epochs && d.once(200) { // the owner is replaced without a failure
			return nil
		}
	}
	return nil
}
