package sinks

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/worker"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/queue"
	"github.com/weir-go/weir/sink/sqlsink"
)

// queueTogether lets several processes apply the same records at the same time, in batches that
// overlap and have other orders.
func queueTogether(t *testing.T, p Place) {
	dsn := p.Fresh(t)
	db, _ := p.queueReady(t, dsn)
	const processes, records = 4, 60
	var all sync.WaitGroup
	for n := range processes {
		q := p.queue(t, p.open(t, dsn), sqlsink.QueueOptions{LockTimeout: time.Minute})
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			for from := 1; from <= records; from += 3 {
				batch := queued(from, min(from+5, records))
				rng.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
				for { // as the queue delivers them again
					if err := q.Handler(applyQueued)(t.Context(), batch); err == nil {
						break
					}
				}
			}
		})
	}
	all.Wait()
	seen := map[string]int{}
	for _, what := range effects(t, db) {
		seen[what]++
	}
	for what, n := range seen {
		if n != 1 {
			t.Errorf("record %s has %d effects", what, n)
		}
	}
	if len(seen) != records {
		t.Errorf("%d of %d records have an effect", len(seen), records)
	}
}

// queueUnanswered tests a COMMIT that gets no answer. The sink abandons it, and the next attempt
// finds that it took effect.
func queueUnanswered(t *testing.T, p Place) {
	if p.Addr == "" {
		t.Skip("there is no server")
	}
	dsn := p.Fresh(t)
	db, _ := p.queueReady(t, dsn)
	proxy := servers.NewProxy(t, p.Addr)
	q := p.queue(t, p.open(t, strings.Replace(dsn, p.Addr, proxy.Addr, 1)), sqlsink.QueueOptions{})
	held := false
	proxy.HoldAnswers(func(said []byte) bool {
		first := !held && bytes.Contains(bytes.ToUpper(said), []byte("COMMIT"))
		held = held || first
		return first
	})
	if err := q.Handler(applyQueued)(t.Context(), queued(1, 3)); err == nil || !strings.Contains(err.Error(), "may have taken effect") {
		t.Errorf("a COMMIT without an answer: %v", err)
	}
	applied(t, q, applyQueued, queued(1, 4), nil)
	want(t, db, "1 2 3 4")
	if n := q.Counts().Unknown; n != 1 {
		t.Errorf("%d commits are told as unknown, want 1", n)
	}
}

// queueUnderFire lets four writers apply the same records, while one of three commits fails or
// loses its answer, and connections are cut.
func queueUnderFire(t *testing.T, p Place) {
	n := 3000
	if p.Full {
		n = 30_000
	}
	if testing.Short() {
		n = 600
	}
	for _, c := range []struct {
		name   string
		change func(*disturbance)
		once   bool
	}{
		{"as it is", func(*disturbance) {}, true},
		{"control: the keys are stored after the commit", func(d *disturbance) { d.apart = true }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			size := n
			if !c.once {
				size = min(n, 1000)
			}
			began := time.Now()
			rows, distinct, failed, calls := queueFire(t, p, size, c.change)
			t.Logf("%d records, %d writers: %d effects of %d records; %d calls, of which %d failed, %.1f s", size, fireWriters, rows, distinct, calls, failed, time.Since(began).Seconds())
			switch {
			case c.once && rows != size, !c.once && rows <= size:
				t.Errorf("%d records have %d effects", size, rows)
			case distinct != size:
				t.Errorf("%d of %d records have an effect", distinct, size)
			case int(failed) < size/400:
				t.Errorf("only %d calls failed", failed)
			}
		})
	}
}

func queueFire(t *testing.T, p Place, n int, change func(*disturbance)) (rows, distinct int, failed, calls int64) {
	dsn := p.Fresh(t)
	db, _ := p.queueReady(t, dsn)
	cut := func() {}
	if p.Addr != "" {
		proxy := servers.NewProxy(t, p.Addr)
		cut, dsn = proxy.CutAll, strings.Replace(dsn, p.Addr, proxy.Addr, 1)
	}
	var (
		fails, handles atomic.Int64
		all            sync.WaitGroup
	)
	for w := range fireWriters {
		d := &disturbance{cut: cut, rng: rand.New(rand.NewPCG(uint64(n), uint64(w)))}
		change(d)
		q := p.queue(t, disturbed(t, p.Driver, dsn, d), sqlsink.QueueOptions{LockTimeout: 10 * time.Second})
		all.Go(func() {
			insert := func(ctx context.Context, tx *sql.Tx, records []queue.Record) error {
				var values []string
				for _, r := range records {
					values = append(values, fmt.Sprintf("('', '%s')", r.Data))
				}
				_, err := tx.ExecContext(ctx, "INSERT INTO effects (shard, what) VALUES "+strings.Join(values, ", "))
				return err
			}
			for at := 1; at <= n; {
				to := min(n, at+d.upTo(20))
				ctx, cancel := context.WithCancel(t.Context())
				if d.once(20) {
					time.AfterFunc(time.Duration(d.upTo(3000))*time.Microsecond, cancel)
				}
				handles.Add(1)
				err := q.Handler(insert)(ctx, queued(at, to))
				cancel()
				if err != nil {
					fails.Add(1)
					continue
				}
				at = to + 1
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, what := range effects(t, db) {
		rows++
		seen[what] = true
	}
	return rows, len(seen), fails.Load(), handles.Load()
}

// queueKilled runs processes that apply the records of a queue, and kills them with SIGKILL.
func queueKilled(t *testing.T, p Place) {
	if testing.Short() {
		t.Skip("it waits for the ends of holds")
	}
	const workers, kills, each = 3, 4, 500
	dsn := p.Fresh(t)
	db, _ := p.queueReady(t, dsn)
	srv := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	srv.CreateOnDemandStream("s")
	srv.CreateQueue(kinesistest.Queue{Stream: "s", Name: "orders", MaxReceiveCount: 100})
	dir := t.TempDir()
	var all []*worker.Worker
	hire := func() *worker.Worker {
		w := worker.Start(t, worker.Setup{
			Kinesis: srv.URL(), Place: dsn, App: "billing", Queue: "orders", Name: fmt.Sprint("w", len(all)), Sink: p.Driver, SinkDialect: int(p.Dialect),
		}, dir)
		all = append(all, w)
		return w
	}
	running := make([]*worker.Worker, workers)
	for i := range running {
		running[i] = hire()
	}
	put := 0
	count := func() int { return len(effects(t, db)) }
	for kill := range kills {
		for range each {
			put++
			srv.Put("s", fmt.Sprint(put), fmt.Append(nil, put))
		}
		before := count()
		eventually(t, "some of it is applied", func() bool { return count() > before+50 })
		running[kill%workers].Kill(t)
		running[kill%workers] = hire()
	}
	eventually(t, "all is applied and acknowledged", func() bool {
		s := srv.QueueState("orders")
		return s.Undelivered+s.Visible+s.InFlight+s.VisibleDeadLetters == 0
	})
	seen := map[string]int{}
	for _, what := range effects(t, db) {
		if seen[what]++; seen[what] > 1 {
			t.Errorf("record %s has %d effects", what, seen[what])
		}
	}
	if len(seen) != put {
		t.Errorf("%d of %d records have an effect", len(seen), put)
	}
	t.Logf("%d records, %d processes killed", put, kills)
}
