package dashboard

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/weir-go/weir/shard"
)

// piece is what the layout needs to know about one shard.
type piece struct {
	at     int // index of the shard in the list that was passed to the picture
	hashes shard.HashRange
	opened time.Time // zero if unknown, or before the start of the picture
	closed time.Time // zero while the shard is open
	done   time.Time // records up to this time are handled; zero if unknown
	heat   int       // priority; shards with a low priority may be merged
}

// box is a rectangle of the picture. It represents one shard, or several merged neighbours.
type box struct {
	x, y, w, h float64
	// mark is the x coordinate of the checkpoint. Records to the right of it are not handled. A box
	// of several shards uses the checkpoint that is furthest behind. The value is negative if there
	// is no checkpoint.
	mark float64
	of   []int // its shards as piece.at; the shard with the highest priority comes first
}

// picture contains the boxes. x coordinates go from 0 to width, and y coordinates from 0 to height.
type picture struct {
	width, height float64
	rows          int
	boxes         []box
	labels        []label // labels of the boxes that are open at the right edge
	merged        int     // number of shards that share a box
}

type label struct {
	y, h float64
	of   int
}

const (
	mostRows  = 400
	mostBoxes = 480
	width     = 1000.0
)

// draw lays out the shards over a time range. Time goes to the right, and hash keys go from top to
// bottom. Every shard covers its hash keys from its creation to its closing. Splits and merges are
// therefore visible without arrows, and no boxes overlap. If there are more than most rows, draw
// merges neighbours with low priority. If there are too many boxes, it merges more of them.
func draw(pieces []piece, from, to time.Time, most int) picture {
	pieces = slices.DeleteFunc(slices.Clone(pieces), func(p piece) bool {
		return !p.closed.IsZero() && !p.closed.After(from) || p.hashes == (shard.HashRange{}) || p.hashes.End.Compare(p.hashes.Start) < 0
	})
	if len(pieces) == 0 || !to.After(from) {
		return picture{width: width}
	}
	for {
		p := drawRows(pieces, from, to, most)
		if len(p.boxes) <= mostBoxes || most <= 8 {
			return p
		}
		most = most * 3 / 4
	}
}

func drawRows(pieces []piece, from, to time.Time, most int) picture {
	cuts := cutsOf(pieces)
	// A row is a group of strips. Group g contains the strips from groups[g] up to groups[g+1].
	groups := groupStrips(heatOf(pieces, cuts), most)
	rows := len(groups) - 1
	p := picture{width: width, rows: rows, height: heightOf(rows)}
	tops := topsOf(cuts, groups, p.height)
	x := func(t time.Time) float64 {
		if t.IsZero() || t.Before(from) {
			return 0
		}
		return min(width, width*float64(t.Sub(from))/float64(to.Sub(from)))
	}
	shared := make([][]piece, rows)
	for _, q := range pieces {
		first, end := stripsOf(q, cuts)
		// The shard has its own box in the rows that it covers completely. In other rows it shares
		// the box.
		lo, _ := slices.BinarySearch(groups, first)
		hi := sort.Search(len(groups), func(i int) bool { return groups[i] > end }) - 1
		if lo < hi {
			b := boxOf([]piece{q}, x)
			b.y, b.h = tops[lo], tops[hi]-tops[lo]
			p.boxes = append(p.boxes, b)
			if q.closed.IsZero() {
				p.labels = append(p.labels, label{b.y, b.h, q.at})
			}
		}
		share := func(g int) {
			if g >= 0 && g < rows && !slices.ContainsFunc(shared[g], func(o piece) bool { return o.at == q.at }) {
				shared[g] = append(shared[g], q)
			}
		}
		switch {
		case lo > hi: // the shard lies inside one row
			share(hi)
		default:
			if groups[lo] > first {
				share(lo - 1)
			}
			if groups[hi] < end {
				share(hi)
			}
		}
	}
	for g, members := range shared {
		for _, era := range eras(members) {
			b := boxOf(era, x)
			b.y, b.h = tops[g], tops[g+1]-tops[g]
			p.boxes = append(p.boxes, b)
			if len(era) > 1 {
				p.merged += len(era)
			}
		}
	}
	slices.SortFunc(p.boxes, func(a, b box) int { return cmp.Or(cmp.Compare(a.y, b.y), cmp.Compare(a.x, b.x)) })
	slices.SortFunc(p.labels, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	return p
}

// cutsOf returns the sorted hash keys at which a shard's range begins or ends. For an end, it
// returns the first key after the range.
func cutsOf(pieces []piece) []shard.HashKey {
	var cuts []shard.HashKey
	for _, p := range pieces {
		cuts = append(cuts, p.hashes.Start)
		if p.hashes.End != shard.MaxHashKey {
			cuts = append(cuts, p.hashes.End.Next())
		}
	}
	slices.SortFunc(cuts, shard.HashKey.Compare)
	return slices.Compact(cuts)
}

// stripsOf returns the strips that a shard covers, from first up to but not including end. A strip
// is the range between two neighbouring cuts.
func stripsOf(p piece, cuts []shard.HashKey) (first, end int) {
	first, _ = slices.BinarySearchFunc(cuts, p.hashes.Start, shard.HashKey.Compare)
	if p.hashes.End == shard.MaxHashKey {
		return first, len(cuts)
	}
	end, _ = slices.BinarySearchFunc(cuts, p.hashes.End.Next(), shard.HashKey.Compare)
	return first, end
}

// heatOf returns, for each strip, the highest priority of its shards.
func heatOf(pieces []piece, cuts []shard.HashKey) []int {
	heat := make([]int, len(cuts))
	for _, p := range pieces {
		first, end := stripsOf(p, cuts)
		for i := first; i < end; i++ {
			heat[i] = max(heat[i], p.heat)
		}
	}
	return heat
}

// groupStrips divides the strips into at most most rows. It returns the first strip of each row,
// and the end of the last row. If there are few strips, each strip is a row. Otherwise each of the
// strips with the highest priority gets a row, but they get at most a third of the rows. Of the
// strips between them, groupStrips merges as many as necessary.
func groupStrips(heat []int, most int) []int {
	n := len(heat)
	if n <= most {
		all := make([]int, n+1)
		for i := range all {
			all[i] = i
		}
		return all
	}
	hot := make([]int, 0, n)
	for i, h := range heat {
		if h > 0 {
			hot = append(hot, i)
		}
	}
	slices.SortStableFunc(hot, func(a, b int) int { return cmp.Compare(heat[b], heat[a]) })
	alone := make([]bool, n)
	for _, i := range hot[:min(len(hot), most/3)] {
		alone[i] = true
	}
	for size := 2; ; size++ {
		groups, run := []int{0}, 0
		for i := range n {
			if i > 0 && (alone[i] || alone[i-1] || run == size) {
				groups, run = append(groups, i), 0
			}
			run++
		}
		if len(groups) <= most || size >= n {
			return append(groups, n)
		}
	}
}

// eras divides the shards of a row by time. Two shards are not merged if the row has other shards
// between them.
func eras(members []piece) (all [][]piece) {
	slices.SortFunc(members, func(a, b piece) int { return a.opened.Compare(b.opened) })
	var until time.Time
	for i, m := range members {
		if i == 0 || !until.IsZero() && !m.opened.Before(until) {
			all, until = append(all, nil), m.closed
		}
		all[len(all)-1] = append(all[len(all)-1], m)
		if m.closed.IsZero() || !until.IsZero() && m.closed.After(until) {
			until = m.closed
		}
	}
	return all
}

func boxOf(of []piece, x func(time.Time) float64) box {
	of = slices.Clone(of)
	slices.SortStableFunc(of, func(a, b piece) int { return cmp.Compare(b.heat, a.heat) })
	b := box{x: width, mark: -1}
	right := 0.0
	for _, p := range of {
		b.of = append(b.of, p.at)
		b.x = min(b.x, x(p.opened))
		end := width
		if !p.closed.IsZero() {
			end = x(p.closed)
		}
		right = max(right, end)
		if !p.done.IsZero() {
			at := min(x(p.done), end)
			if b.mark < 0 || at < b.mark {
				b.mark = at
			}
		}
	}
	b.w = max(0, right-b.x)
	if b.mark >= 0 {
		b.mark = max(b.mark, b.x)
	}
	return b
}

// heightOf returns the height of a picture with this number of rows. The picture fits a screen if
// possible.
func heightOf(rows int) float64 {
	return float64(max(min(max(rows*26, 120), 480), rows*2))
}

// topsOf returns the y coordinate at which each row begins, and the end of the last row. Half of
// the height is divided equally among the rows, so that no row is too thin. The other half is
// divided in proportion to the hash keys.
func topsOf(cuts []shard.HashKey, groups []int, height float64) []float64 {
	rows := len(groups) - 1
	tops := make([]float64, rows+1)
	first := share(cuts[0])
	all := 1 - first
	for g := range rows {
		end := 1.0
		if groups[g+1] < len(cuts) {
			end = share(cuts[groups[g+1]])
		}
		part := 1 / float64(rows)
		if all > 0 {
			part = (part + (end-share(cuts[groups[g]]))/all) / 2
		}
		tops[g+1] = tops[g] + height*part
	}
	return tops
}

// share returns the position of a hash key as a fraction of the whole key space, from 0 to 1.
func share(k shard.HashKey) float64 {
	const half = 1 << 63
	return (float64(k.Hi) + float64(k.Lo)/(2*half)) / (2 * half)
}
