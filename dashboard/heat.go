package dashboard

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

const (
	mostBins = 180  // columns of a picture, from left to right
	mostRuns = 5000 // rectangles in all levels together
)

// heat is the history of the boxes of a picture. If the colours show a metric, heat has a path for
// each level of the metric, and otherwise a path for each state. It also has a path for each kind
// of happening.
type heat struct {
	Levels                  [levels]string
	States                  []painted
	Hatch, Dots             string // where the state is stalled, and where no worker reads
	Handed, Taken, Stalled  string
	Regained                string
	Knows                   bool    // part of the history is known
	from, to                float64 // seconds
	width                   float64
	countHanded, countTaken int
	countStalled            int
	countRegained           int
}

// drawHeat draws the history of the shards over the given boxes. by selects the metric that colours
// show; nil selects the state.
func drawHeat(boxes []box, shards []shardInfo, p past, by *metric, from, to time.Time) heat {
	bins := mostBins
	for {
		h, runs := heatOfBins(boxes, shards, p, by, from, to, bins)
		if runs <= mostRuns || bins <= 10 {
			return h
		}
		bins = bins * 2 / 3
	}
}

func heatOfBins(boxes []box, shards []shardInfo, p past, by *metric, from, to time.Time, bins int) (h heat, runs int) {
	h = heat{from: float64(from.Unix()), to: float64(to.Unix()), width: width}
	var paths [levels]strings.Builder
	var painted [int(health.RetentionNear) + 1]strings.Builder // by state
	var handed, taken, stalls, regained strings.Builder
	var states stateReader
	for i := range boxes {
		b := &boxes[i]
		row, stateRow := unknownRow(bins), unknownRow(bins)
		for n, of := range b.of {
			all := p.shards[shards[of].Key]
			own := unknownRow(bins) // the states of this shard
			for i, at := range all {
				first, end := h.binsOf(at.minute, bins)
				if first >= end {
					continue
				}
				h.Knows = true
				state, level := int(states.then(all, i)), unknown
				if by != nil {
					level = by.then(at)
				}
				for bin := first; bin < end; bin++ {
					own[bin], row[bin] = max(own[bin], state), max(row[bin], level)
				}
			}
			if n == 0 || len(all) > 0 {
				h.fillPresent(own, &shards[of], all)
			}
			for bin, state := range own {
				stateRow[bin] = max(stateRow[bin], state)
			}
			for _, e := range happenings(all) {
				x := h.x(float64(60*e.minute + 30))
				if x < 0 || x > width {
					continue
				}
				// The middle of the minute may be before the shard was opened, so limit x to the
				// box.
				x = min(max(x, b.x), b.x+b.w)
				path, count := &handed, &h.countHanded
				switch e.what {
				case takenOver:
					path, count = &taken, &h.countTaken
				case regainedAfterLoss:
					path, count = &regained, &h.countRegained
				case stalled:
					path, count = &stalls, &h.countStalled
				}
				*count++
				fmt.Fprintf(path, "M%s %sv%s", place(x), place(b.y), place(b.h))
			}
		}
		runs += h.paint(b, row, paths[:])
		stateRuns := h.paint(b, stateRow, painted[:])
		if by == nil {
			runs += stateRuns
		}
	}
	for i := range paths {
		h.Levels[i] = paths[i].String()
	}
	if h.Knows {
		h.paintStates(painted[:], by == nil)
	}
	h.Handed, h.Taken, h.Stalled, h.Regained = handed.String(), taken.String(), stalls.String(), regained.String()
	return h, runs
}

func unknownRow(bins int) []int {
	row := make([]int, bins)
	for bin := range row {
		row[bin] = unknown
	}
	return row
}

// paint adds a rectangle to the path of each level in a row of a box, and returns their number.
func (h *heat) paint(b *box, row []int, paths []strings.Builder) (runs int) {
	bins := float64(len(row))
	for at := 0; at < len(row); {
		end := at + 1
		for end < len(row) && row[end] == row[at] {
			end++
		}
		if row[at] != unknown {
			left, right := max(b.x, h.width*float64(at)/bins), min(b.x+b.w, h.width*float64(end)/bins)
			if right > left {
				fmt.Fprintf(&paths[row[at]], "M%s %sh%sv%sh-%sz", place(left), place(b.y), place(right-left), place(b.h), place(right-left))
				runs++
			}
		}
		at = end
	}
	return runs
}

// x returns the x coordinate of a time, which is given in seconds since the epoch.
func (h *heat) x(seconds float64) float64 { return h.width * (seconds - h.from) / (h.to - h.from) }

// binsOf returns the first bin of a minute, and the end of its bins. The two are equal if the
// minute is outside of the picture. A minute that is shorter than a bin is in the bin of its
// middle.
func (h *heat) binsOf(minute int64, bins int) (first, end int) {
	if h.to-h.from >= float64(60*bins) {
		at := h.bin(float64(60*minute+30), bins)
		if at < 0 || at >= bins {
			return 0, 0
		}
		return at, at + 1
	}
	first = max(h.bin(float64(60*minute), bins), 0)
	return first, max(min(h.bin(float64(60*minute+60), bins), bins), first)
}

// bin returns the bin that contains a time, in seconds since the epoch. The result is outside of
// the row if the time is outside of the picture.
func (h *heat) bin(seconds float64, bins int) int {
	const inexact = 1e-6 // bounds the error of the calculation
	return int(math.Floor(h.x(seconds)/h.width*float64(bins) + inexact))
}

// place formats a coordinate, rounded to a tenth.
func place(f float64) string { return number(math.Round(10*f) / 10) }

// Told describes the marks of the picture in words. It returns "" if the picture has no marks.
func (h *heat) Told() string {
	var parts []string
	for _, of := range []struct {
		n         int
		one, many string
	}{
		{h.countTaken, "take-over from a worker that died (thick)", "take-overs from workers that died (thick)"},
		{h.countRegained, "return after the owner lost its leases, for example in an outage of the store (dotted)", "returns after owners lost their leases, for example in an outage of the store (dotted)"},
		{h.countHanded, "hand-over (thin)", "hand-overs (thin)"},
		{h.countStalled, "stall (dashed)", "stalls (dashed)"},
	} {
		if of.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of.n, plural(of.n, of.one, of.many)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Marked in pink: " + strings.Join(parts, ", ") + "."
}

// showPast adds the history of the given shards to the picture. Minutes without a report are
// shown as unknown.
func (p *appPage) showPast(v view, shards []shardInfo, known past) {
	if p.PastMissing = known.missing; p.PastMissing == "" && len(known.shards) == 0 {
		p.PastMissing = "There is no history of the shards yet. Workers write it once a minute, except workers of an older version or with --no-history."
	}
	if p.Picture == nil || len(p.Picture.boxes) == 0 {
		return
	}
	by := metricOf(v.by)
	h := drawHeat(p.Picture.boxes, shards, known, by, p.Picture.from, p.Picture.to)
	p.Picture.Heat = &h
	if !h.Knows {
		return
	}
	p.Picture.Hatch, p.Picture.Dots = h.Hatch, h.Dots
	for i := range p.Picture.Boxes {
		if by != nil && by.reported != nil {
			var of []lease.Key
			for _, at := range p.Picture.boxes[i].of {
				of = append(of, shards[at].Key)
			}
			p.Picture.Boxes[i].Title += "; " + by.told + " " + by.most(known, of, p.Picture.from, p.Picture.to)
		}
		if !shards[p.Picture.boxes[i].of[0]].Done {
			p.Picture.Boxes[i].Class = "unknown"
		}
	}
}
