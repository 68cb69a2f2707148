// Package observe converts the data of a store and of Kinesis about an application to the input of
// package health. The weir command and the dashboard share it, so that both get the same results.
package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/errtext"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// Lag is the result of reading a shard at its checkpoint.
type Lag struct {
	Behind time.Duration // age of the oldest record that is not handled, or 0
	// Expired is set if all records up to the checkpoint have left the shard.
	Expired bool
}

// Look is an observation of an application at one moment.
type Look struct {
	At   time.Time
	View lease.View // with its leases
	// Silent contains sessions whose heartbeats have stopped although they have not ended. It may
	// be nil for [Watch.Add], because the watch finds such sessions itself.
	Silent map[string]bool
	// Heard is when the present heartbeat count of a session was first seen, if known. [Watch.Add]
	// sets it.
	Heard map[string]time.Time
	// Lags are the known lags.
	Lags      map[lease.Key]Lag
	Retention map[string]time.Duration // by stream, if known
}

// Watch stores the observations of an application that are needed to rate it. The zero value is
// ready to use. It is not safe for concurrent use.
type Watch struct {
	Options  health.Options
	observed map[lease.Key]*health.Observations
	owners   map[lease.Key]string // sessions, as of the last look
	beats    map[string]beat
	group    Group
	last     Look
	recent   Past // the reports of the last minutes
	past     Past
	began    time.Time // when the past became known
}

// beat is a session's heartbeat count, and when a look first found this count.
type beat struct {
	count uint64
	since time.Time
	moved bool // a look saw it change
}

// Add adds a look, and drops shards whose leases are gone.
func (w *Watch) Add(l Look) {
	silent := w.listen(l)
	if l.Silent == nil {
		l.Silent = silent
	}
	l.Heard = make(map[string]time.Time, len(w.beats))
	for session, b := range w.beats {
		l.Heard[session] = b.since
	}
	if w.past != nil && w.began.IsZero() {
		w.began = l.At
	} else if l.At.Sub(w.began) > pastNeeded {
		w.past = nil
	}
	owners := make(map[lease.Key]string, len(l.View.Leases))
	for _, of := range l.View.Leases {
		owners[of.Key] = of.Owner
	}
	kept, going := map[lease.Key]*health.Observations{}, goingOn(l.View)
	for key, o := range Shards(l) {
		all := w.observed[key]
		if all == nil || w.mistaken(all, o, owners[key]) {
			all = w.past.before(key, o, owners[key], going, w.Options)
		}
		all.Add(o, w.Options.Defaults().TrendOver)
		kept[key] = all
	}
	w.observed, w.owners, w.group, w.last = kept, owners, GroupOf(l.View, l.Silent), l
}

// mistaken reports whether earlier looks counted a shard as held by a session, although no look has
// seen a heartbeat of that session.
func (w *Watch) mistaken(kept *health.Observations, o health.Observation, owner string) bool {
	all := kept.All()
	return o.Owner == "" && owner != "" && all[len(all)-1].Owner != "" && !w.beats[owner].moved
}

// Remember adds the reports that workers made before the first look. Call it before the first Add.
// A later call adds the reports to the observations so far.
func (w *Watch) Remember(p Past) {
	w.past, w.began, w.recent = p, time.Time{}, p
	going := goingOn(w.last.View)
	for key, all := range w.observed {
		seen := slices.Clone(all.All())
		if len(seen) == 0 || len(p[key]) == 0 {
			continue
		}
		again := p.before(key, seen[0], w.owners[key], going, w.Options)
		for _, o := range seen {
			again.Add(o, w.Options.Defaults().TrendOver)
		}
		w.observed[key] = again
	}
}

// goingOn returns the sessions that have not ended.
func goingOn(v lease.View) map[string]bool {
	going := map[string]bool{}
	for _, w := range v.Workers {
		going[w.Session] = !w.Ended
	}
	return going
}

// listen returns the sessions whose heartbeat count has not changed for their failover time.
func (w *Watch) listen(l Look) map[string]bool {
	beats, silent := map[string]beat{}, map[string]bool{}
	for _, of := range l.View.Workers {
		b, known := w.beats[of.Session]
		if !known || b.count != of.Heartbeats {
			b = beat{of.Heartbeats, l.At, known}
		}
		beats[of.Session] = b
		if !of.Ended && l.At.Sub(b.since) >= of.Times.Or(lease.DefaultTimes).Failover {
			silent[of.Session] = true
		}
	}
	w.beats = beats
	return silent
}

// Group returns the counts of the last look.
func (w *Watch) Group() Group { return w.group }

// Judge returns the health of each shard at a moment, the worst first, and the health of the
// application.
func (w *Watch) Judge(now time.Time) (health.Application, []health.Named) {
	all := make([]health.Named, 0, len(w.observed))
	for key, seen := range w.observed {
		s := health.Evaluate(seen.All(), now, w.Options)
		all = append(all, health.Named{Stream: key.Stream, Name: key.Shard, Shard: s})
	}
	slices.SortFunc(all, health.Compare)
	return health.Sum(all), all
}

// Shards returns the observation of each lease at the time of a look.
func Shards(l Look) map[lease.Key]health.Observation {
	workers := map[string]*lease.Worker{}
	room, living := roomOf(l)
	unread := unreadStreams(l)
	finished := map[lease.Key]bool{}
	for i := range l.View.Workers {
		workers[l.View.Workers[i].Session] = &l.View.Workers[i]
	}
	for _, of := range l.View.Leases {
		finished[of.Key] = of.Finished()
	}
	all := make(map[lease.Key]health.Observation, len(l.View.Leases))
	for _, of := range l.View.Leases {
		o := health.Observation{
			At: l.At, Saved: of.Position, ReadLag: health.Unknown, HandledLag: health.Unknown, SavedLag: health.Unknown,
			Retention: l.Retention[of.Stream],
		}
		if lag, known := l.Lags[of.Key]; known {
			o.SavedLag, o.Expired = lag.Behind, lag.Expired
		}
		o.Reason = unownedReason(of, l, workers[of.Owner], finished, living, room)
		switch o.Reason {
		case health.NoRoom, health.Unassigned, health.OwnerSilent:
			if slices.Contains(unread, of.Stream) {
				o.Reason = health.NoReader
			}
		}
		if o.Reason == health.NoReason {
			w := workers[of.Owner]
			o.Owner = cmp.Or(w.Name, w.Session)
			complain(&o, w, of.Key, l.Heard[w.Session])
		} else if l.Silent[of.Owner] {
			o.Since = l.Heard[of.Owner]
		}
		all[of.Key] = o
	}
	return all
}

// unownedReason returns why no worker reads a shard, or NoReason if its owner reads it.
func unownedReason(
	of lease.Lease, l Look, owner *lease.Worker, finished map[lease.Key]bool, living int, room bool,
) health.Reason {
	switch {
	case of.Owner != "" && owner != nil && !owner.Ended && !l.Silent[of.Owner]:
		return health.NoReason
	case slices.Contains(l.View.Paused, "") || slices.Contains(l.View.Paused, of.Stream):
		return health.Paused
	case slices.ContainsFunc(of.Parents, func(p string) bool {
		done, there := finished[lease.Key{Stream: of.Stream, Shard: p}]
		return there && !done
	}):
		return health.WaitsForParents
	case living == 0:
		return health.NoWorker
	case !room: // then the leader does not take the shard of a dead worker, either
		return health.NoRoom
	case of.Owner != "":
		return health.OwnerSilent
	}
	return health.Unassigned
}

// unreadStreams returns the streams that no live worker reads.
func unreadStreams(l Look) []string {
	beating := l.View
	beating.Workers = nil
	for _, w := range l.View.Workers {
		if !l.Silent[w.Session] {
			beating.Workers = append(beating.Workers, w)
		}
	}
	return lease.Unread(beating)
}

// roomOf reports whether at least one worker may hold more leases. It also returns the number of
// live workers.
func roomOf(l Look) (room bool, living int) {
	held := map[string]int{}
	for _, of := range l.View.Leases {
		held[of.Owner]++
	}
	for _, w := range l.View.Workers {
		if w.Ended || l.Silent[w.Session] {
			continue
		}
		living++
		room = room || (!w.Leaving && !w.Drain && (w.MaxLeases == 0 || held[w.Session] < w.MaxLeases))
	}
	return room, living
}

// refusedAfter is how long Kinesis refuses a position until its records count as expired.
const refusedAfter = 30 * time.Second

// complain adds the troubles that a worker reported about the shard. heard is when the heartbeat
// with the report was first seen. It may be zero.
func complain(o *health.Observation, w *lease.Worker, key lease.Key, heard time.Time) {
	if heard.IsZero() {
		heard = o.At
	}
	cutOff := time.Duration(-1) // for how long the worker has been able to read no shard
	for _, t := range w.Troubles {
		if t.State == lease.CutOff {
			cutOff = t.For
		}
	}
	for _, t := range w.Troubles {
		if t.Key != key && t.Key != (lease.Key{}) {
			continue
		}
		reason := health.ReportedReason(t.State)
		if t.Key == key && cutOff > t.For && supervise.Explains(reason) {
			continue
		}
		switch reason { // in these cases the shard is healthy
		case health.DeadLettered:
			continue
		case health.CheckpointHeld:
			o.Held = t.Why
			continue
		}
		o.Complains, o.Reason, o.Since, o.Detail = true, reason, heard.Add(-t.For), ""
		if reason == health.OtherReason {
			o.Detail = t.State
		}
		o.Err, o.Attempts = t.Why, t.Failing.Attempts
		// A stream that was created again is found earlier, so the records have expired.
		o.Expired = o.Expired || t.For >= refusedAfter && errtext.Refused(t.Why)
		if t.Key == key {
			return // a trouble of the shard itself contains more information
		}
	}
}
