package lineage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A sink that is behind gets its missing records again. The leases move back in the right order.
func TestSetBack(t *testing.T) {
	at := func(seq string) shard.Position {
		p, err := shard.After(seq)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	one := func(id string, position shard.Position, parents ...string) lease.Lease {
		return lease.Lease{Key: lease.Key{Stream: "s", Shard: id}, Parents: parents, Position: position, Epoch: 7}
	}
	behind, caughtUp := answer{at: at("5"), unread: true}, answer{at: at("9")}
	for _, c := range []struct {
		name    string
		leases  []lease.Lease
		answers map[string]answer
		of      string
		want    string // the expected moves
		waits   bool
	}{
		{"a shard without parents", []lease.Lease{one("a", shard.Oldest)}, nil, "a", "", false},
		{"the sink has the parent to its end", []lease.Lease{one("a", shard.End), one("b", shard.Oldest, "a")},
			map[string]answer{"a": {at: shard.End}}, "b", "", false},
		{"the sink has the last record of the parent", []lease.Lease{one("a", shard.End), one("b", shard.Oldest, "a")},
			map[string]answer{"a": caughtUp}, "b", "", false},
		{"the sink knows nothing of anything", []lease.Lease{one("a", shard.End), one("b", at("20"), "a")},
			nil, "b", "", false},
		{"the parent has left the stream", []lease.Lease{one("b", at("20"), "a")}, map[string]answer{"a": behind}, "b", "", false},
		{"the sink is behind in the parent, the child was not begun", []lease.Lease{one("a", shard.End), one("b", shard.Oldest, "a")},
			map[string]answer{"a": behind}, "b", "a to 5", true},
		{"the sink is behind in the parent and has nothing of the child", []lease.Lease{one("a", shard.End), one("b", at("20"), "a")},
			map[string]answer{"a": behind}, "b", "a to 5, b to oldest", true},
		{"the sink is behind in the parent and has some of the child", []lease.Lease{one("a", shard.End), one("b", at("20"), "a")},
			map[string]answer{"a": behind, "b": {at: at("15")}}, "b", "a to 5", true},
		{"the parent was set back already", []lease.Lease{one("a", at("5")), one("b", at("20"), "a")},
			map[string]answer{"a": behind}, "b", "b to oldest", true},
		{"the sink is behind in a grandparent", []lease.Lease{one("a", shard.End), one("b", shard.End, "a"), one("c", at("30"), "b")},
			map[string]answer{"a": behind}, "c", "a to 5, b to oldest, c to oldest", true},
		{"a grandparent was set back, and then the worker died", []lease.Lease{one("a", at("5")), one("b", shard.End, "a"), one("c", at("30"), "b")},
			map[string]answer{"a": behind}, "c", "b to oldest, c to oldest", true},
		{"the sink has none of a parent's records", []lease.Lease{one("a", shard.End), one("b", shard.Oldest, "a")},
			map[string]answer{"a": {at: shard.Oldest, unread: true}}, "b", "a to oldest", true},
		{"a merge, behind in one parent", []lease.Lease{one("a", shard.End), one("b", shard.End), one("c", at("30"), "a", "b")},
			map[string]answer{"a": caughtUp, "b": behind}, "c", "b to 5, c to oldest", true},
		{"a diamond, behind at its top", []lease.Lease{one("a", shard.End), one("b", shard.End, "a"), one("c", shard.End, "a"), one("d", at("40"), "b", "c")},
			map[string]answer{"a": behind}, "d", "a to 5, b to oldest, c to oldest, d to oldest", true},
		{"the sink has none of the parent, in which nothing was, and is behind in the grandparent",
			[]lease.Lease{one("a", shard.End), one("b", shard.End, "a"), one("c", at("30"), "b")},
			map[string]answer{"a": behind, "b": {at: shard.Oldest}, "c": {at: shard.Oldest}}, "c", "a to 5, b to oldest, c to oldest", true},
		{"the sink has none of the parent, in which something was, and is behind in the grandparent",
			[]lease.Lease{one("a", shard.End), one("b", shard.End, "a"), one("c", at("30"), "b")},
			map[string]answer{"a": behind, "b": {at: shard.Oldest, unread: true}, "c": {at: shard.Oldest}}, "c", "a to 5, b to oldest, c to oldest", true},
		{"the sink has all of a grandparent, none of the parent", []lease.Lease{one("a", shard.End), one("b", shard.End, "a"), one("c", at("30"), "b")},
			map[string]answer{"a": caughtUp, "b": {unread: true}}, "c", "b to oldest, c to oldest", true},
		{"the sink has all of a grandparent, and the parent had no records", []lease.Lease{one("a", shard.End), one("b", shard.End, "a"), one("c", at("30"), "b")},
			map[string]answer{"a": caughtUp, "b": {}}, "c", "", false},
		{"a lineage in a circle", []lease.Lease{one("a", shard.End, "b"), one("b", shard.End, "a")}, nil, "a", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			leases := map[string]lease.Lease{}
			for _, l := range c.leases {
				leases[l.Shard] = l
			}
			moves, waits := setBack(leases, c.of, c.answers)
			var got []string
			for _, m := range moves {
				if m.Kind != lease.Move || m.Epoch != 7 {
					t.Errorf("%v", m)
				}
				got = append(got, fmt.Sprintf("%s to %s", m.Key.Shard, m.Position))
			}
			for _, l := range c.leases {
				knownAbove(leases, l.Shard, c.answers) // must end
			}
			if s := strings.Join(got, ", "); s != c.want || waits != c.waits {
				t.Errorf("moves %q and waits %v, want %q and %v", s, waits, c.want, c.waits)
			}
		})
	}
}

// If the sink has no position in a shard, but a position in an ancestor, the shard is read from its
// beginning. Without a position in an ancestor, it is read from the position of its lease.
func TestKnownAbove(t *testing.T) {
	leases := map[string]lease.Lease{"a": {}, "b": {Parents: []string{"a"}}, "c": {Parents: []string{"b", "x"}}}
	known := answer{at: shard.End}
	for _, c := range []struct {
		of      string
		answers map[string]answer
		want    bool
	}{
		{"a", map[string]answer{"a": known}, false}, {"b", nil, false}, {"b", map[string]answer{"a": known}, true},
		{"c", map[string]answer{"a": known}, true}, {"c", map[string]answer{"x": known}, true}, {"c", map[string]answer{"c": known}, false},
	} {
		if got := knownAbove(leases, c.of, c.answers); got != c.want {
			t.Errorf("%s with %v: %v", c.of, c.answers, got)
		}
	}
}
