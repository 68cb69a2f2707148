package sinks

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/sink/sqlsink"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// statementLatency is the time between a statement and its answer in BenchPartitions.
const statementLatency = 2 * time.Millisecond

// BenchPartitions measures how many effects a worker applies in a second to one shard, serially and
// with partitions. Each statement takes statementLatency longer than the database needs, as in a
// network, and each batch has one record, so each transaction has effects of one key.
func BenchPartitions(b *testing.B, p Place) {
	serial := 0.0
	for _, parts := range []int{0, 1, 4, 16, 64} {
		name := "serial"
		if parts > 0 {
			name = fmt.Sprint(parts, " partitions")
		}
		b.Run(name, func(b *testing.B) {
			perSecond := 0.0
			for b.Loop() {
				perSecond = p.effectsPerSecond(b, parts)
			}
			if parts == 0 {
				serial = perSecond
			}
			b.ReportMetric(perSecond, "effects/s")
			if serial > 0 {
				b.ReportMetric(perSecond/serial, "times-serial")
			}
		})
	}
}

// effectsPerSecond lets a worker apply records for some seconds.
func (p Place) effectsPerSecond(b *testing.B, parts int) float64 {
	const keys, most, warm, takes = 1000, 60_000, time.Second, 4 * time.Second
	dsn := p.Fresh(b)
	db := p.open(b, dsn)
	p.Partitions = parts
	if err := p.sink(b, db, sqlsink.Options{}).Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	exec(b, db, "CREATE TABLE effects (id "+p.Serial+", shard VARCHAR(100), what VARCHAR(200))")
	proxy := servers.NewProxy(b, p.Addr)
	proxy.Delay(statementLatency)
	far := p.open(b, strings.Replace(dsn, p.Addr, proxy.Addr, 1))
	far.SetMaxOpenConns(max(parts, 1) + 2)
	far.SetMaxIdleConns(max(parts, 1) + 2)
	srv := kinesistest.NewServer(b, kinesistest.Config{NoLimits: true})
	srv.CreateStream(stream, 1)
	for i := range most {
		srv.Put(stream, fmt.Sprint("key-", i%keys), fmt.Append(nil, i))
	}
	s := p.sink(b, far, sqlsink.Options{})
	c, err := weir.New(srv.Client(), memstore.New(), weir.Options{
		App: "billing", Streams: []string{stream}, Batching: weir.Batching{MaxRecords: 1000, MaxBytes: 1}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		b.Fatal(err)
	}
	w := weirtest.Go(b, func(ctx context.Context) error { return c.RunShards(ctx, s.Handlers(apply)) })
	time.Sleep(warm)
	before, began := count(b, db), time.Now()
	time.Sleep(takes)
	done, took := count(b, db)-before, time.Since(began)
	w.Stop()
	if left := most - count(b, db); left == 0 {
		b.Fatalf("all %d records were applied before the end: the rate says nothing", most)
	}
	return float64(done) / took.Seconds()
}

// count returns the number of effects.
func count(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM effects").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
