package dashboard

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-go/weir/shard"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

// slice returns the range of hash keys from one sixteenth of the key space up to another.
func slice(from, to uint64) shard.HashRange {
	r := shard.HashRange{Start: shard.HashKey{Hi: from << 60}, End: shard.MaxHashKey}
	if to < 16 {
		r.End = shard.HashKey{Hi: to<<60 - 1, Lo: 1<<64 - 1}
	}
	return r
}

func TestShardsCoverTheirHashKeysForAsLongAsTheyAreOpen(t *testing.T) {
	t.Parallel()
	never := time.Time{}
	for _, c := range []struct {
		name   string
		pieces []piece
		want   []string // each is x, width, share of the height, and the shards
		marks  []float64
	}{
		{"one shard, up to date", []piece{{0, slice(0, 16), at(-20), never, at(0), 0}}, []string{"0+1000 0..100 [0]"}, []float64{1000}},
		{"opened half way", []piece{{0, slice(0, 16), at(-5), never, at(-2), 0}}, []string{"500+500 0..100 [0]"}, []float64{800}},
		{"nobody knows when it was opened", []piece{{0, slice(0, 16), never, never, never, 0}}, []string{"0+1000 0..100 [0]"}, []float64{-1}},
		{"handled up to before the picture", []piece{{0, slice(0, 16), at(-60), never, at(-30), 0}}, []string{"0+1000 0..100 [0]"}, []float64{0}},
		{"a split", []piece{
			{0, slice(0, 16), at(-20), at(-5), never, 0},
			{1, slice(0, 8), at(-5), never, at(0), 0}, {2, slice(8, 16), at(-5), never, at(-5), 0},
		}, []string{"0+500 0..100 [0]", "500+500 0..50 [1]", "500+500 50..100 [2]"}, []float64{-1, 1000, 500}},
		{"a merge", []piece{
			{0, slice(0, 8), at(-20), at(-5), never, 0}, {1, slice(8, 16), at(-20), at(-5), never, 0},
			{2, slice(0, 16), at(-5), never, at(0), 0},
		}, []string{"0+500 0..50 [0]", "500+500 0..100 [2]", "0+500 50..100 [1]"}, []float64{-1, 1000, -1}},
		{"a closed one that is still being read", []piece{{0, slice(0, 16), at(-20), at(-2), at(-4), 0}}, []string{"0+800 0..100 [0]"}, []float64{600}},
		{"closed before the picture begins", []piece{{0, slice(0, 16), at(-40), at(-20), never, 0}}, nil, nil},
		{"a range that is not known", []piece{{0, shard.HashRange{}, at(-40), never, never, 0}}, nil, nil},
		{"a hole", []piece{{0, slice(0, 4), at(-20), never, never, 0}, {1, slice(12, 16), at(-20), never, never, 0}},
			[]string{"0+1000 0..29 [0]", "0+1000 71..100 [1]"}, []float64{-1, -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := draw(c.pieces, at(-10), at(0), mostRows)
			if len(p.boxes) != len(c.want) {
				t.Fatalf("drew %+v, want %q", p.boxes, c.want)
			}
			for i, b := range p.boxes {
				got := fmt.Sprintf("%.0f+%.0f %.0f..%.0f %v", b.x, b.w, 100*b.y/p.height, 100*(b.y+b.h)/p.height, b.of)
				if got != c.want[i] || b.mark != c.marks[i] {
					t.Errorf("box %d is %s with its mark at %v, want %s at %v", i, got, b.mark, c.want[i], c.marks[i])
				}
			}
		})
	}
}

func TestColdNeighboursAreMergedAndHotOnesNot(t *testing.T) {
	t.Parallel()
	const n = 1000
	var pieces []piece
	for i := range n {
		r := shard.HashRange{Start: shard.HashKey{Hi: uint64(i) * (1<<64/n - 1)}, End: shard.HashKey{Hi: uint64(i+1)*(1<<64/n-1) - 1, Lo: 1<<64 - 1}}
		p := piece{at: i, hashes: r, opened: at(-20), done: at(0)}
		if i == 500 {
			p.heat, p.done = 5, at(-3)
		}
		if i == 777 {
			p.done = at(-1)
		}
		pieces = append(pieces, p)
	}
	p := draw(pieces, at(-10), at(0), mostRows)
	if p.rows > mostRows || len(p.boxes) > mostBoxes || len(p.boxes) < mostRows/3 {
		t.Fatalf("%d rows with %d boxes", p.rows, len(p.boxes))
	}
	shown := map[int]bool{}
	for _, b := range p.boxes {
		for _, i := range b.of {
			if shown[i] {
				t.Errorf("shard %d is drawn twice", i)
			}
			shown[i] = true
			switch {
			case i == 500 && (len(b.of) != 1 || b.mark != 700):
				t.Errorf("the hot shard is in a box of %v, its mark at %v", b.of, b.mark)
			case i == 777 && b.mark != 900:
				t.Errorf("the box of %v has its mark at %v, not where the one furthest behind is", b.of, b.mark)
			}
		}
	}
	if len(shown) != n {
		t.Errorf("%d of %d shards are drawn", len(shown), n)
	}
}

// After any splits and merges, no rectangle overlaps another, and all rectangles are inside the
// picture.
func TestNothingOverlaps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		open := []piece{{at: 0, hashes: slice(0, 16), opened: at(-100)}}
		var all []piece
		next := 1
		for minute := -99; minute < 0; minute++ {
			if random.IntN(4) == 0 && len(open) > 1 { // merge two shards
				i := random.IntN(len(open) - 1)
				merged := piece{at: next, hashes: shard.HashRange{Start: open[i].hashes.Start, End: open[i+1].hashes.End}, opened: at(minute), heat: random.IntN(3)}
				for _, p := range open[i : i+2] {
					p.closed = at(minute)
					all = append(all, p)
				}
				open = append(append(append([]piece{}, open[:i]...), merged), open[i+2:]...)
				next++
				continue
			}
			i := random.IntN(len(open))
			p := open[i]
			middle := p.hashes.Middle()
			low := piece{at: next, hashes: shard.HashRange{Start: p.hashes.Start, End: shard.HashKey{Hi: middle.Hi - 1, Lo: 1<<64 - 1}}, opened: at(minute), heat: random.IntN(3)}
			high := piece{at: next + 1, hashes: shard.HashRange{Start: shard.HashKey{Hi: middle.Hi}, End: p.hashes.End}, opened: at(minute)}
			if low.hashes.End.Compare(low.hashes.Start) <= 0 {
				continue
			}
			p.closed = at(minute)
			all = append(all, p)
			open = append(append(append([]piece{}, open[:i]...), low, high), open[i+1:]...)
			next += 2
		}
		all = append(all, open...)
		p := draw(all, at(-100), at(0), 4+random.IntN(40))
		for i, a := range p.boxes {
			if a.x < 0 || a.y < 0 || a.w < 0 || a.h <= 0 || a.x+a.w > p.width+1e-6 || a.y+a.h > p.height+1e-6 {
				t.Fatalf("seed %d: a box is outside: %+v", seed, a)
			}
			for _, b := range p.boxes[:i] {
				if a.x+1e-6 < b.x+b.w && b.x+1e-6 < a.x+a.w && a.y+1e-6 < b.y+b.h && b.y+1e-6 < a.y+a.h {
					t.Fatalf("seed %d: %+v lies on %+v", seed, a, b)
				}
			}
		}
	}
}
