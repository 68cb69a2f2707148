package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Handled is one handled record. The records of a key are numbered 1, 2, 3, … in the order in which
// they were put.
type Handled struct {
	At     int64 // Unix nanoseconds, on one clock for all workers
	Worker string
	Shard  string
	Epoch  uint64
	Key    string
	N      int
}

// Verdict is the result of comparing the handled records with those that were put.
type Verdict struct {
	Put        int
	Handled    int // includes repetitions
	Lost       int // records that were put and never handled
	Duplicates int // handlings of records that had been handled before
	// Disorder counts records that were handled before an earlier record of the same key, or by an
	// owner that already had a successor.
	Disorder int

	// Complaints describes the first few losses and disorders, with a sentence for each.
	Complaints []string
}

// Clean reports whether no record was lost and no order was broken.
func (v Verdict) Clean() bool { return v.Lost == 0 && v.Disorder == 0 }

// String formats the verdict in one line.
func (v Verdict) String() string {
	return fmt.Sprintf("put %d, handled %d, lost %d, handled again %d, out of order %d", v.Put, v.Handled, v.Lost, v.Duplicates, v.Disorder)
}

func (v *Verdict) complain(format string, args ...any) {
	if len(v.Complaints) < 10 {
		v.Complaints = append(v.Complaints, fmt.Sprintf(format, args...))
	}
}

// Judge compares the number of records that were put for each key with the handled records, which
// it sorts by time. A new owner may repeat handled records. It may begin at any of them, but must
// not leave gaps. An owner must handle no more records after the owner at a higher epoch of the
// shard has begun. If a handled record is unknown, Judge returns an error and no verdict.
func Judge(put map[string]int, handled []Handled) (Verdict, error) {
	var v Verdict
	for _, n := range put {
		v.Put += n
	}
	slices.SortStableFunc(handled, func(a, b Handled) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Epoch, b.Epoch)) })
	type progress struct {
		at, high int
		seen     []bool
	}
	keys := make(map[string]*progress, len(put))
	for key, n := range put {
		keys[key] = &progress{seen: make([]bool, n+1)}
	}
	epochs := map[string]uint64{}
	for _, h := range handled {
		if h.N < 1 || h.N > put[h.Key] {
			return v, fmt.Errorf("worker %s handled record %d of key %q, of which %d were put", h.Worker, h.N, h.Key, put[h.Key])
		}
		v.Handled++
		k := keys[h.Key]
		if h.N > k.at+1 || h.N < k.high && !k.seen[h.N] { // also in a repetition
			v.Disorder++
			v.complain("%s handled record %d of key %s in %s at epoch %d after record %d", h.Worker, h.N, h.Key, h.Shard, h.Epoch, k.at)
		}
		if k.seen[h.N] {
			v.Duplicates++
		}
		k.at, k.high, k.seen[h.N] = h.N, max(k.high, h.N), true
		if h.Epoch < epochs[h.Shard] {
			v.Disorder++
			v.complain("%s handled record %d of key %s in %s at epoch %d after epoch %d", h.Worker, h.N, h.Key, h.Shard, h.Epoch, epochs[h.Shard])
		}
		epochs[h.Shard] = max(epochs[h.Shard], h.Epoch)
	}
	for _, key := range slices.Sorted(maps.Keys(put)) {
		missing := 0
		for _, seen := range keys[key].seen[1:] {
			if !seen {
				missing++
			}
		}
		if missing > 0 {
			v.Lost += missing
			v.complain("%d of %d records of key %s were never handled; the highest handled number is %d", missing, put[key], key, keys[key].high)
		}
	}
	return v, nil
}

// Silence describes the silence of a shard in a time range.
type Silence struct {
	Longest time.Duration // between two consecutive records
	Total   time.Duration // sum of all times that are longer than usual
	Breaks  int           // number of these times
}

// Silences measures, for each shard, the gaps between consecutive records. It includes only gaps
// that end at the time from or later. The gap between the last record of a shard and the time end
// is included too. A gap of at most usual is normal.
func Silences(handled []Handled, from, end time.Time, usual time.Duration) map[string]Silence {
	slices.SortStableFunc(handled, func(a, b Handled) int { return cmp.Compare(a.At, b.At) })
	last := map[string]int64{}
	all := map[string]Silence{}
	note := func(shard string, until int64) {
		since, seen := last[shard]
		if !seen || until < from.UnixNano() {
			return
		}
		s, gap := all[shard], time.Duration(until-since)
		s.Longest = max(s.Longest, gap)
		if gap > usual {
			s.Total += gap
			s.Breaks++
		}
		all[shard] = s
	}
	for _, h := range handled {
		note(h.Shard, h.At)
		last[h.Shard] = h.At
	}
	for shard := range last {
		note(shard, end.UnixNano())
	}
	return all
}
