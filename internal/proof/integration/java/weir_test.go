package java_test

import (
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/producer"
)

// A KCL reads each record of weir's producer once, and those of each key in order, while the stream
// is split and merged. Records have numbers, and some have tags.
func TestTheKCLReadsWhatWeirPacks(t *testing.T) {
	const records, keys = 20_000, 97
	srv := kinesistest.NewServer(t, kinesistest.Config{
		Region: servers.Region, TLS: true, NoLimits: true, StateDelay: 300 * time.Millisecond,
	})
	srv.CreateStream("orders", 2)
	h, stop := startKCL(t, srv, "polling")
	defer stop()

	p, err := producer.New(srv.Client(), producer.Options{
		Stream: "orders", Numbered: true, FirstShare: 1, MaxRecords: 2000, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	upper := ""
	for i := range records {
		switch i {
		case records / 3:
			_, upper = srv.Split("orders", "shardId-000000000000")
		case records * 2 / 3:
			srv.Merge("orders", upper, "shardId-000000000001")
		}
		r := producer.Record{PartitionKey: "key-" + strconv.Itoa(i%keys), Data: []byte("record-" + strconv.Itoa(i))}
		if i%5 == 0 {
			r.Tags = aggregate.Tags{}.With("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		}
		if _, err := p.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.await(t, "last record and the end of three shards", func() bool { return h.total >= records && len(h.ended) == 3 })

	h.mu.Lock()
	defer h.mu.Unlock()
	got := map[string][]int{}
	for _, shard := range slices.Sorted(maps.Keys(h.shards)) { // children come after their parents
		for _, r := range h.shards[shard] {
			n, err := strconv.Atoi(strings.TrimPrefix(r.data, "record-"))
			if err != nil || r.key != "key-"+strconv.Itoa(n%keys) {
				t.Fatalf("%q has the key %s", r.data, r.key)
			}
			got[r.key] = append(got[r.key], n)
		}
	}
	for key, numbers := range got {
		for i, n := range numbers {
			if want := numbers[0]%keys + i*keys; n != want {
				t.Fatalf("%s: record %d follows, want %d", key, n, want)
			}
		}
	}
	c := p.Counts()
	if h.total != records || len(got) != keys {
		t.Errorf("the KCL read %d records of %d keys", h.total, len(got))
	}
	t.Logf("%d records in %d stream records, %d were misplaced by a split or merge; the KCL read %d", records, c.StoredEntries, c.Misplaced, h.total)
}
