// Package watch compares what Prometheus scraped of workers while things went wrong with what
// their handlers wrote into files. It is pure, and shares nothing with weir but the names of
// metrics.
package watch

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
)

// Sample is a value at the time of a scrape, on the clock of the files.
type Sample struct {
	At    int64   `json:"at"`
	Value float64 `json:"value"`
}

// Series is one of Prometheus, with every scrape that brought it.
type Series struct {
	Labels  map[string]string `json:"labels"`
	Samples []Sample          `json:"samples"`
}

// The metrics that are compared.
const (
	Handled = "weir_handled_records_total"
	Lag     = "weir_handled_lag_seconds"
	Dropped = "weir_events_dropped_total"
	Build   = "weir_build_info" // says which process it was
)

// Metrics are the names of all.
func Metrics() []string { return []string{Handled, Lag, Dropped, Build} }

// Seen is what was scraped, by the name of the metric.
type Seen map[string][]Series

// Bounds are what metrics may be off.
type Bounds struct {
	// Delay is how much later, or earlier, than its file a counter may know of a call.
	Delay time.Duration
	// Over is by how much a gauge of lag may be too large, Under by how much too small.
	Over, Under time.Duration
	// Silence is the lag from which a shard is called silent, more than Under.
	Silence time.Duration
	// Thawed is how long a process that was frozen may tell of what it has lost meanwhile.
	Thawed time.Duration
}

// Report is what came of it.
type Report struct {
	Scrapes int `json:"scrapes"` // of a process's count, each compared
	Lives   int `json:"lives"`   // processes that were scraped at least once
	// what the counters say in the end, and what the files say: in all, in calls that failed, and
	// after the last scrape of a process
	Counted int `json:"counted"`
	Written int `json:"written"`
	Failed  int `json:"in_failed_calls"`
	Unseen  int `json:"after_the_last_scrape"`
	// the most by which a counter knew of a call after its end, and before
	Late  time.Duration `json:"late_ns"`
	Early time.Duration `json:"early_ns"`

	LagSamples int           `json:"lag_samples"`   // compared
	Stale      int           `json:"stale_samples"` // left out: of processes that had been frozen
	First      int           `json:"first_samples"` // left out: too small while the first call for a shard was at work
	Under      time.Duration `json:"lag_under_ns"`  // the most by which a gauge told too little
	Over       time.Duration `json:"lag_over_ns"`   // … and too much
	Off        int           `json:"lag_off"`       // samples that are off by more than the bound

	Silences int           `json:"silences"` // stretches in which records of a shard waited, by the files
	AsLag    int           `json:"silences_told_as_lag"`
	AsAbsent int           `json:"silences_told_as_absence"` // nobody told of the shard
	Longest  time.Duration `json:"longest_lag_ns"`           // by the files

	Dropped int      `json:"dropped"` // events or log lines, of all processes
	Wrong   []string `json:"wrong"`   // the first few of each sort
}

// few is how many sentences there are of a sort.
const few = 5

func (r *Report) blame(so *int, format string, args ...any) {
	if *so++; *so <= few {
		r.Wrong = append(r.Wrong, fmt.Sprintf(format, args...))
	}
}

// Again is how many records were handled again, when put is how many there are: by the counters,
// with what came after their last scrapes, and by the files. The counters know nothing of records
// in calls that failed, but for those that a checkpoint in the middle has confirmed.
func (r *Report) Again(put int) (counted, written int) {
	return r.Counted + r.Unseen - put, r.Written - put
}

// Compare says how far the metrics agree with the files.
func Compare(h verdict.History, seen Seen, b Bounds) *Report {
	r := &Report{}
	lives := livesOf(seen[Build])
	r.counts(h, seen, lives, b)
	r.lags(h, seen, lives, b)
	if all := r.Counted + r.Unseen; r.Dropped == 0 && (all > r.Written || all < r.Written-r.Failed) {
		r.Wrong = append(r.Wrong, fmt.Sprintf("all counters have %d records, with %d after their last scrapes; the files have %d, %d of them in calls that failed", r.Counted, r.Unseen, r.Written, r.Failed))
	}
	return r
}

// scrape is one answer of a target.
type scrape struct {
	instance string
	at       int64
}

// livesOf says which process answered each scrape.
func livesOf(builds []Series) map[scrape]string {
	all := map[scrape]string{}
	for _, s := range builds {
		for _, sample := range s.Samples {
			all[scrape{s.Labels["instance"], sample.At}] = s.Labels["worker"]
		}
	}
	return all
}

// perLife are the samples of a metric by process, in the order of time.
func perLife(all []Series, lives map[scrape]string) map[string][]Sample {
	by := map[string][]Sample{}
	for _, s := range all {
		for _, sample := range s.Samples {
			if life := lives[scrape{s.Labels["instance"], sample.At}]; life != "" {
				by[life] = append(by[life], sample)
			}
		}
	}
	for _, samples := range by {
		sortSamples(samples)
	}
	return by
}
