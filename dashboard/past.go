package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

// Limits of the history.
const (
	pastEvery   = 30 * time.Second // interval between reads of the history
	pastBound   = 5 * time.Second
	mostMoments = 2_000_000 // maximum number of moments per application
	// A chunk is not read again after it had no additions for this number of minutes.
	settled = 5 // minutes
)

// past is the history of an application's shards. The owners of the shards reported it. A past does
// not change.
type past struct {
	at      time.Time // when the history was read
	missing string    // why there is no history; "" if there is one
	chunks  map[chunkKey]chunk
	shards  map[lease.Key][]moment // sorted by time
	workers map[string]string      // worker names by session
	deaths  map[string]death       // by session
	odd     int                    // number of unreadable chunks
}

type chunkKey struct {
	since   int64
	session string
}

// chunk is one chunk of the history in the store.
type chunk struct {
	samples []history.Sample
	worker  string
	last    int64 // minute of the last sample
}

// moment is the state of a shard in one minute.
type moment struct {
	minute  int64
	session string
	lag     time.Duration // negative if unknown
	age     time.Duration // age of the record at the checkpoint; negative if unknown
	load    lease.Load
	busy    uint8 // percent
	// throttled is how long reading waited because Kinesis throttled it, as a percentage of the
	// minute.
	throttled uint8
	marks     history.Marks
}

const keepsNone = "This store keeps no history, so the page shows nothing from before it was started."

// askPast reads the history again if it is too old.
func (o *observer) askPast(ctx context.Context, app string, w *watched, s *sighting) {
	s.past = w.seen.past
	defer s.finish()
	store, can := o.store.(lease.Historian)
	if !can || !o.store.Abilities().Has(lease.KeepHistory) {
		s.past = past{missing: keepsNone}
		return
	}
	if !s.past.at.IsZero() && s.at.Sub(s.past.at) < pastEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pastBound)
	defer cancel()
	chunks, err := store.History(ctx, app, s.past.next(s.at))
	if err != nil {
		s.past.at, s.past.missing = s.at, "The history cannot be read from the store: "+err.Error()
		return
	}
	first := s.past.chunks == nil
	if s.past = s.past.with(chunks, s.at); first {
		w.watch.Remember(s.past.reports(0))
		return
	}
	w.watch.Recall(s.past.reports(minuteOf(s.at) - observe.RecallMinutes))
}

// reports returns the history from a minute on, in the form of package observe.
func (p past) reports(from int64) observe.Past {
	all := make(observe.Past, len(p.shards))
	for key := range p.shards {
		moments := p.between(key, from, math.MaxInt64-1)
		if len(moments) == 0 {
			continue
		}
		reports := make([]observe.Report, len(moments))
		for i, m := range moments {
			reports[i] = observe.Report{
				Minute: m.minute, Session: m.session, Worker: p.workers[m.session],
				Lag: m.lag, Marks: m.marks, Busy: int(m.busy), Throttled: int(m.throttled),
			}
		}
		all[key] = reports
	}
	return all
}

// finish fills in when shards were finished. It uses the history for shards that finished while no
// page was open.
func (s *sighting) finish() {
	for _, l := range s.view.Leases {
		if _, known := s.gone[l.Key]; known || !l.Finished() {
			continue
		}
		if at, told := s.past.finished(l.Key); told {
			s.gone[l.Key] = at
		}
	}
}

// minuteOf returns the number of the minute that contains t, in the numbering of package history.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// next returns the minute from which chunks must be read. It is the first minute of the oldest
// chunk that may still grow.
func (p past) next(now time.Time) int64 {
	if p.chunks == nil {
		return minuteOf(now.Add(-lease.HistoryKept))
	}
	since := minuteOf(p.at) - settled
	for k, c := range p.chunks {
		if c.last >= minuteOf(p.at)-settled {
			since = min(since, k.since)
		}
	}
	return since
}

// with returns the history with more chunks. A new version of a chunk replaces the earlier one.
// Expired chunks are dropped.
func (p past) with(chunks []lease.HistoryChunk, now time.Time) past {
	next := past{at: now, chunks: map[chunkKey]chunk{}, shards: map[lease.Key][]moment{}, workers: map[string]string{}, odd: p.odd}
	oldest, newest := minuteOf(now.Add(-lease.HistoryKept)), minuteOf(now)+settled
	maps.Copy(next.chunks, p.chunks)
	for _, c := range chunks {
		samples, worker, err := history.Read(c)
		if err != nil {
			next.odd++
			continue
		}
		if len(samples) > 0 {
			next.chunks[chunkKey{c.Since, c.Session}] = chunk{samples, worker, samples[len(samples)-1].Minute}
		}
	}
	maps.DeleteFunc(next.chunks, func(_ chunkKey, c chunk) bool { return c.last < oldest })
	moments := 0
	for _, k := range slices.SortedFunc(maps.Keys(next.chunks), func(a, b chunkKey) int {
		return cmp.Or(cmp.Compare(b.since, a.since), cmp.Compare(a.session, b.session))
	}) {
		next.workers[k.session] = next.chunks[k].worker
		for _, s := range next.chunks[k].samples {
			if s.Minute < oldest || s.Minute > newest || moments >= mostMoments {
				continue
			}
			moments++
			next.shards[s.Key] = append(next.shards[s.Key], moment{s.Minute, k.session, s.Lag, s.Age, s.Load, uint8(s.Busy), uint8(s.Throttled), s.Marks})
		}
	}
	for _, all := range next.shards {
		slices.SortStableFunc(all, inOrder)
	}
	next.addDeaths()
	if next.odd > 0 {
		next.missing = fmt.Sprintf("%d %s of the history cannot be read, for example because a later version of weir wrote them.", next.odd, plural(next.odd, "part", "parts"))
	}
	return next
}

// inOrder compares two moments of a shard. If two owners report about the same minute, the previous
// owner comes first. The previous owner is the one that released or lost the shard, or that held it
// before the minute began.
func inOrder(a, b moment) int {
	rank := func(m moment) int {
		switch over := m.marks&(history.Ended|history.Lost) != 0; {
		case over && m.marks&history.Began == 0:
			return 0
		case over:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(a.minute, b.minute), cmp.Compare(rank(a), rank(b)))
}

// finished returns when a shard was finished, as its owner reported.
func (p past) finished(key lease.Key) (time.Time, bool) {
	for _, m := range slices.Backward(p.shards[key]) {
		if m.marks&history.Finished != 0 {
			return time.Unix(60*m.minute, 0).UTC(), true
		}
	}
	return time.Time{}, false
}

// oldest returns the time of the oldest report, or zero if there is none.
func (p past) oldest() time.Time {
	least := int64(0)
	for _, all := range p.shards {
		if m := all[0].minute; least == 0 || m < least {
			least = m
		}
	}
	if least == 0 {
		return time.Time{}
	}
	return time.Unix(60*least, 0)
}

// happening is the kind of a mark in a picture.
type happening int

const (
	handedOver        happening = iota // its owner released the shard, and another worker took it
	takenOver                          // the owner died, and another worker took the shard
	regainedAfterLoss                  // the owner lost the shard but lived; a worker took the shard
	stalled
)

type marked struct {
	minute   int64
	what     happening
	from, to string // sessions
}

// happenings returns the marks that follow from the moments of a shard.
func happenings(moments []moment) (all []marked) {
	for i, m := range moments {
		if m.marks&history.Stalled != 0 {
			if last := len(all) - 1; last < 0 || all[last] != (marked{m.minute, stalled, "", m.session}) {
				all = append(all, marked{m.minute, stalled, "", m.session})
			}
		}
		if m.marks&history.Began == 0 || i == 0 {
			continue
		}
		last := moments[i-1]
		what := takenOver
		switch {
		case last.marks&history.Lost != 0: // only a living owner reports this
			what = regainedAfterLoss
		case last.session == m.session:
			continue
		case last.marks&history.Ended != 0:
			what = handedOver
		}
		all = append(all, marked{m.minute, what, last.session, m.session})
	}
	return all
}

// worstLag returns, for each minute of a range, the largest lag of any shard. The value is negative
// if the lag is unknown.
func (p past) worstLag(from, to int64) []time.Duration {
	if to <= from {
		return nil
	}
	worst := make([]time.Duration, to-from)
	for i := range worst {
		worst[i] = -1
	}
	for key := range p.shards {
		for _, m := range p.between(key, from, to-1) {
			worst[m.minute-from] = max(worst[m.minute-from], m.lag)
		}
	}
	return worst
}

// between returns the moments of a shard from one minute up to another.
func (p past) between(key lease.Key, from, to int64) []moment {
	all, byMinute := p.shards[key], func(m moment, minute int64) int { return cmp.Compare(m.minute, minute) }
	first, _ := slices.BinarySearchFunc(all, from, byMinute)
	end, _ := slices.BinarySearchFunc(all, to+1, byMinute)
	return all[first:max(first, end)]
}

// trend returns "rising", "falling" or "steady", or "" if too little is known. It compares the last
// third of the lags with the first third.
func trend(lags []time.Duration) string {
	mean := func(some []time.Duration) (time.Duration, bool) {
		var sum time.Duration
		n := 0
		for _, d := range some {
			if d >= 0 {
				sum += d / time.Duration(len(some))
				n++
			}
		}
		if 2*n < len(some) || n == 0 {
			return 0, false
		}
		return sum * time.Duration(len(some)) / time.Duration(n), true
	}
	third := len(lags) / 3
	first, before := mean(lags[:third])
	last, now := mean(lags[len(lags)-third:])
	switch change := last - first; {
	case !before || !now:
		return ""
	case max(change, -change) < enough || max(change, -change) < max(first, last)/10:
		return "steady"
	case change > 0:
		return "rising"
	}
	return "falling"
}

// trendMinutes is the length of the lag curve in the list of applications.
const trendMinutes = 30

// recentLag is the lag of an application in the last minutes.
type recentLag struct {
	Trend string // the result of trend
	Line  string // an SVG path, 60 wide and 14 high; "" if too little is known
}

// agree makes the trend agree with the state. The state covers a shorter time than the trend, so
// the two may differ.
func (r recentLag) agree(s health.State) recentLag {
	switch {
	case r.Trend == "":
	case s == health.FallingBehind:
		r.Trend = "rising"
	case s == health.CatchingUp:
		r.Trend = "falling"
	}
	return r
}

func (p past) recent(now time.Time) recentLag {
	lags := p.worstLag(minuteOf(now)-trendMinutes, minuteOf(now))
	most, known := enough, 0
	for _, d := range lags {
		most = max(most, d)
		if d >= 0 {
			known++
		}
	}
	if known < 2 {
		return recentLag{}
	}
	var path strings.Builder
	step := "M"
	for i, d := range lags {
		if d < 0 {
			step = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%d %s", step, 60*i/(len(lags)-1), place(13-12*float64(d)/float64(most)))
		step = "L"
	}
	return recentLag{trend(lags), path.String()}
}
