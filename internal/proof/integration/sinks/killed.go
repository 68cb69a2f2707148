package sinks

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/worker"
	"github.com/weir-go/weir/kinesistest"
)

// killed runs worker processes that apply records, and kills them with SIGKILL in the meantime.
func killed(t *testing.T, p Place) {
	if testing.Short() {
		t.Skip("it waits for failovers")
	}
	if p.Store == "" {
		t.Skip("what differs here is no matter of processes")
	}
	const workers, kills, keys = 3, 4, 20
	dsn := p.Fresh(t)
	db := p.open(t, dsn)
	if err := servers.PrepareStore(t.Context(), p.Store, dsn); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "CREATE TABLE effects (id "+p.Serial+", shard VARCHAR(100), what VARCHAR(200))")
	srv := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	srv.CreateStream(stream, 4)
	dir := t.TempDir()
	var all []*worker.Worker
	hire := func() {
		all = append(all, worker.Start(t, worker.Setup{
			Kinesis: srv.URL(), Kind: p.Store, Place: dsn, App: "billing", Stream: stream, Name: fmt.Sprint("w", len(all)), Idle: 200 * time.Millisecond,
			Sink: p.Driver, SinkDialect: int(p.Dialect), SinkPartitions: p.Partitions,
		}, dir))
	}
	for range workers {
		hire()
	}
	put := 0
	some := func(n int) {
		for range n {
			put++
			srv.Put(stream, fmt.Sprint("key-", put%keys), fmt.Appendf(nil, "%d:%d", put%keys, put/keys))
		}
	}
	count := func() int { return len(effects(t, db)) }
	for kill := range kills {
		before := count()
		some(2000)
		eventually(t, "some of it is applied", func() bool { return count() > before+100*(kill+1) })
		all[len(all)-workers+kill%workers].Kill(t)
		hire()
		all[len(all)-workers+kill%workers], all[len(all)-1] = all[len(all)-1], all[len(all)-workers+kill%workers]
	}
	some(1000)
	eventually(t, "all is applied", func() bool { return count() >= put })
	last, done := map[int]int{}, 0
	for _, e := range effects(t, db) {
		var key, n int
		if _, err := fmt.Sscanf(e, "%d:%d", &key, &n); err != nil {
			t.Fatal(err)
		}
		if before, some := last[key]; some && n != before+1 {
			t.Errorf("key %d: %d follows %d", key, n, before)
		}
		last[key] = n
		done++
	}
	if done != put {
		t.Errorf("%d effects of %d records", done, put)
	}
}
