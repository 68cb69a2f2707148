package foreign

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestThere(t *testing.T) {
	tip := Starts{Initial: shard.Latest, Tip: shard.At(now)}
	for name, c := range map[string]struct {
		client Client
		rows   []string
		starts Starts
		want   string // the leases and notes, or a part of the error
		fails  bool
	}{
		"positions and ends": {
			client: VMware, starts: tip, rows: []string{"0 end", "1 end", "2 " + seqA, "3 end", "4 " + seqB, "5 " + seqA, "6 end"}, want: `
0 end
3 end
5 ` + seqA + `
6 end
1 end
2 ` + seqA + `
4 ` + seqB + `
`},
		"no positions, vmware at LATEST": {client: VMware, starts: tip, rows: []string{"0 none"}, want: `
0 end (no position, and it is closed: LATEST is its end)
3 end (no position, and it is closed: LATEST is its end)
5 2026-01-31T12:00:00.000Z (no position)
6 end (no position, and it is closed: LATEST is its end)
1 oldest (no position: vmware-go-kcl would skip its records)
2 oldest (no position: vmware-go-kcl would skip its records)
4 oldest (no position: vmware-go-kcl would skip its records)
1 shard is without a position: records from before 2026-01-31T12:00:00.000Z are skipped; another place can be given with --latest
`},
		"no positions, vmware at the oldest record": {client: VMware, starts: Starts{Initial: shard.Oldest}, rows: []string{"4 " + seqA, "3 end"}, want: `
0 oldest (no position: --initial)
3 end
5 oldest (no position: --initial)
6 oldest (no position: --initial)
1 oldest (no position: --initial)
2 oldest (no position: --initial)
4 ` + seqA + `
` + id(4) + `: it was begun before its parents were finished: weir finishes the parents first
`},
		"a later shard shows that harlow has finished its ancestors": {client: Harlow, starts: tip, rows: []string{"0 " + seqA, "4 " + seqB}, want: `
0 end (a later shard has a position: it was finished)
3 end (a later shard has a position: it was finished)
5 2026-01-31T12:00:00.000Z (no position)
6 end (no position, and it is closed: LATEST is its end)
1 end (a later shard has a position: it was finished)
2 oldest (no position: harlow/kinesis-consumer would skip its records)
4 ` + seqB + `
` + id(0) + `: its position ` + seqA + ` counts as its end, because a later shard has a position too; move it back with "weir group reset --shard" if it was not finished
1 shard is without a position: records from before 2026-01-31T12:00:00.000Z are skipped; another place can be given with --latest
`},
		"kinsumer reads children beside their parents": {client: Kinsumer, starts: tip, rows: []string{"0 " + seqA, "2 " + seqB, "5 latest"}, want: `
0 ` + seqA + `
3 oldest (no position: nothing is skipped)
5 2026-01-31T12:00:00.000Z (LATEST, as the row says)
6 oldest (no position: nothing is skipped)
1 oldest (no position: nothing is skipped)
2 ` + seqB + `
4 oldest (no position: nothing is skipped)
` + id(2) + `: it was begun before its parents were finished: weir finishes the parents first
1 shard is without a position: records from before 2026-01-31T12:00:00.000Z are skipped; another place can be given with --latest
`},
		"lifion begins roots at the tip, and would skip records of children": {client: Lifion, starts: tip, rows: []string{"2 oldest", "4 none"}, want: `
0 end (a later shard has a position: it was finished)
3 oldest (no position: nothing is skipped)
5 2026-01-31T12:00:00.000Z (no position)
6 oldest (no position: nothing is skipped)
1 oldest (no position: lifion would skip its records)
2 oldest (not begun)
4 oldest (no position: lifion would skip its records)
1 shard is without a position: records from before 2026-01-31T12:00:00.000Z are skipped; another place can be given with --latest
`},
		"shards that are gone": {client: Kinsumer, rows: []string{"90 " + seqA, "91 end", "0 end", "1 end", "2 end", "3 end", "4 end", "5 end", "6 end"}, want: `
0 end
3 end
5 end
6 end
1 end
2 end
4 end
1 shard with a position has left the stream, and is ignored: if such a shard was not read to its end, its last records are lost
`},
		"rows of another stream": {client: VMware, rows: []string{"90 end"}, fails: true, want: "stream orders has none of the 1 shards in the table"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := There(c.client, rows(t, c.rows...), family(), c.starts)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				return
			}
			if got := planLines(p); err != nil || got != c.want[1:] {
				t.Errorf("%v, got\n%swant%s", err, got, c.want)
			}
			for _, w := range p.Leases {
				if w.Lease.Born != 7000 || w.Lease.Epoch != 1 || w.Lease.Position.IsZero() {
					t.Errorf("the lease %+v", w.Lease)
				}
			}
		})
	}
}

func TestPositionsMoveBack(t *testing.T) {
	plan, err := There(VMware, rows(t, "0 end", "2 "+seqA, "4 "+seqB, "5 "+seqA), family(), Starts{Initial: shard.Oldest})
	if err != nil {
		t.Fatal(err)
	}
	key := func(n int) lease.Key { return lease.Key{Stream: "orders", Shard: id(n)} }
	seen := map[lease.Key]change.Seen{key(2): {Arrived: now}, key(4): {Arrived: now.Add(-time.Hour)}}
	at := func(p change.Plan, n int) string {
		for _, w := range p.Leases {
			if w.Lease.Shard == id(n) {
				return w.Lease.Position.String()
			}
		}
		return "none"
	}
	// Shard 4 is before that time already, and the record of shard 5 is unknown.
	back := Rewind(plan, seen, now.Add(-time.Minute))
	if at(back, 0) != "end" || at(back, 2) != "2026-01-31T11:59:00.000Z" || at(back, 4) != seqB || at(back, 5) != seqA {
		t.Error(planLines(back))
	}
	again, err := Again(plan)
	if err != nil || at(again, 0) != "end" || at(again, 2) != seqA+"+0" || at(plan, 2) != seqA {
		t.Errorf("%v, %s", err, planLines(again))
	}
}
