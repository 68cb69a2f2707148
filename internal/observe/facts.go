package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
)

// Recall sets the reports of the last minutes, which show how busy the handlers are. The watch
// keeps p. Call it again when there are newer reports. [Watch.Remember] includes it.
func (w *Watch) Recall(p Past) { w.recent = p }

// Facts returns what is known about the application at a moment. All tools pass the result to
// [health.Conclude], so they show the same verdict. The caller adds failures of the store and of
// Kinesis.
func (w *Watch) Facts(app string, now time.Time) health.Facts {
	view := w.last.View
	_, rated := w.Judge(now)
	f := health.Facts{
		App: app, Now: now, Workers: w.group.Living, Led: w.group.Leader != "",
		Leases: w.group.Held, MaxLeases: w.maxLeases(), PausedApp: slices.Contains(view.Paused, ""),
		Shards: make([]health.ShardFacts, len(rated)),
	}
	for _, stream := range view.Paused {
		f.Pauses = append(f.Pauses, PauseOf(view, stream))
	}
	loads := make(map[lease.Key]float64, len(view.Leases))
	for _, l := range view.Leases {
		if l.Load != 0 && w.group.Holder(l.Key) != "" {
			loads[l.Key], _ = l.Throughput()
		}
	}
	cutOff := map[string]bool{} // by session
	seen := map[string]bool{}   // sessions whose end was seen
	for i := range view.Workers {
		of := &view.Workers[i]
		cutOff[of.Session] = of.CutOff()
		if !w.group.Lives(of.Session) {
			if b := w.beats[of.Session]; b.moved && !of.Leaving {
				name := cmp.Or(of.Name, of.Session)
				f.Died = append(f.Died, health.Death{Worker: name, At: b.since})
				seen[of.Session] = true
			}
			seen[of.Session] = seen[of.Session] || of.Leaving
			continue
		}
		for _, t := range of.Troubles {
			f.DeadLettered += t.Failing.GivenUp
		}
	}
	for session, d := range w.recent.deaths(w.group, now) {
		if !seen[session] {
			f.Died = append(f.Died, d)
		}
	}
	for i, of := range rated {
		key := lease.Key{Stream: of.Stream, Shard: of.Name}
		s := health.ShardFacts{Named: of, Load: -1, Recent: w.recent.of(key, now)}
		seen := w.observed[key].All()
		s.Owner = seen[len(seen)-1].Owner
		s.CutOff = cutOff[w.group.Holder(key)]
		if load, known := loads[key]; known {
			s.Load = load
		}
		if o := seen[len(seen)-1]; o.Complains {
			s.Doing, s.DoingSince, s.Attempts = o.Reason, o.Since, o.Attempts
		}
		f.Shards[i] = s
	}
	return f
}

// PauseOf returns who paused a stream, and when. "" stands for the whole application.
func PauseOf(v lease.View, stream string) health.Pause {
	note := v.PauseNote(stream)
	return health.Pause{Stream: stream, By: note.By, At: note.At}
}

// maxLeases returns how many leases the live workers may hold together. It returns 0 if one of them
// has no limit.
func (w *Watch) maxLeases() (most int) {
	for _, of := range w.last.View.Workers {
		switch {
		case !w.group.Lives(of.Session) || of.Leaving || of.Drain:
		case of.MaxLeases == 0:
			return 0
		default:
			most += of.MaxLeases
		}
	}
	return most
}

// of summarizes the last reports about a shard.
func (p Past) of(key lease.Key, now time.Time) (r health.Recent) {
	var whole []Report
	var lags []time.Duration
	for _, of := range p[key] {
		// The last report about a term covers a part of a minute, and has no lag.
		if of.Marks&(history.Ended|history.Lost) == 0 {
			whole, lags = append(whole, of), append(lags, of.Lag)
		}
	}
	for _, of := range whole[history.Stretch(lags):] {
		if of.Minute <= now.Unix()/60-health.RecentMinutes-1 {
			continue
		}
		failing, unread := of.Marks&history.Failing != 0, of.Marks&history.Unread != 0
		r = r.Add(of.Busy, of.Throttled, failing, unread)
	}
	return r
}
