package dashboard

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-go/weir/shard"
)

func TestSomeOfTheHashKeysFillThePicture(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		keys, from shard.HashRange
		want       shard.HashRange
		gone       bool
	}{
		{"all of it", slice(0, 16), slice(3, 5), slice(3, 5), false},
		{"the first half", slice(0, 8), slice(0, 4), slice(0, 8), false},
		{"the second half", slice(8, 16), slice(8, 16), slice(0, 16), false},
		{"a part in the middle", slice(4, 8), slice(5, 6), slice(4, 8), false},
		{"what begins before it", slice(4, 8), slice(0, 5), slice(0, 4), false},
		{"what ends after it", slice(4, 8), slice(7, 12), slice(12, 16), false},
		{"what is around it", slice(4, 8), slice(0, 16), slice(0, 16), false},
		{"what is before it", slice(4, 8), slice(0, 4), shard.HashRange{}, true},
		{"what is after it", slice(4, 8), slice(8, 9), shard.HashRange{}, true},
	} {
		got := zoomed([]piece{{at: 7, hashes: c.from}}, c.keys)
		if c.gone {
			if len(got) != 0 {
				t.Errorf("%s: %v", c.name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].hashes != c.want || got[0].at != 7 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Zooming keeps neighbours adjacent for any range of keys.
func TestZoomingMakesNoHoles(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var pieces []piece
		at := shard.HashKey{Hi: rng.Uint64N(1 << 60), Lo: rng.Uint64()}
		keys := shard.HashRange{Start: at}
		for range 9 {
			end := shard.HashKey{Hi: at.Hi + rng.Uint64N(1<<58), Lo: rng.Uint64()}
			if end.Compare(at) < 0 {
				end = at
			}
			pieces = append(pieces, piece{hashes: shard.HashRange{Start: at, End: end}})
			keys.End, at = end, end.Next()
		}
		var ranges []shard.HashRange
		for _, p := range zoomed(pieces, keys) {
			if p.hashes.End.Compare(p.hashes.Start) < 0 {
				continue // the range had only a few keys
			}
			ranges = append(ranges, p.hashes)
		}
		if holes := shard.Holes(ranges); len(holes) != 0 {
			t.Fatalf("%v of %v has holes %v", ranges, pieces, holes)
		}
	}
}

func TestARectangleOfSeveralShardsOpens(t *testing.T) {
	t.Parallel()
	of := func(r shard.HashRange) (s shardInfo) { s.Range = r; return s }
	shards := []shardInfo{of(slice(2, 3)), of(slice(4, 6)), of(slice(3, 4))}
	v := view{app: "billing", stream: "orders", span: "5m", keys: everything}
	if _, opens := v.opened(shards, []int{1}); opens {
		t.Error("a shard of its own opens as several")
	}
	to, opens := v.opened(shards, []int{1, 0, 2})
	if !opens || to.keys != slice(2, 6) || to.span != "5m" {
		t.Errorf("%t, %v", opens, to)
	}
	if _, again := to.opened(shards, []int{1, 0, 2}); again {
		t.Error("it opens what it shows")
	}
	if got := to.within(append(shards, of(slice(6, 7)), of(slice(0, 16)), shardInfo{})); len(got) != 4 {
		t.Errorf("%d shards are within", len(got))
	}
	if link := v.link(); link != "app?app=billing&span=5m&stream=orders" {
		t.Error(link)
	}
	if link := to.link("page", "2"); link != "app?app=billing&keys="+slice(2, 6).String()+"&page=2&span=5m&stream=orders" {
		t.Error(link)
	}
}
