package kcl

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestThere(t *testing.T) {
	all := ranged("0", top)
	for name, c := range map[string]struct {
		items  []Item
		starts Starts
		want   string // the leases and notes, or a part of the error
		fails  bool
	}{
		"positions, sub-sequence numbers and an end": {
			items: []Item{
				item(id(0), "SHARD_END", 0, all, Item{attrChildren: texts(id(1), id(2))}), item(id(1), "SHARD_END", 0, parents(id(0))),
				item(id(2), seqA, 41, parents(id(0)), all), item(id(3), "SHARD_END", 0), item(id(4), "TRIM_HORIZON", 0, parents(id(1), id(3))), item(id(5), seqB, 0),
			},
			want: `
0 end
3 end
5 ` + seqB + `+1
1 end
2 ` + seqA + `+42
4 oldest
`},
		"leases that the KCL has deleted, and a child that it has not made": {
			items: []Item{item(id(1), seqA, 0), item(id(3), seqA, 0), item(id(2), seqA, 0), item(id(5), "SHARD_END", 0)},
			want: `
0 end (no lease there, but a later shard has one: it was finished)
3 ` + seqA + `+1
5 end
1 ` + seqA + `+1
2 ` + seqA + `+1
4 oldest (no lease there yet: it begins after 1)
`},
		"a hole": {
			items: []Item{item(id(1), "SHARD_END", 0), item(id(2), seqA, 0), item(id(3), "SHARD_END", 0), item(id(4), seqA, 0)},
			want: `
0 end (no lease there, but a later shard has one: it was finished)
3 end
5 oldest (no lease there: nothing is skipped)
1 end
2 ` + seqA + `+1
4 ` + seqA + `+1
`},
		"LATEST and AT_TIMESTAMP": {
			items:  []Item{item(id(5), "LATEST", 0), item(id(4), "AT_TIMESTAMP", 0), item(id(2), "LATEST", 0)},
			starts: Starts{AtTimestamp: shard.Oldest, Latest: shard.At(now)}, // with a note
			want: `
0 end (no lease there, but a later shard has one: it was finished)
3 end (no lease there, but a later shard has one: it was finished)
5 2026-01-31T12:00:00.000Z (LATEST: no record was checkpointed)
1 end (no lease there, but a later shard has one: it was finished)
2 2026-01-31T12:00:00.000Z (LATEST: no record was checkpointed)
4 oldest (AT_TIMESTAMP, as --at says)
2 leases are at LATEST, where the KCL has checkpointed nothing: records from before 2026-01-31T12:00:00.000Z are skipped; if the KCL stopped earlier, give that time with --latest
`},
		"LATEST as an operator says": {
			items:  []Item{item(id(0), "LATEST", 0)},
			starts: Starts{Latest: shard.Oldest, LatestGiven: true},
			want: `
0 oldest (LATEST: no record was checkpointed)
3 oldest (no lease there: nothing is skipped)
5 oldest (no lease there: nothing is skipped)
1 oldest (no lease there yet: it begins after 0)
2 oldest (no lease there yet: it begins after 0)
4 oldest (no lease there: nothing is skipped)
`},
		"AT_TIMESTAMP without a time": {
			items: []Item{item(id(4), "AT_TIMESTAMP", 0), item(id(5), "AT_TIMESTAMP", 0)}, fails: true,
			want: "2 leases, such as shardId-000000000004, are of stream orders at AT_TIMESTAMP",
		},
		"a prepared checkpoint": {
			items: []Item{item(id(4), seqA, 0, Item{attrPending: text(seqB), attrPendingSub: number(2)}), item(id(2), seqA, 0), item(id(5), seqA, 0)},
			want: `
0 end (no lease there, but a later shard has one: it was finished)
3 end (no lease there, but a later shard has one: it was finished)
5 ` + seqA + `+1
1 end (no lease there, but a later shard has one: it was finished)
2 ` + seqA + `+1
4 ` + seqA + `+1
shardId-000000000004: the prepared checkpoint ` + seqB + `/2 was not committed and is dropped, with its state
`},
		"shards that are gone": {
			items: []Item{item(id(90), seqA, 0), item(id(91), "SHARD_END", 0), item(id(4), "TRIM_HORIZON", 0), item(id(2), seqA, 0), item(id(5), seqA, 0)},
			want: `
0 end (no lease there, but a later shard has one: it was finished)
3 end (no lease there, but a later shard has one: it was finished)
5 ` + seqA + `+1
1 end (no lease there, but a later shard has one: it was finished)
2 ` + seqA + `+1
4 oldest
shardId-000000000090: the shard has left the stream before it was read to its end (it was at ` + seqA + `): its last records are lost
`},
		"a child that was begun early": {
			items: []Item{item(id(0), "SHARD_END", 0), item(id(1), seqA, 0), item(id(3), "SHARD_END", 0), item(id(4), seqB, 0), item(id(2), seqA, 0), item(id(5), seqA, 0)},
			want: `
0 end
3 end
5 ` + seqA + `+1
1 ` + seqA + `+1
2 ` + seqA + `+1
4 ` + seqB + `+1
shardId-000000000004: it was begun before its parents were finished: weir finishes the parents first
`},
		"a recreated stream": {
			items: []Item{item(id(5), seqA, 0, ranged("0", below))}, fails: true, want: "hash range is 0-" + below + ", and that of the shard is 0-" + top,
		},
		"another stream": {
			items: []Item{item(id(70), seqA, 0), item(id(71), seqA, 0)}, fails: true, want: "stream orders has none of the 2 shards in the table",
		},
		"an empty table": {want: `
0 oldest (no lease there: nothing is skipped)
3 oldest (no lease there: nothing is skipped)
5 oldest (no lease there: nothing is skipped)
1 oldest (no lease there: nothing is skipped)
2 oldest (no lease there: nothing is skipped)
4 oldest (no lease there: nothing is skipped)
`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := There(read(t, c.items...).Leases, family(), c.starts)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want something with %q", err, c.want)
				}
				return
			}
			if got := planLines(p); err != nil || got != c.want[1:] {
				t.Fatalf("%v, got\n%swant%s", err, got, c.want)
			}
			for _, w := range p.Leases {
				if err := (lease.Action{Kind: lease.Create, Lease: w.Lease}).Check(); err != nil ||
					w.Lease.Born != 7000 {
					t.Errorf("%v, %s", err, w.Lease)
				}
			}
		})
	}
}

func TestSelectOneStream(t *testing.T) {
	one := read(t, item(id(0), seqA, 0))
	if got, err := Select(one, "anything"); err != nil || len(got) != 1 || StreamsOf(one) != nil {
		t.Errorf("%v, %v", got, err)
	}
	several := read(
		t,
		item("1:orders:17:"+id(0), seqA, 0),
		item("1:orders:18:"+id(0), seqA, 0),
		item("1:clicks:17:"+id(0), seqA, 0),
	)
	for name, want := range map[string]string{
		"clicks": "", "1:orders:17": "",
		"orders": "several streams of the name orders: name one as --stream, among 1:clicks:17, 1:orders:17, 1:orders:18",
		"views":  "no leases of stream views: it has those of 1:clicks:17",
	} {
		got, err := Select(several, name)
		if want == "" && (err != nil || len(got) != 1) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %d leases, %v", name, len(got), err)
		}
	}
}
