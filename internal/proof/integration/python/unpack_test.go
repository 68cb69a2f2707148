package python_test

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/producer"
)

// aws-kinesis-agg unpacks each record of weir's producer once, and those of each key in order. Some
// records have tags, and all have numbers.
func TestAwsKinesisAggUnpacksWhatWeirPacks(t *testing.T) {
	const records, keys = 20_000, 97
	srv := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, NoLimits: true})
	srv.CreateStream("orders", 3)
	p, err := producer.New(srv.Client(), producer.Options{
		Stream: "orders", Numbered: true, FirstShare: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
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
	var shards map[string][][2]string
	run(t, servers.Python(t, "unpack.py", srv.URL(), "orders"), &shards)
	total, next := 0, map[string]int{}
	for _, list := range shards {
		for _, r := range list {
			key, data := r[0], r[1]
			first, _ := strconv.Atoi(strings.TrimPrefix(key, "key-"))
			if want := "record-" + strconv.Itoa(first+next[key]*keys); data != want {
				t.Fatalf("%s: %s follows, want %s", key, data, want)
			}
			next[key]++
			total++
		}
	}
	if total != records {
		t.Errorf("%d of %d records", total, records)
	}
	t.Logf("%d records in %d stream records", total, p.Counts().StoredEntries)
}
