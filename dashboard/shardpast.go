package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
)

// shardPast is the history of one shard: a picture of its lag, and a table.
type shardPast struct {
	Line, Area string // SVG paths, 1000 wide and 100 high
	From, To   time.Time
	Most       time.Duration // lag at the top of the picture
	Rows       []pastRow     // newest first
	Missing    string
	Axis       []tick
}

// pastRow summarizes some minutes of the history.
type pastRow struct {
	From, To  time.Time
	LagKnown  bool
	Lag, Age  time.Duration // the largest values
	AgeKnown  bool
	Load      lease.Load // the largest load
	Busy      int
	Throttled int
	Workers   []string
	Happened  string
}

const pastRowMinutes = 15

// shardPast returns the history of a shard.
func (p past) shardPast(key lease.Key) shardPast {
	moments := p.shards[key]
	of := shardPast{Missing: p.missing}
	if len(moments) == 0 {
		return of
	}
	first, last := moments[0].minute, moments[len(moments)-1].minute
	of.From, of.To = time.Unix(60*first, 0).UTC(), time.Unix(60*(last+1), 0).UTC()
	of.draw(moments, first, max(last, first+1))
	of.Axis = axis(of.From, time.Unix(60*max(last, first+1), 0))
	byRow := map[int64][]moment{}
	for _, m := range moments {
		byRow[m.minute/pastRowMinutes] = append(byRow[m.minute/pastRowMinutes], m)
	}
	happened := map[int64][]string{}
	for _, e := range happenings(moments) {
		happened[e.minute/pastRowMinutes] = append(happened[e.minute/pastRowMinutes], e.what.String())
	}
	for row := last / pastRowMinutes; row >= first/pastRowMinutes; row-- {
		if some := byRow[row]; len(some) > 0 {
			of.Rows = append(of.Rows, rowOfPast(row, some, happened[row], p.workers))
		}
	}
	return of
}

// draw draws the lag. The curve has a gap where the lag is unknown, or where more than one minute
// has no report.
func (of *shardPast) draw(moments []moment, first, last int64) {
	of.Most = time.Minute
	for _, m := range moments {
		of.Most = max(of.Most, m.lag)
	}
	x := func(minute int64) string { return place(width * float64(minute-first) / float64(last-first)) }
	var line, area strings.Builder
	begun, before := "", int64(0)
	end := func() {
		if begun != "" {
			fmt.Fprintf(&area, "L%s 100L%s 100z", x(before), begun)
		}
		begun = ""
	}
	for _, m := range moments {
		if m.lag < 0 || begun != "" && m.minute > before+2 {
			end()
			if m.lag < 0 {
				continue
			}
		}
		y := place(100 - 98*float64(m.lag)/float64(of.Most))
		step := "L"
		if begun == "" {
			step, begun = "M", x(m.minute)
		}
		fmt.Fprintf(&line, "%s%s %s", step, x(m.minute), y)
		fmt.Fprintf(&area, "%s%s %s", step, x(m.minute), y)
		before = m.minute
	}
	end()
	of.Line, of.Area = line.String(), area.String()
}

func rowOfPast(row int64, some []moment, happened []string, names map[string]string) pastRow {
	of := pastRow{From: time.Unix(60*pastRowMinutes*row, 0).UTC(), To: time.Unix(60*pastRowMinutes*(row+1), 0).UTC()}
	var marks history.Marks
	for _, m := range some {
		of.LagKnown, of.AgeKnown = of.LagKnown || m.lag >= 0, of.AgeKnown || m.age >= 0
		of.Lag, of.Age, of.Load = max(of.Lag, m.lag), max(of.Age, m.age), max(of.Load, m.load)
		of.Busy, of.Throttled = max(of.Busy, int(m.busy)), max(of.Throttled, int(m.throttled))
		marks |= m.marks
		if name := cmp.Or(names[m.session], m.session); !slices.Contains(of.Workers, name) {
			of.Workers = append(of.Workers, name)
		}
	}
	for _, mark := range []struct {
		mark history.Marks
		text string
	}{{history.Failing, "its handler failed"}, {history.Unread, "reading failed"}, {history.Finished, health.Ended.String()}} {
		if marks&mark.mark != 0 {
			happened = append(happened, mark.text)
		}
	}
	of.Happened = strings.Join(slices.Compact(happened), ", ")
	return of
}

// String describes the happening in words.
func (h happening) String() string {
	return [...]string{
		handedOver: "handed over", takenOver: "taken over from a worker that died",
		regainedAfterLoss: "taken again after its owner had lost it", stalled: "stalled",
	}[h]
}
