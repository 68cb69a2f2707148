package dashboard

import (
	"math/big"
	"slices"

	"github.com/weir-go/weir/shard"
)

// view is the selected part of an application. The links of a page contain it.
type view struct {
	app, stream, span, by string
	keys                  shard.HashRange // the selected range of hash keys
}

var everything = shard.HashRange{End: shard.MaxHashKey}

// link returns a link to the view.
func (v view) link(more ...string) string {
	keys := ""
	if v.keys != everything {
		keys = v.keys.String()
	}
	return link("app", append([]string{"app", v.app, "stream", v.stream, "span", v.span, "by", v.by, "keys", keys}, more...)...)
}

// App, Link and Fields are for the form that searches shards. Fields contains the parameters of the
// view, except the application.
func (v view) App() string  { return v.app }
func (v view) Link() string { return v.link() }
func (v view) Fields() (all []option) {
	keys := ""
	if v.keys != everything {
		keys = v.keys.String()
	}
	for _, of := range [][2]string{{"stream", v.stream}, {"span", v.span}, {"by", v.by}, {"keys", keys}} {
		if of[1] != "" {
			all = append(all, option{Name: of[0], Value: of[1]})
		}
	}
	return all
}

// within returns the shards that overlap the selected hash keys.
func (v view) within(shards []shardInfo) []shardInfo {
	if v.keys == everything {
		return shards
	}
	return slices.DeleteFunc(slices.Clone(shards), func(of shardInfo) bool {
		return of.Range.End.Compare(of.Range.Start) <= 0 || of.Range.End.Compare(v.keys.Start) < 0 || of.Range.Start.Compare(v.keys.End) > 0
	})
}

// opened returns the view that clicking a rectangle opens. It returns false if that view is the
// current one.
func (v view) opened(shards []shardInfo, of []int) (view, bool) {
	if len(of) < 2 {
		return v, false
	}
	keys := shards[of[0]].Range
	for _, i := range of[1:] {
		r := shards[i].Range
		if r.Start.Compare(keys.Start) < 0 {
			keys.Start = r.Start
		}
		if r.End.Compare(keys.End) > 0 {
			keys.End = r.End
		}
	}
	if keys.Start.Compare(v.keys.Start) <= 0 && keys.End.Compare(v.keys.End) >= 0 {
		return v, false
	}
	v.keys = keys
	return v, true
}

// zoomed clips the pieces to a range of hash keys. It then scales the range up to the whole key
// space.
func zoomed(pieces []piece, keys shard.HashRange) []piece {
	if keys == everything {
		return pieces
	}
	start, size := bigOf(keys.Start), new(big.Int).Add(new(big.Int).Sub(bigOf(keys.End), bigOf(keys.Start)), big.NewInt(1))
	// place scales the position of a key in the range. The key may also be the first one after the
	// range.
	place := func(k *big.Int) *big.Int {
		k = new(big.Int).Sub(k, start)
		return k.Div(k.Lsh(k, 128), size)
	}
	var all []piece
	for _, p := range pieces {
		from, to := p.hashes.Start, p.hashes.End
		if from.Compare(keys.Start) < 0 {
			from = keys.Start
		}
		if to.Compare(keys.End) > 0 {
			to = keys.End
		}
		if to.Compare(from) < 0 {
			continue
		}
		// The end of a range is one less than the next start. Scale the next start, so that
		// neighbours stay adjacent.
		end := place(new(big.Int).Add(bigOf(to), big.NewInt(1)))
		p.hashes = shard.HashRange{Start: keyOfBig(place(bigOf(from))), End: keyOfBig(end.Sub(end, big.NewInt(1)))}
		all = append(all, p)
	}
	return all
}

func bigOf(k shard.HashKey) *big.Int {
	n := new(big.Int).SetUint64(k.Hi)
	return n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(k.Lo))
}

// keyOfBig converts a number of at most 128 bits to a hash key.
func keyOfBig(n *big.Int) shard.HashKey {
	low := new(big.Int).And(n, new(big.Int).SetUint64(^uint64(0)))
	return shard.HashKey{Hi: new(big.Int).Rsh(n, 64).Uint64(), Lo: low.Uint64()}
}
