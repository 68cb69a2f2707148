package group

import (
	"log/slog"
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
			var listing Listing
			for _, l := range c.missing {
				listing.Shards = append(listing.Shards, shard.Shard{ID: l.Shard, Parents: l.Parents, Range: l.Range})
			}
			wanted, unwanted := divide(c.missing, Config{Shards: c.shards}.chosen(listing, c.existing))
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

// The leases of a deleted stream do not decide which shards of the new stream are read. Their
// shards count as ancestors as the new stream has them, before the leases are replaced.
func TestARecreatedStreamKeepsTheChoice(t *testing.T) {
	of := func(id string, epoch uint64) lease.Lease {
		return lease.Lease{Key: lease.Key{Stream: "s", Shard: id}, Epoch: epoch, Position: shard.Oldest, Born: 1}
	}
	owned := of("2", 5)
	owned.Owner = "a"
	existing := []lease.Lease{of("1", 1), owned, of("3", 4), of("4", 6)}
	listing := Listing{Born: 2, Shards: []shard.Shard{
		{ID: "1"}, {ID: "2"}, {ID: "3", Parents: []string{"1"}}, {ID: "4", Parents: []string{"2"}}, {ID: "5", Parents: []string{"3"}}, {ID: "6", Parents: []string{"4"}},
	}}
	cfg := Config{Shards: []string{"1"}, Log: slog.New(slog.DiscardHandler)}
	for _, deputy := range []bool{false, true} {
		s := newListings([]string{"s"})
		s.deputy = deputy
		s.streams["s"].latest = &listing
		replaced := map[string]shard.Position{}
		for _, a := range s.actions(lease.View{Leases: existing, Workers: []lease.Worker{{Session: "a"}}}, lease.Facts{}, cfg) {
			id := a.Key.Shard
			switch a.Kind {
			case lease.Create:
				if a.Lease.Born != 2 || a.Lease.Position.IsEnd() != (a.Lease.Shard == "6") {
					t.Errorf("deputy %t: it creates %+v", deputy, a.Lease)
				}
				replaced[a.Lease.Shard] = a.Lease.Position
			case lease.Replace:
				if wants := id == "1" || id == "3"; a.Lease.Position.IsEnd() == wants || (a.Lease.Born == 2) != wants {
					t.Errorf("deputy %t: it replaces %+v", deputy, a.Lease)
				}
				replaced[id] = a.Lease.Position
			case lease.Delete:
				if id != "4" {
					t.Errorf("deputy %t: it deletes %s", deputy, id)
				}
			}
		}
		if _, did := replaced["2"]; did != deputy || len(replaced) < 4 {
			t.Errorf("deputy %t: it replaces or creates %v", deputy, replaced)
		}
	}
}
