package group

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestUnwantedLeases(t *testing.T) {
	l := func(id string, epoch uint64, at shard.Position, parents ...string) lease.Lease {
		return lease.Lease{Key: lease.Key{Stream: "s", Shard: id}, Epoch: epoch, Position: at, Parents: parents}
	}
	part := func(l lease.Lease, from, to uint64) lease.Lease {
		l.Range = shard.HashRange{Start: shard.HashKey{Lo: from}, End: shard.HashKey{Lo: to}}
		return l
	}
	latest := shard.Latest
	for name, c := range map[string]struct {
		shards            []string
		missing, existing []lease.Lease
		want              string // the wanted leases, a bar, the unwanted ones
	}{
		"all": {missing: []lease.Lease{l("1", 1, latest), l("2", 1, latest)}, want: "1 latest, 2 latest |"},
		"a chosen shard and its descendants": {
			shards: []string{"1"}, missing: []lease.Lease{l("1", 1, latest), l("2", 1, latest), l("3", 1, shard.Oldest, "1"), l("4", 1, shard.Oldest, "2"), l("5", 1, shard.Oldest, "4", "3")},
			want: "1 latest, 3 oldest, 5 oldest | 2 end, 4 end",
		},
		"the child of a shard that was marked as finished": {
			shards: []string{"1"}, existing: []lease.Lease{l("1", 7, shard.End), l("2", 1, shard.End)},
			missing: []lease.Lease{l("3", 1, shard.Oldest, "1"), l("4", 1, shard.Oldest, "2")}, want: "3 oldest | 4 end",
		},
		"a chosen shard that ended before the start": {
			shards: []string{"1"}, existing: []lease.Lease{l("1", 1, shard.End)}, missing: []lease.Lease{l("3", 1, latest, "1")}, want: "3 latest |",
		},
		"a descendant of a chosen shard, both of which ended before the start": {
			shards: []string{"1"}, existing: []lease.Lease{l("3", 1, shard.End, "1"), l("1", 1, shard.End)}, missing: []lease.Lease{l("5", 1, latest, "3")}, want: "5 latest |",
		},
		"shards whose parents came and left without a lease": {
			shards: []string{"1"}, existing: []lease.Lease{part(l("1", 7, shard.End), 0, 9), part(l("2", 1, shard.End), 10, 19)},
			missing: []lease.Lease{part(l("5", 1, shard.Oldest, "3"), 5, 7), part(l("6", 1, shard.Oldest, "4"), 10, 19), part(l("7", 1, shard.Oldest, "4", "5"), 8, 15)},
			want:    "5 oldest, 7 oldest | 6 end",
		},
		"an ancestor of the chosen shard": {
			shards: []string{"2"}, existing: []lease.Lease{part(l("2", 1, latest, "1"), 0, 9)}, missing: []lease.Lease{part(l("1", 1, shard.Oldest, "0"), 0, 19)}, want: "| 1 end",
		},
		"a shard that was begun before the choice": {
			shards: []string{"1"}, existing: []lease.Lease{l("1", 2, latest), l("2", 1, latest)}, missing: []lease.Lease{l("4", 1, shard.Oldest, "2")}, want: "4 oldest |",
		},
		"no shard of the choice": {shards: []string{"9"}, missing: []lease.Lease{l("1", 1, latest)}, want: "| 1 end"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, unwanted := Config{Shards: c.shards}.unwanted(c.missing, c.existing)
			text := func(all []lease.Lease) string {
				var parts []string
				for _, l := range all {
					parts = append(parts, l.Shard+" "+l.Position.String())
				}
				return strings.Join(parts, ", ")
			}
			if got := strings.TrimSpace(text(wanted) + " | " + text(unwanted)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestARecreatedStreamKeepsTheChoice(t *testing.T) {
	replace := func(id string, epoch uint64) lease.Action {
		return lease.Action{Kind: lease.Replace, Key: lease.Key{Stream: "s", Shard: id}, Epoch: epoch}
	}
	listing := Listing{Shards: []shard.Shard{{ID: "1"}, {ID: "2"}, {ID: "3", Parents: []string{"1"}}, {ID: "4", Parents: []string{"2"}}}}
	got := Config{Shards: []string{"1"}}.dropUnwanted([]lease.Action{replace("1", 1), replace("2", 1), replace("3", 4), replace("4", 6)}, listing)
	if got[0].Kind != lease.Replace || got[1].Kind != lease.Delete || got[1].Epoch != 1 || got[2].Kind != lease.Replace || got[3].Kind != lease.Delete {
		t.Errorf("%v", got)
	}
	old := lease.Lease{Key: lease.Key{Stream: "s", Shard: "2"}, Epoch: 5, Position: shard.Oldest, Born: 1}
	child := lease.Lease{Key: lease.Key{Stream: "s", Shard: "4"}, Parents: []string{"2"}, Epoch: 1, Position: shard.Oldest, Born: 2}
	if wanted, _ := (Config{Shards: []string{"1"}}).unwanted([]lease.Lease{child}, []lease.Lease{old}); len(wanted) > 0 {
		t.Errorf("a lease of the deleted stream decides about %v", wanted)
	}
}
