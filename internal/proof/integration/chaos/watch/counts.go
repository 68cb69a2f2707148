package watch

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
)

func sortSamples(all []Sample) {
	slices.SortFunc(all, func(a, b Sample) int { return cmp.Compare(a.At, b.At) })
}

// call is the end of a handler's call, with the number of its records.
type call struct {
	end     int64
	records int
}

// ledger contains calls in the order of their ends, with running totals of records.
type ledger struct {
	ends []int64
	sums []int
}

func newLedger(calls []call) (l ledger) {
	slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.end, b.end) })
	sum := 0
	for _, c := range calls {
		sum += c.records
		l.ends, l.sums = append(l.ends, c.end), append(l.sums, sum)
	}
	return l
}

// at returns the number of records in calls that had ended at a time.
func (l ledger) at(t int64) int {
	if i := sort.Search(len(l.ends), func(i int) bool { return l.ends[i] > t }); i > 0 {
		return l.sums[i-1]
	}
	return 0
}

// passed returns the time at which the total first exceeded n. It also reports whether that
// happened.
func (l ledger) passed(n int) (int64, bool) {
	i := sort.SearchInts(l.sums, n+1)
	if i == len(l.sums) {
		return 0, false
	}
	return l.ends[i], true
}

// ledgers returns the successful calls of a process, and all its calls that ended. failed is the
// number of records of the other calls: those that failed, and those in which the process died.
func ledgers(j verdict.Journal) (succeeded, all ledger, failed int) {
	type key struct {
		shard string
		epoch uint64
		start int64
	}
	records := map[key]int{}
	for _, h := range j.Handlings {
		records[key{h.Shard, h.Epoch, h.Start}]++
	}
	var well, any []call
	for _, c := range j.Calls {
		n := records[key{c.Shard, c.Epoch, c.Start}]
		any = append(any, call{c.End, n})
		if c.Failed {
			failed += n
		} else {
			well = append(well, call{c.End, n})
		}
		delete(records, key{c.Shard, c.Epoch, c.Start})
	}
	for _, n := range records { // the process died during these calls
		failed += n
	}
	return newLedger(well), newLedger(any), failed
}

// counts compares the counter of each process with its file, at each scrape.
func (r *Report) counts(h verdict.History, seen Seen, lives map[scrape]string, b Bounds) {
	counted, dropped := perLife(seen[Handled], lives), perLife(seen[Dropped], lives)
	behind, ahead := 0, 0
	for _, j := range h.Journals {
		well, all, failed := ledgers(j)
		r.Written += len(j.Handlings)
		r.Failed += failed
		samples := counted[j.Life]
		lost := 0.0
		if d := dropped[j.Life]; len(d) > 0 {
			lost = d[len(d)-1].Value
		}
		r.Dropped += int(lost)
		if len(samples) == 0 {
			r.Unseen += total(well)
			continue
		}
		r.Lives++
		for _, s := range samples {
			r.Scrapes++
			n := int(s.Value)
			if n < well.at(s.At) && lost == 0 {
				missed, _ := well.passed(n)
				late := time.Duration(s.At - missed)
				r.Late = max(r.Late, late)
				if late > b.Delay {
					r.blame(&behind, "%s counts %d records, %v after the file had %d", j.Life, n, late, well.at(missed))
				}
			}
			if n > all.at(s.At) {
				came, ever := all.passed(n - 1)
				early := time.Duration(came - s.At)
				if ever {
					r.Early = max(r.Early, early)
				}
				if !ever || early > b.Delay {
					r.blame(&ahead, "%s counts %d records where the file has %d, of %d in all", j.Life, n, all.at(s.At), total(all))
				}
			}
		}
		last := samples[len(samples)-1]
		r.Counted += int(last.Value)
		r.Unseen += total(well) - well.at(last.At)
	}
}

func total(l ledger) int {
	if len(l.sums) == 0 {
		return 0
	}
	return l.sums[len(l.sums)-1]
}
