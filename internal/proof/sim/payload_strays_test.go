package sim

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/window"
)

// timedRecords returns windows of 10 s by a time in the payload, and a shard "1/s" with a record
// for each of the given seconds. The n-th record, counted from 1, has the ID k/n and the sequence
// number n.
func timedRecords(seconds ...int) *windows {
	w := &world{shared: &shared{}, books: newBooks(), judge: judge.New()}
	v := &windows{w: w, size: 10 * time.Second, places: map[judge.ID]int{}, shards: map[string][]arrived{}}
	v.payload = &payloadTime{told: map[judge.ID]window.Why{}, reached: map[string]int{}}
	w.windows = v
	for i, s := range seconds {
		id := judge.ID{Key: "k", N: i + 1}
		at := time.Unix(int64(s), 0)
		v.places[id] = i
		v.shards["1/s"] = append(v.shards["1/s"], arrived{id: id, at: at, of: at, timed: true, last: true, number: model.Number(uint64(i + 1))})
		w.judge.Put(id, "1/s", at)
	}
	return v
}

func idsOf(numbers ...int) (ids []judge.ID) {
	for _, n := range numbers {
		ids = append(ids, judge.ID{Key: "k", N: n})
	}
	return ids
}

func TestWhatATermMayCountTwice(t *testing.T) {
	number := func(n uint64) string { return model.Number(n) }
	before := func(n uint64) weir.Position { p, _ := shard.Before(number(n)); return p }
	after := func(n uint64) weir.Position { p, _ := shard.After(number(n)); return p }
	for _, tt := range []struct {
		what    string
		from    weir.Position
		expired []int
		again   []int // which of the records 3 to 6 are in results
	}{
		{"the record of the new window has expired", before(3), []int{1, 2, 3}, []int{4, 6}},
		{"it has not", before(3), []int{1, 2}, nil},
		{"the term begins after it", after(3), []int{1, 2, 3}, nil},
		{"the term begins with the shard", weir.Oldest, []int{1, 2, 3}, nil},
		{"the term begins at no record", before(9), []int{1, 2, 3}, nil},
	} {
		v := timedRecords(1, 5, 12, 8, 13, 9)
		for _, id := range idsOf(tt.expired...) {
			v.w.books.expired[id] = true
		}
		got := slices.Collect(maps.Keys(v.repeats("1/s", tt.from, idsOf(3, 4, 5, 6))))
		slices.SortFunc(got, func(a, b judge.ID) int { return a.N - b.N })
		if !slices.Equal(got, idsOf(tt.again...)) {
			t.Errorf("%s: %v may be repeated, want %v", tt.what, got, idsOf(tt.again...))
		}
	}
}

func TestStraysAreCountedByLaterResults(t *testing.T) {
	v := timedRecords(1, 5, 12, 3, 13)
	want := func(what string, n int) {
		t.Helper()
		if got := v.uncounted(); got != (judge.ID{}) != (n > 0) || n > 0 && got.N != n {
			t.Errorf("%s: %v is not counted, want %d", what, got, n)
		}
	}
	want("none was told", 0)
	v.payload.told[judge.ID{Key: "k", N: 4}] = window.Late
	want("one was told", 4)
	v.payload.reached["1/s"] = 3
	want("results end before it", 4)
	v.payload.reached["1/s"] = 4
	want("results end after it", 0)
	var none *windows
	if got := none.uncounted(); got != (judge.ID{}) {
		t.Errorf("without windows %v is not counted", got)
	}
}

// TestStraysOfAFormerOwner checks the strays of a worker whose lease was revoked. The worker moves
// the position of the sink. Strays before the new position count as handled, and later strays do
// not.
func TestStraysOfAFormerOwner(t *testing.T) {
	v := timedRecords(1, 5, 12, 3, 4)
	w := v.w
	l := &life{who: judge.Worker{Name: "w", Life: 1}, strays: map[string][]judge.ID{"s": idsOf(4, 5)}}
	e := &emission{judge: &judge.Batch{Worker: l.who, Shard: "1/s", Epoch: 2}}
	for _, step := range []struct {
		upTo    uint64
		missing int
		left    []judge.ID
	}{
		{3, 5, idsOf(4, 5)},
		{4, 4, idsOf(5)},
		{5, 3, nil},
	} {
		e.results.UpTo, _ = shard.After(model.Number(step.upTo))
		w.keepsStrays(l, "s", e)
		if n := w.judge.Missing(); n != step.missing || !slices.Equal(l.strays["s"], step.left) {
			t.Errorf("after results up to %d: %d records are missing, %v are left; want %d, %v", step.upTo, n, l.strays["s"], step.missing, step.left)
		}
	}
	if w.judge.Wants(judge.ID{Key: "k", N: 4}) || !w.judge.Wants(judge.ID{Key: "k", N: 3}) {
		t.Error("not the strays are handled")
	}
}
