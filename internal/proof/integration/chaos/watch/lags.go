package watch

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
)

// waiting is a record of a shard. It contains the times of its put, of its first handling, and of
// the end of the first successful call with it.
type waiting struct{ put, handled, done int64 }

// queue contains the records of a shard in the order of their puts. Queries must be in the order of
// time.
type queue struct {
	records []waiting
	head    int
	until   func(waiting) int64
}

// lag returns how long the oldest waiting record has waited at time t. t must not be before the
// time of the previous query.
func (q *queue) lag(t int64) time.Duration {
	for q.head < len(q.records) && q.until(q.records[q.head]) <= t {
		q.head++
	}
	if q.head == len(q.records) || q.records[q.head].put > t {
		return 0
	}
	return time.Duration(t - q.records[q.head].put)
}

// waits returns the records of each shard.
func waits(h verdict.History) map[string][]waiting {
	type key struct {
		life, shard string
		epoch       uint64
		start       int64
	}
	ends := map[key]int64{}
	for _, j := range h.Journals {
		for _, c := range j.Calls {
			if !c.Failed {
				ends[key{j.Life, c.Shard, c.Epoch, c.Start}] = c.End
			}
		}
	}
	type first struct {
		shard string
		waiting
	}
	firsts := map[verdict.Put]*first{}
	for _, j := range h.Journals {
		for _, r := range j.Handlings {
			f := firsts[r.Put]
			if f == nil {
				f = &first{shard: r.Shard, waiting: waiting{put: r.At, handled: r.End}}
				firsts[r.Put] = f
			}
			if r.End < f.handled {
				f.handled, f.shard = r.End, r.Shard
			}
			if end := ends[key{j.Life, r.Shard, r.Epoch, r.Start}]; end != 0 && (f.done == 0 || end < f.done) {
				f.done = end
			}
		}
	}
	all := map[string][]waiting{}
	for _, f := range firsts {
		if f.done == 0 { // only in calls that failed, or whose process died
			f.done = f.handled
		}
		all[f.shard] = append(all[f.shard], f.waiting)
	}
	for _, records := range all {
		slices.SortFunc(records, func(a, b waiting) int { return cmp.Compare(a.put, b.put) })
	}
	return all
}

// thawed reports whether a process was frozen at a time or shortly before.
func thawed(life string, at int64, faults []verdict.Fault, b Bounds) bool {
	return slices.ContainsFunc(faults, func(f verdict.Fault) bool {
		return f.Froze && slices.Contains(f.Lives, life) && at >= f.From && at <= f.To+int64(b.Thawed)
	})
}

type owner struct{ life, shard string }

// term contains the times at which a process began and finished its first call for a shard in an
// epoch.
type term struct{ began, done int64 }

// firstCalls returns the terms of each process and shard, in the order of time.
func firstCalls(h verdict.History) map[owner][]term {
	type key struct {
		owner
		epoch uint64
	}
	first := map[key]term{}
	for _, j := range h.Journals {
		for _, c := range j.Calls {
			k := key{owner{j.Life, c.Shard}, c.Epoch}
			if t, some := first[k]; !some || c.Start < t.began {
				first[k] = term{c.Start, c.End}
			}
		}
	}
	all := map[owner][]term{}
	for k, t := range first {
		all[k.owner] = append(all[k.owner], t)
	}
	for _, terms := range all {
		slices.SortFunc(terms, func(a, b term) int { return cmp.Compare(a.began, b.began) })
	}
	return all
}

// begins reports whether a process had not finished its first call for a shard at a time, or would
// begin that call within a scrape or two. Until the first call has ended, the process knows when it
// read its current records, but not when they were put.
func begins(terms []term, at int64) bool {
	const soon = 2 * int64(time.Second)
	for i, t := range terms {
		if at < t.done {
			return i == 0 || at >= t.began-soon
		}
	}
	return len(terms) == 0
}

// told is a lag that a process reported for a shard.
type told struct {
	Sample
	life string
}

// lags compares the lag gauges with the waiting times of records. It checks that long waits are
// reported.
func (r *Report) lags(h verdict.History, seen Seen, lives map[scrape]string, b Bounds) {
	byShard := map[string][]told{}
	for _, s := range seen[Lag] {
		shard := s.Labels["shard"]
		for _, sample := range s.Samples {
			byShard[shard] = append(byShard[shard], told{sample, lives[scrape{s.Labels["instance"], sample.At}]})
		}
	}
	off, unseen := 0, 0
	all, first := waits(h), firstCalls(h)
	for _, shard := range sorted(all) {
		samples := byShard[shard]
		slices.SortFunc(samples, func(a, b told) int { return cmp.Compare(a.At, b.At) })
		least := queue{records: all[shard], until: func(w waiting) int64 { return w.handled }}
		most := queue{records: all[shard], until: func(w waiting) int64 { return w.done }}
		for _, s := range samples {
			low, high := least.lag(s.At), max(most.lag(s.At), least.lag(s.At))
			if thawed(s.life, s.At, h.Faults, b) {
				r.Stale++
				continue
			}
			says := time.Duration(s.Value * float64(time.Second))
			if low > says && begins(first[owner{s.life, shard}], s.At) {
				r.First++
				continue
			}
			r.LagSamples++
			r.Under, r.Over = max(r.Under, low-says), max(r.Over, says-high)
			if low-says > b.Under || says-high > b.Over {
				r.Off++
				r.blame(&off, "%s says that %s is %v behind; by the files its oldest record has waited for %v to %v", s.life, shard, says, low, high)
			}
		}
		r.silences(shard, all[shard], samples, b, &unseen)
	}
}

// silences checks that each long wait of a shard's records is reported: as a lag, or because no
// process reports metrics of the shard.
func (r *Report) silences(shard string, records []waiting, samples []told, b Bounds, unseen *int) {
	if len(records) == 0 {
		return
	}
	const step = int64(time.Second) // interval of scrapes
	q := queue{records: records, until: func(w waiting) int64 { return w.handled }}
	silent, asLag, asAbsent := false, false, false
	var since int64
	end := func(t int64) {
		switch {
		case !silent:
			return
		case asLag:
			r.AsLag++
		case asAbsent:
			r.AsAbsent++
		default:
			r.blame(unseen, "records of %s waited for more than %v from %v on for %v, and no metric tells of it", shard, b.Silence, time.Duration(since), time.Duration(t-since))
		}
		silent, asLag, asAbsent = false, false, false
	}
	last := records[len(records)-1].put
	for t := records[0].put; t <= last+step || silent; t += step {
		lag := q.lag(t)
		r.Longest = max(r.Longest, lag)
		if lag <= b.Silence {
			end(t)
			continue
		}
		if !silent {
			silent, since = true, t
			r.Silences++
		}
		// Find the values reported since the oldest record was put, and the longest gap between
		// them.
		at, _ := slices.BinarySearchFunc(samples, t-int64(lag), func(s told, at int64) int { return cmp.Compare(s.At, at) })
		before := t - int64(lag)
		for _, s := range samples[at:] {
			if s.At > t+step {
				break
			}
			asAbsent = asAbsent || s.At-before > 2*step
			before = s.At
			asLag = asLag || time.Duration(s.Value*float64(time.Second)) >= b.Silence-b.Under
		}
		asAbsent = asAbsent || t-before > 2*step
	}
}

func sorted(all map[string][]waiting) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
