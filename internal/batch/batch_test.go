package batch

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/pooled"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// records returns records with the given sizes of data. The data of each record is its number, from
// 1 on, followed by spaces.
func records(sizes ...int) (all []source.Record) {
	for i, n := range sizes {
		all = append(all, source.Record{SequenceNumber: strconv.Itoa(i + 1), Done: shard.Whole, Data: []byte(fmt.Sprintf("%-*d", n, i+1))})
	}
	return all
}

// names returns the first word of the data of each record.
func names(all []source.Record) string {
	var words []string
	for _, r := range all {
		words = append(words, strings.Fields(string(r.Data))[0])
	}
	return strings.Join(words, " ")
}

func TestWhatBelongsToABatch(t *testing.T) {
	for _, c := range []struct {
		name        string
		size        Size
		sizes       []int
		have, bytes int
		want        int
	}{
		{"none", Size{Records: 3}, nil, 0, 0, 0},
		{"fewer than it may have", Size{Records: 3}, []int{9, 9}, 0, 0, 2},
		{"as many as it may have", Size{Records: 3}, []int{9, 9, 9, 9}, 0, 0, 3},
		{"what is missing", Size{Records: 3}, []int{9, 9, 9, 9}, 2, 18, 1},
		{"it is full", Size{Records: 3}, []int{9}, 3, 27, 0},
		{"as many bytes as it may have", Size{Records: 9, Bytes: 20}, []int{10, 10, 1}, 0, 0, 2},
		{"one that is too large", Size{Records: 9, Bytes: 20}, []int{30, 1}, 0, 0, 1},
		{"one that is too large for what is left", Size{Records: 9, Bytes: 20}, []int{30, 1}, 1, 1, 0},
	} {
		if got := c.size.Cut(records(c.sizes...), c.have, c.bytes); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// decider drops and marks records by their data.
type decider map[string]Decision

func (d decider) Decide(r *source.Record) Decision {
	return d[strings.Fields(string(r.Data))[0]]
}

// The cases show the runs of a page, and which of them is the last.
func TestRunsOfAPage(t *testing.T) {
	packed := func(damaged bool, names ...string) []byte {
		var b aggregate.Builder
		for _, name := range names {
			if err := b.Add("key", "", []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		data := b.AppendContainer(nil)
		if damaged {
			data[len(data)-1]++
		}
		return data
	}
	for _, c := range []struct {
		name   string
		mode   Mode
		page   source.Page
		size   Size
		filter decider
		resume uint32 // number of sub-records of record 1 that are done
		want   string // runs; the last one is in brackets
		count  Unpacked
	}{
		{"nothing", Unpack, source.Page{}, Size{Records: 2}, nil, 0, "", Unpacked{}},
		{"the end alone", Unpack, source.Page{End: true}, Size{Records: 2}, nil, 0, "[]", Unpacked{}},
		{"plain records", Unpack, source.Page{Records: records(5, 5, 5)}, Size{Records: 2}, nil, 0, "1 2, [3]", Unpacked{}},
		{"by bytes", Unpack, source.Page{Records: records(5, 5, 5)}, Size{Records: 9, Bytes: 10}, nil, 0, "1 2, [3]", Unpacked{}},
		{"as many as fit", Unpack, source.Page{Records: records(5, 5), End: true}, Size{Records: 2}, nil, 0, "[1 2]", Unpacked{}},
		{"without those that are dropped", Unpack, source.Page{Records: records(5, 5, 5)}, Size{Records: 2}, decider{"1": Drop, "3": DropNotJSON}, 0, "[2]", Unpacked{}},
		{"all are dropped", Unpack, source.Page{Records: records(5)}, Size{Records: 2}, decider{"1": Drop}, 0, "", Unpacked{}},
		{"all are dropped at the end", Unpack, source.Page{Records: records(5), End: true}, Size{Records: 2}, decider{"1": Drop}, 0, "[]", Unpacked{}},
		{"an aggregate", Unpack, source.Page{Marked: true, Records: []source.Record{{SequenceNumber: "1", Data: packed(false, "a", "b", "c")}}}, Size{Records: 2}, nil, 0, "a b, [c]", Unpacked{Aggregates: 1, Records: 3}},
		{"an aggregate that is done in part", Unpack, source.Page{Marked: true, Records: []source.Record{{SequenceNumber: "1", Data: packed(false, "a", "b", "c")}}}, Size{Records: 2}, nil, 2, "[c]", Unpacked{Aggregates: 1, Records: 1}},
		{"of which one is dropped", Unpack, source.Page{Marked: true, Records: []source.Record{{SequenceNumber: "1", Data: packed(false, "a", "b", "c")}}}, Size{Records: 2}, decider{"b": Drop}, 0, "[a c]", Unpacked{Aggregates: 1, Records: 3}},
	} {
		resume := shard.Oldest
		if c.resume > 0 {
			var err error
			if resume, err = shard.Part("1", c.resume); err != nil {
				t.Fatal(err)
			}
		}
		u := NewUnpacker(c.mode, "s", "1", shard.HashRange{}, resume)
		if c.filter != nil {
			u.Filter = &Filter{By: c.filter}
		}
		var runs []string
		for run, last := range u.Runs(&c.page, c.size) {
			text := names(run)
			if last {
				text = "[" + text + "]"
			}
			runs = append(runs, text)
		}
		if got := strings.Join(runs, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if got, some := u.Counted(); got != c.count || some != (c.count.Aggregates > 0) {
			t.Errorf("%s: %+v, %t, want %+v", c.name, got, some, c.count)
		}
		if got, want := u.Passes(&c.page), c.want != "" && c.want != "[]"; got != want {
			t.Errorf("%s: a record passes: %t", c.name, got)
		}
		u.Release()
	}
}

func TestAnUnpackerIsUsedAgain(t *testing.T) {
	u := new(Unpacker)
	pooled.Fill(u, "parsed") // package aggregate tests its own reset
	u.reset()
	for _, d := range pooled.Differences(u, new(Unpacker)) {
		t.Errorf("%s is not reset", d)
	}
}

func TestAFilterCountsAndDetaches(t *testing.T) {
	f := &Filter{By: decider{"1": Drop, "2": DropNotJSON, "3": PassNotJSON}}
	all := records(50, 50, 5, 5)
	var kept []source.Record
	for i := range all {
		if f.passes(&all[i]) {
			kept = append(kept, all[i])
		}
	}
	if names(kept) != "3 4" || f.Dropped != 1 || f.NotJSON != 2 {
		t.Errorf("%q pass, %+v", names(kept), f)
	}
	f.Detach(kept)
	all[2].Data[0] = 'x'
	if names(kept) != "3 4" {
		t.Error("a small part of a page keeps the page")
	}
	f.passes(&all[3])
	kept = all[3:]
	f.Detach(kept)
	if &kept[0].Data[0] != &all[3].Data[0] {
		t.Error("a large part of a page is copied")
	}
	var none *Filter
	if none.Detach(all); !none.passes(&all[0]) {
		t.Error("a filter that is not there drops records")
	}
}

// memory is a Share with the given number of free bytes.
type memory int

func (m *memory) TryTake(least, most int) int {
	if *m < memory(least) {
		return 0
	}
	*m -= memory(most)
	return most
}

func (m *memory) Give(n int) { *m += memory(n) }

// Runs are added one after the other. Each record has ten bytes of data, and its number has one
// byte.
func TestWhatIsGathered(t *testing.T) {
	type step struct {
		run   Run
		rest  string
		then  Then
		waits string
	}
	tens := records(10, 10, 10, 10, 10, 10)
	for _, c := range []struct {
		name   string
		size   Size
		memory memory
		steps  []step
	}{
		{"a run that is not full waits", Size{Records: 3}, 1000, []step{
			{Run{Records: tens[:1]}, "", Wait, "1"}, {Run{Records: tens[1:2]}, "", Wait, "1 2"}, {Run{Records: tens[2:4]}, "4", HandOver, "1 2 3"},
		}},
		{"by bytes", Size{Records: 9, Bytes: 25}, 1000, []step{
			{Run{Records: tens[:2]}, "", Wait, "1 2"}, {Run{Records: tens[2:4]}, "3 4", HandOver, "1 2"},
		}},
		{"a full run need not wait", Size{Records: 3}, 1000, []step{{Run{Records: tens[:3]}, "1 2 3", Direct, ""}}},
		{"nor the last one", Size{Records: 3}, 1000, []step{{Run{Records: tens[:1], Final: true}, "1", Direct, ""}}},
		{"nor one whose rest goes with the next", Size{Records: 3}, 1000, []step{{Run{Records: tens[:1], Whole: true}, "1", Direct, ""}}},
		{"the last run goes with what waits", Size{Records: 3}, 1000, []step{
			{Run{Records: tens[:1]}, "", Wait, "1"}, {Run{Records: tens[1:2], Final: true}, "", HandOver, "1 2"},
		}},
		{"the end goes with what waits", Size{Records: 3}, 1000, []step{{Run{Records: tens[:1]}, "", Wait, "1"}, {Run{Final: true}, "", HandOver, "1"}}},
		{"there is no memory", Size{Records: 3}, 10, []step{{Run{Records: tens[:1]}, "1", Direct, ""}}},
		{"there is no more memory", Size{Records: 3}, 15, []step{{Run{Records: tens[:1]}, "", Wait, "1"}, {Run{Records: tens[1:2]}, "2", HandOver, "1"}}},
	} {
		left := c.memory
		g := &Gathering{Share: &left, Size: c.size}
		for i, s := range c.steps {
			rest, then := g.Add(s.run)
			if names(rest) != s.rest || then != s.then || names(g.Records) != s.waits || g.Waits() != (s.waits != "") {
				t.Errorf("%s, step %d: rest %q, %d, %q waits; want %q, %d, %q", c.name, i, names(rest), then, names(g.Records), s.rest, s.then, s.waits)
			}
		}
		w := g.Take()
		if g.Give(w); left != c.memory || g.Waits() || !g.Due.IsZero() {
			t.Errorf("%s: %d bytes of %d are there after all was handed over", c.name, left, c.memory)
		}
	}
}

// Waiting records are copies, and their batch becomes due.
func TestWhatWaitsIsACopy(t *testing.T) {
	left, now := memory(1000), time.Unix(1e9, 0)
	g := &Gathering{Share: &left, Size: Size{Records: 3}}
	run := records(5)
	g.Add(Run{Records: run, Behind: time.Second})
	g.Due = now
	if run[0].Data[0] = 'x'; names(g.Records) != "1" || g.Behind != time.Second {
		t.Errorf("%q waits, %v behind", names(g.Records), g.Behind)
	}
	if g.IsDue(now.Add(-1)) || !g.IsDue(now) {
		t.Error("it is due at another time")
	}
	w := g.Take()
	if w.Fill('y'); names(w.Records) != "yyyyy" {
		t.Errorf("%q after the memory was filled", names(w.Records))
	}
	var none *Gathering
	if none.Waits() || none.IsDue(now) {
		t.Error("a gathering that is not there has a batch that waits")
	}
}
