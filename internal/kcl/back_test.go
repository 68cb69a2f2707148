package kcl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func parse(t *testing.T, s string) shard.Position {
	t.Helper()
	p, err := shard.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// weirLeases creates leases from texts of the form "number position".
func weirLeases(t *testing.T, all ...string) (leases []lease.Lease) {
	t.Helper()
	for _, text := range all {
		var n int
		var at string
		if _, err := fmt.Sscan(text, &n, &at); err != nil {
			t.Fatal(err)
		}
		leases = append(
			leases,
			lease.Lease{
				Key:      lease.Key{Stream: "orders", Shard: id(n)},
				Epoch:    3,
				Position: parse(t, at),
				Range:    shard.HashRange{End: shard.MaxHashKey},
			},
		)
	}
	return leases
}

func returnLines(r Return) string {
	var b strings.Builder
	for _, w := range r.Writes {
		what := fmt.Sprintf("over %s", w.Was)
		switch {
		case w.New:
			what = "new"
		case w.Stays:
			what = "stays"
		}
		fmt.Fprintf(&b, "%s %s %s", short(w.Lease.Shard), w.Lease.At, what)
		if len(w.Lease.Children) > 0 {
			b.WriteString(" children")
			for _, c := range w.Lease.Children {
				b.WriteString(" " + short(c))
			}
		}
		if w.Why != "" {
			fmt.Fprintf(&b, " (%s)", w.Why)
		}
		b.WriteString("\n")
	}
	for _, n := range r.Notes {
		b.WriteString(n + "\n")
	}
	return b.String()
}

func TestBack(t *testing.T) {
	full := []string{"0 end", "1 end", "2 " + seqA + "+42", "3 end", "4 oldest", "5 " + seqB}
	pending := Item{attrPending: text(seqA), attrPendingSub: number(0)}
	fresh := Item{attrCounter: number(0)}
	for name, c := range map[string]struct {
		ours    []string
		have    []Item
		at      string
		replace bool
		change  func(*change.Stream)
		want    string
		fails   bool
	}{
		"into an empty table": {ours: full, want: `
0 SHARD_END new children 1 2
3 SHARD_END new children 4
5 ` + seqB + `/2147483647 new
1 SHARD_END new children 4
2 ` + seqA + `/41 new
4 TRIM_HORIZON new
`},
		"a second run, an older checkpoint, an owner, a prepared checkpoint": {ours: full, have: []Item{
			item(id(0), "SHARD_END", 0), item(id(1), "SHARD_END", 0, ownedBy("dead")), item(id(2), seqA, 3), item(id(5), seqB, WholeSub, pending),
		}, want: `
0 SHARD_END stays children 1 2 (it is there already)
3 SHARD_END new children 4
5 ` + seqB + `/2147483647 over ` + seqB + `/2147483647
1 SHARD_END over SHARD_END children 4
2 ` + seqA + `/41 over ` + seqA + `/3
4 TRIM_HORIZON new
`},
		"newer progress in the table": {ours: full, have: []Item{item(id(2), seqB, 0)}, fails: true, want: "ahead in 1 of these shards already, at " + seqB + " of " + id(2)},
		"newer progress, on request": {ours: full[2:3], have: []Item{item(id(2), seqB, 0)}, replace: true, want: `
0 SHARD_END new children 1 2 (no lease there, but a later shard has one: it was finished)
3 TRIM_HORIZON new (no lease there: nothing is skipped)
5 TRIM_HORIZON new (no lease there: nothing is skipped)
2 ` + seqA + `/41 over ` + seqB + `
`},
		"a shard at its end in the table": {ours: full, have: []Item{item(id(2), "SHARD_END", 0)}, fails: true, want: "at SHARD_END of " + id(2)},
		"a sentinel is no progress, and a new lease neither": {ours: full, have: []Item{item(id(4), "LATEST", 0), item(id(2), seqB, 0, fresh)}, want: `
0 SHARD_END new children 1 2
3 SHARD_END new children 4
5 ` + seqB + `/2147483647 new
1 SHARD_END new children 4
2 ` + seqA + `/41 over ` + seqB + ` (no worker ever had it)
4 TRIM_HORIZON over LATEST
`},
		"times need --at": {ours: []string{"2 2026-01-31T11:00:00Z", "5 2026-01-31T10:00:00Z", "9 2026-01-31T09:00:00Z"}, fails: true,
			want: "the positions of 2 leases of stream orders are times, and the KCL's table cannot store times; the earliest is 2026-01-31T10:00:00.000Z, in shard " + id(5)},
		"a later --at": {ours: []string{"5 2026-01-31T10:00:00Z"}, at: "2026-01-31T10:00:01Z", fails: true, want: "give --at 2026-01-31T10:00:00.000Z"},
		"times as told": {ours: []string{"4 2026-01-31T11:00:00Z", "2 end", "5 2026-01-31T10:00:00Z"}, at: "2026-01-31T10:00:00Z", want: `
0 SHARD_END new children 1 2 (no lease there, but a later shard has one: it was finished)
3 SHARD_END new children 4 (no lease there, but a later shard has one: it was finished)
5 AT_TIMESTAMP new (set the KCL's initial position to 2026-01-31T10:00:00.000Z)
1 SHARD_END new children 4 (no lease there, but a later shard has one: it was finished)
2 SHARD_END new
4 AT_TIMESTAMP new (set the KCL's initial position to 2026-01-31T10:00:00.000Z)
`},
		"times as the oldest": {ours: []string{"5 2026-01-31T10:00:00Z", "4 " + seqA, "2 " + seqA}, at: "oldest", want: `
0 SHARD_END new children 1 2 (no lease there, but a later shard has one: it was finished)
3 SHARD_END new children 4 (no lease there, but a later shard has one: it was finished)
5 TRIM_HORIZON new (a time: all records are read again, as --at says)
1 SHARD_END new children 4 (no lease there, but a later shard has one: it was finished)
2 ` + seqA + `/2147483647 new
4 ` + seqA + `/2147483647 new
`},
		"the table of another stream": {ours: full, have: []Item{item(id(5), "SHARD_END", 0, ranged("0", below))}, fails: true, want: "not about stream orders"},
		"before a record":             {ours: []string{"5 " + seqA + "+0"}, fails: true, want: "before a record, which the KCL cannot store"},
		"a merge whose other parent has left, and a shard that was lost": {ours: []string{"1 " + seqA, "2 oldest", "5 oldest", "7 " + seqA},
			change: func(s *change.Stream) { s.Shards = append(s.Shards[:2:2], s.Shards[3:5]...) }, want: `
3 SHARD_END new children 4 (its shard has left the stream, and the merge needs it)
1 ` + seqA + `/2147483647 new
2 TRIM_HORIZON new
5 TRIM_HORIZON new
shardId-000000000007: the shard has left the stream before it was read to its end (it was at ` + seqA + `): its last records are lost
`},
		"a finished lease whose shard has left": {ours: []string{"3 end", "1 " + seqA, "2 oldest", "5 oldest"},
			change: func(s *change.Stream) { s.Shards = append(s.Shards[:2:2], s.Shards[3:5]...) }, want: `
3 SHARD_END new children 4
1 ` + seqA + `/2147483647 new
2 TRIM_HORIZON new
5 TRIM_HORIZON new
`},
		"a single hash key": {ours: []string{"5 oldest"},
			change: func(s *change.Stream) {
				s.Shards = s.Shards[:1]
				s.Shards[0].Range = shard.HashRange{Start: shard.MaxHashKey, End: shard.MaxHashKey}
			}, want: `
5 TRIM_HORIZON new
shardId-000000000005: it has a single hash key, and the KCL refuses such a range: the lease has no hash range
`},
	} {
		t.Run(name, func(t *testing.T) {
			s := family()
			if c.change != nil {
				c.change(&s)
			}
			r, err := Back(
				weirLeases(t, c.ours...),
				s,
				StreamID{},
				read(t, c.have...).Leases,
				parse(t, c.at),
				c.replace,
			)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want something with %q", err, c.want)
				}
				return
			}
			if got := returnLines(r); err != nil || got != c.want[1:] {
				t.Fatalf("%v, got\n%swant%s", err, got, c.want)
			}
			if found := Unwritten(r.Writes, written(t, r, c.have)); len(found) > 0 {
				t.Errorf("after the writes: %q", found)
			}
		})
	}
}

// written returns the table after the writes of a plan.
func written(t *testing.T, r Return, have []Item) Table {
	t.Helper()
	items := map[string]Item{}
	for _, it := range have {
		items[it[attrKey].Text] = it
	}
	for _, w := range r.Writes {
		switch {
		case w.New:
			items[w.Lease.Key] = w.Item()
		case !w.Stays:
			it := items[w.Lease.Key]
			for name, v := range w.Sets() {
				it[name] = v
			}
			for _, name := range Removes {
				delete(it, name)
			}
		}
	}
	var all []Item
	for _, it := range items {
		all = append(all, it)
	}
	return read(t, all...)
}

// Each position is the same after a move from weir to the KCL, back, and to the KCL again. This
// holds for the table of one stream and for the table of several.
func TestRoundTrip(t *testing.T) {
	leases := weirLeases(t, "0 end", "1 end", "2 "+seqA+"+42", "3 end", "4 oldest", "5 "+seqB)
	for _, stream := range []StreamID{{}, {"123456789012", "orders", 1690000000}} {
		r, err := Back(leases, family(), stream, nil, shard.Position{}, false)
		if err != nil {
			t.Fatal(err)
		}
		table := written(t, r, nil)
		for _, l := range table.Leases {
			if l.Stream != stream || l.Counter != 0 || l.Worker() != "" || l.Range == nil {
				t.Errorf("written as %+v", l)
			}
		}
		found, err := Select(table, "orders")
		if err != nil {
			t.Fatal(err)
		}
		p, err := There(found, family(), Starts{})
		if err != nil || len(p.Leases) != len(leases) || len(p.Notes) > 0 {
			t.Fatalf("%d leases come back, %v, %q", len(p.Leases), err, p.Notes)
		}
		var again []lease.Lease
		for _, w := range p.Leases {
			again = append(again, w.Lease)
			for _, l := range leases {
				if l.Key == w.Lease.Key && l.Position != w.Lease.Position {
					t.Errorf("%s comes back at %s", l, w.Lease.Position)
				}
			}
		}
		r, err = Back(again, family(), stream, found, shard.Position{}, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range r.Writes {
			if !w.Stays {
				t.Errorf("%s would be written again", w.Lease.Key)
			}
		}
	}
}
