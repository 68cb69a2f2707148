package dashboard

import (
	"strings"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
)

// reportedAt is the second of a minute at which workers report, roughly.
const reportedAt = 20 * time.Second

// stateReader evaluates the history of shards. It reuses its memory.
type stateReader struct{ seen []health.Observation }

// then returns the state of a shard in the minute of all[i], by the rules for the present state.
// all is sorted by time.
func (r *stateReader) then(all []moment, i int) health.State {
	m := all[i]
	if m.marks&history.Stalled != 0 {
		return health.Stalled
	}
	first := i
	for oldest := m.minute - int64(health.Options{}.Defaults().TrendOver/time.Minute); first > 0 && all[first-1].minute >= oldest; {
		first--
	}
	r.seen = r.seen[:0]
	for _, m := range all[first : i+1] {
		r.seen = append(r.seen, health.Observation{
			At: time.Unix(60*m.minute, 0).Add(reportedAt), Owner: m.session, Past: true,
			HandledLag: m.lag, SavedLag: health.Unknown, ReadLag: health.Unknown,
		})
	}
	return health.Evaluate(r.seen, r.seen[len(r.seen)-1].At, health.Options{Allowed: enough}).State
}

// fillPresent sets the bins of a shard that the present state covers. all contains the shard's
// reports. The present state covers the time after the last report, and the time without reports
// since the state began. A shard that is stalled, unread or idle had that state all the time since
// it began, although the reports of that time cannot show it.
func (h *heat) fillPresent(row []int, of *shardInfo, all []moment) {
	if of.Done {
		return
	}
	last := 0 // the first bin after the last report
	if n := len(all); n > 0 {
		at := time.Unix(60*all[n-1].minute, 0).Add(reportedAt)
		last = min(max(h.bin(float64(at.Unix()), len(row)), 0), len(row)-1)
	}
	first := last
	if !of.Since.IsZero() {
		first = max(h.bin(float64(of.Since.Unix()), len(row)), 0)
	}
	lasting := !of.Since.IsZero() &&
		(of.State == health.Stalled || of.State == health.Unread || of.State == health.Idle)
	for bin := min(first, last); bin < len(row); bin++ {
		switch {
		case row[bin] == unknown, lasting && bin >= first, !lasting && bin >= last:
			row[bin] = int(of.State)
		}
	}
}

// painted is the time in which rectangles have a state, as an SVG path with the state's class.
type painted struct{ Class, Path string }

// paintStates sets the paths of the states if colours show them, and where the picture is hatched
// or dotted. paths has the path of each state.
func (h *heat) paintStates(paths []strings.Builder, colours bool) {
	for s := range paths {
		path := paths[s].String()
		if path == "" {
			continue
		}
		if colours {
			h.States = append(h.States, painted{health.State(s).Label(), path})
		}
		switch health.State(s) {
		case health.Stalled:
			h.Hatch += path
		case health.Unread, health.Idle:
			h.Dots += path
		}
	}
}
