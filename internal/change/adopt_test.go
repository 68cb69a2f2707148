package change

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

func TestAdopt(t *testing.T) {
	l := func(id string, epoch uint64, position string) lease.Lease {
		return lease.Lease{
			Key:      key(id),
			Range:    shard.HashRange{End: shard.MaxHashKey},
			Epoch:    epoch,
			Position: at(t, position),
		}
	}
	had := func(l lease.Lease) lease.Lease { l.Last = "A"; return l }
	owned := func(l lease.Lease) lease.Lease { l.Last, l.Owner = "A", "A"; return l }
	for name, c := range map[string]struct {
		want    []Wanted
		there   []lease.Lease
		replace bool
		steps   string // or a part of the error
		fails   bool
	}{
		"an empty store": {want: []Wanted{{Lease: l("0", 1, "end")}, {Lease: l("1", 1, "17+3"), Why: "because"}}, steps: `
0 >end create@1
1 >17+3 create@1 (because)
`},
		"a second run": {want: []Wanted{{Lease: l("0", 1, "17")}}, there: []lease.Lease{l("0", 1, "17")}, steps: `
0 17>17 (it is there already)
`},
		"a second run with a later time for LATEST": {want: []Wanted{{Lease: l("0", 1, "2026-01-31T12:00:00Z")}}, there: []lease.Lease{l("0", 1, "2026-01-31T11:00:00Z")}, steps: `
0 2026-01-31T11:00:00.000Z>2026-01-31T12:00:00.000Z (it is there already)
`},
		"leases that a waiting application has made": {want: []Wanted{{Lease: l("0", 1, "17")}, {Lease: l("1", 1, "oldest")}}, there: []lease.Lease{l("0", 1, "latest"), l("1", 1, "end")}, steps: `
0 latest>17 move@1 (no worker ever had it)
1 end>oldest move@1 (no worker ever had it)
`},
		"the other client has read on": {want: []Wanted{{Lease: l("0", 1, "18")}}, there: []lease.Lease{had(l("0", 9, "17"))}, steps: `
0 17>18 move@9
`},
		"a dead worker has the lease": {want: []Wanted{{Lease: l("0", 1, "17")}}, there: []lease.Lease{owned(l("0", 9, "17"))}, steps: `
0 17>17 move@9
`},
		"newer progress": {want: []Wanted{{Lease: l("0", 1, "17")}, {Lease: l("1", 1, "5")}}, there: []lease.Lease{had(l("0", 9, "18")), had(l("1", 2, "end"))}, fails: true,
			steps: "ahead in 2 of these shards already, at 18 of s/0 instead of 17"},
		"newer progress, on request": {want: []Wanted{{Lease: l("0", 1, "17")}}, there: []lease.Lease{had(l("0", 9, "18"))}, replace: true, steps: `
0 18>17 move@9
`},
		"a time is ahead of the oldest record": {want: []Wanted{{Lease: l("0", 1, "oldest")}}, there: []lease.Lease{had(l("0", 9, "2026-01-31T11:00:00Z"))}, fails: true,
			steps: "ahead in 1 of these"},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			for _, there := range c.there {
				if _, err := store.Apply(t.Context(), "a", []lease.Action{{Kind: lease.Create, Lease: there}}); err != nil {
					t.Fatal(err)
				}
			}
			v, err := store.View(t.Context(), "a", "")
			if err != nil {
				t.Fatal(err)
			}
			steps, err := Adopt(c.want, v, c.replace)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.steps) || steps != nil {
					t.Errorf("%v, want something with %q", err, c.steps)
				}
				return
			}
			if got := lines(steps); err != nil || got != c.steps[1:] {
				t.Fatalf("%v, got\n%swant%s", err, got, c.steps)
			}
			for _, s := range steps {
				if did, err := store.Apply(t.Context(), "a", s.Actions); err != nil ||
					slices.Contains(did, false) {
					t.Fatalf("%s: %v, %v", s.Key, did, err)
				}
			}
			// A second run does nothing.
			if v, err = store.View(t.Context(), "a", ""); err != nil {
				t.Fatal(err)
			}
			again, err := Adopt(c.want, v, false)
			if err != nil ||
				slices.ContainsFunc(again, func(s Step) bool { return len(s.Actions) > 0 }) {
				t.Errorf("a second run would do something: %v\n%s", err, lines(again))
			}
		})
	}
}
