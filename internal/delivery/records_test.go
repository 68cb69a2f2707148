package delivery

import (
	"testing"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/pooled"
	"github.com/weir-go/weir/internal/source"
)

// The benchmark copies the 10,000 records of a batch.
func BenchmarkKeep(b *testing.B) {
	body := make([]byte, 10000*200)
	run := make([]source.Record, 10000)
	for i := range run {
		p := i * 200
		run[i] = source.Record{Data: body[p+60 : p+160], Key: string(body[p : p+8]), SequenceNumber: string(body[p+8 : p+60]), Arrival: 1, Done: 3}
	}
	from := &source.Origin{}
	for b.Loop() {
		r := Copy(run, from)
		r.release()
	}
}

func TestPooledRecordsAreAsGoodAsNew(t *testing.T) {
	r := new(Records)
	pooled.Fill(r)
	memory := r.pooled
	r.release()
	for _, d := range pooled.Differences(r, new(Records)) {
		t.Errorf("%s is not reset", d)
	}
	for _, d := range pooled.Differences(memory, new([]source.Record)) {
		t.Errorf("%s is not reset in the pool", d)
	}
}

// A record gets the origin of its shard, unless it has tags. The size of its data counts.
func TestRecordsAreMarked(t *testing.T) {
	from, other := &source.Origin{Stream: "s", Shard: "1"}, &source.Origin{Stream: "s", Shard: "2"}
	tagged := &source.Origin{Stream: "s", Shard: "1", Tags: aggregate.Tags{}.With("k", "v")}
	for name, keep := range map[string]func([]source.Record) Records{
		"a copy": func(run []source.Record) Records { return Copy(run, from) },
		"a run":  func(run []source.Record) Records { return Keep(run, from) },
		"a run that was marked": func(run []source.Record) Records {
			Mark(run, from)
			return Marked(run)
		},
	} {
		run := []source.Record{{Data: []byte("ab")}, {Data: []byte("c"), From: other}, {From: tagged}, {From: from}}
		r := keep(run)
		if r.bytes != 3 || len(r.all) != 4 {
			t.Errorf("%s: %d records, %d bytes", name, len(r.all), r.bytes)
		}
		for i, want := range []*source.Origin{from, from, tagged, from} {
			if r.all[i].From != want {
				t.Errorf("%s: record %d is from %+v", name, i, r.all[i].From)
			}
		}
	}
}
