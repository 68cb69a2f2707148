package change

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

func TestRestore(t *testing.T) {
	l := func(id string, epoch uint64, position string) lease.Lease {
		return lease.Lease{Key: key(id), Range: shard.HashRange{End: shard.MaxHashKey}, Epoch: epoch, Position: at(t, position)}
	}
	noted := func(l lease.Lease) lease.Lease {
		l.Deaths = lease.Deaths{At: l.Position, Beyond: "a", Since: l.Epoch}.String()
		return l
	}
	owned := func(l lease.Lease) lease.Lease { l.Owner = "A"; return l }
	for name, c := range map[string]struct {
		file, there []lease.Lease
		replace     bool
		want        string // the steps, or a part of the error
		fails       bool
	}{
		"into an empty store": {file: []lease.Lease{l("0", 7, "17"), l("1", 1, "end")}, want: `
0 >17 create@7
1 >end create@1
`},
		"once more": {file: []lease.Lease{l("0", 7, "17"), l("1", 1, "end")}, there: []lease.Lease{l("0", 7, "17"), l("1", 1, "end")}, want: `
0 17>17 (it is there already)
1 end>end (it is there already)
`},
		"after it was cut off": {file: []lease.Lease{l("0", 7, "17"), l("1", 1, "18")}, there: []lease.Lease{l("0", 7, "17")}, want: `
0 17>17 (it is there already)
1 >18 create@1
`},
		"over another position": {file: []lease.Lease{l("0", 7, "17")}, there: []lease.Lease{l("0", 9, "16"), l("1", 1, "3")}, fails: true,
			want: "1 of these leases already, s/0 at 16"},
		"over another position on request": {file: []lease.Lease{l("0", 7, "17")}, there: []lease.Lease{l("0", 9, "16"), l("1", 1, "3")}, replace: true, want: `
0 16>17 move@9
`},
		"over a lease with an owner": {file: []lease.Lease{l("0", 7, "17")}, there: []lease.Lease{owned(l("0", 9, "17"))}, fails: true,
			want: "1 of these leases already, s/0 at 17"},
		"over notes about the same position": {file: []lease.Lease{l("0", 7, "17")}, there: []lease.Lease{noted(l("0", 9, "17"))}, replace: true, want: `
0 17>17 move@9
`},
		"over lower epochs, which sinks would refuse": {file: []lease.Lease{l("0", 7, "17")}, there: []lease.Lease{owned(l("0", 2, "16"))}, replace: true, want: `
0 16>17 move@2 replace@7
`},
		"the same place at a lower epoch": {file: []lease.Lease{l("0", 7, "17")}, there: []lease.Lease{l("0", 2, "17")}, replace: true, want: `
0 17>17 move@2 replace@7
`},
		"an epoch that is one too low": {file: []lease.Lease{l("0", 8, "17")}, there: []lease.Lease{l("0", 6, "16")}, replace: true, want: `
0 16>17 move@6 replace@8
`},
		"the next epoch is enough": {file: []lease.Lease{l("0", 7, "17")}, there: []lease.Lease{l("0", 6, "16")}, replace: true, want: `
0 16>17 move@6
`},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := Restore(c.file, lease.View{Leases: c.there}, c.replace)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.want) || steps != nil {
					t.Errorf("%v, want something with %q", err, c.want)
				}
				return
			}
			if got := lines(steps); err != nil || got != c.want[1:] {
				t.Fatalf("%v, got\n%swant%s", err, got, c.want)
			}
			// The steps have the described effect. A second restore has nothing to do.
			store := memstore.New()
			for _, there := range c.there {
				if _, err := store.Apply(t.Context(), "a", []lease.Action{{Kind: lease.Create, Lease: there}}); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range steps {
				if did, err := store.Apply(t.Context(), "a", s.Actions); err != nil || slices.Contains(did, false) {
					t.Fatalf("%s: %v, %v", s.Key, did, err)
				}
			}
			v, err := store.View(t.Context(), "a", "")
			if err != nil {
				t.Fatal(err)
			}
			again, err := Restore(c.file, v, false)
			if err != nil || slices.ContainsFunc(again, func(s Step) bool { return len(s.Actions) > 0 }) {
				t.Errorf("it would do something again: %v\n%s", err, lines(again))
			}
			for _, s := range steps {
				if !s.Happened(v) {
					t.Errorf("%s does not count as done", s.Key)
				}
			}
		})
	}
}
