package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
)

// Report is the report of a shard's owner about one minute.
type Report struct {
	Minute  int64 // since the beginning of 1970
	Session string
	Worker  string        // name of the worker, "" if unknown
	Lag     time.Duration // handled lag, negative if unknown
	Marks   history.Marks
	// Busy is the percentage of the minute in which the handler ran, and Throttled the percentage
	// in which reading waited because of throttling.
	Busy, Throttled int
}

// Past contains the reports about shards, in the order of time. Old reports are missing. Reports of
// workers that write no history are missing too.
type Past map[lease.Key][]Report

const (
	// pastNeeded is the time after the first look for which a Watch keeps the past.
	pastNeeded = 5 * time.Minute
)

// PastOf decodes chunks of history. It leaves out the unreadable ones.
func PastOf(chunks []lease.HistoryChunk) Past {
	p := Past{}
	for _, c := range chunks {
		samples, worker, err := history.Read(c)
		if err != nil {
			continue
		}
		for _, s := range samples {
			p[s.Key] = append(p[s.Key], Report{
				s.Minute, c.Session, worker, s.Lag, s.Marks, s.Busy, s.Throttled,
			})
		}
	}
	for _, all := range p {
		slices.SortStableFunc(all, inOrder)
	}
	return p
}

// inOrder compares reports about a shard. Within a minute, the report of the owner that released
// the shard comes first.
func inOrder(a, b Report) int {
	held := func(r Report) int {
		if r.Marks&(history.Ended|history.Lost) != 0 {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Minute, b.Minute), cmp.Compare(held(a), held(b)))
}

// at returns when a worker that goes on reported.
func (r Report) at() time.Time {
	return time.Unix(60*r.Minute, 0).Add(history.ReportsAt(r.Worker))
}

// before returns observations from the reports about a shard before its first observation. owner is
// the session that owns the lease now, and going are the sessions that have not ended.
func (p Past) before(
	key lease.Key, first health.Observation, owner string, going map[string]bool, o health.Options,
) *health.Observations {
	w, span := &health.Observations{Allowed: o.Allowed}, o.Defaults().TrendOver
	var last Report
	for _, r := range p[key] {
		at := time.Unix(60*r.Minute, 0)
		if !at.Before(first.At) {
			break
		}
		if at = r.at(); !at.Before(first.At) {
			at = first.At.Add(-time.Millisecond)
		}
		// When a worker stops, it may report a second time in the same minute.
		if r.Minute == last.Minute && r.Session == last.Session {
			r.Marks |= last.Marks
		}
		last = r
		w.Add(health.Observation{
			At: at, Owner: cmp.Or(r.Worker, r.Session, "a worker"), Past: true,
			HandledLag: r.Lag, SavedLag: health.Unknown, ReadLag: health.Unknown,
		}, span)
	}
	if last.Session == "" || first.Owner != "" || owner != "" && owner != last.Session {
		return w
	}
	end := last.at().Add(time.Minute) // the last owner would have reported again by this time
	if last.Marks&(history.Ended|history.Lost) != 0 {
		// The report itself is an observation with an owner. A worker that stops reports at any
		// time.
		if end = last.at().Add(time.Millisecond); !going[last.Session] {
			end = time.Unix(60*(last.Minute+1), 0)
		}
	}
	if end.Before(first.At) {
		w.Add(health.Observation{
			At: end, Reason: first.Reason, Past: true,
			HandledLag: health.Unknown, SavedLag: health.Unknown, ReadLag: health.Unknown,
		}, span)
	}
	return w
}
