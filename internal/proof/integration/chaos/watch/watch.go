// Package watch compares Prometheus' samples of workers during faults with the handlers' files. It
// is pure, and shares nothing with weir except the names of metrics.
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

// Series is a Prometheus series, with every successful scrape.
type Series struct {
	Labels  map[string]string `json:"labels"`
	Samples []Sample          `json:"samples"`
}

// The compared metrics.
const (
	Handled = "weir_handled_records_total"
	Lag     = "weir_handled_lag_seconds"
	Dropped = "weir_events_dropped_total"
	Build   = "weir_build_info" // identifies the process
)

// Metrics returns the names of all metrics of this package.
func Metrics() []string { return []string{Handled, Lag, Dropped, Build} }

// Seen contains the scraped series, by metric name.
type Seen map[string][]Series

// Bounds are the allowed deviations of metrics.
type Bounds struct {
	// Delay is how much later, or earlier, than its file a counter may include a call.
	Delay time.Duration
	// Over is how much a lag gauge may be too large, Under how much too small.
	Over, Under time.Duration
	// Silence is the lag from which a shard counts as silent, more than Under.
	Silence time.Duration
	// Thawed is how long a resumed process may report shards that it has lost meanwhile.
	Thawed time.Duration
}

// Report is the result.
type Report struct {
	Scrapes int `json:"scrapes"` // compared scrapes of a process's count
	Lives   int `json:"lives"`   // processes with at least one scrape
	// the final values of the counters, and of the files: in total, in failed calls, and after the
	// last scrape of a process
	Counted int `json:"counted"`
	Written int `json:"written"`
	Failed  int `json:"in_failed_calls"`
	Unseen  int `json:"after_the_last_scrape"`
	// the largest delay of a counter after the end of a call, and before
	Late  time.Duration `json:"late_ns"`
	Early time.Duration `json:"early_ns"`

	LagSamples int `json:"lag_samples"`   // compared
	Stale      int `json:"stale_samples"` // skipped: of resumed processes
	// skipped: too small during the first call for a shard
	First int           `json:"first_samples"`
	Under time.Duration `json:"lag_under_ns"` // the largest deviation below
	Over  time.Duration `json:"lag_over_ns"`  // the largest deviation above
	Off   int           `json:"lag_off"`      // samples with a larger deviation than allowed

	Silences int           `json:"silences"` // long waits of a shard's records, by the files
	AsLag    int           `json:"silences_told_as_lag"`
	AsAbsent int           `json:"silences_told_as_absence"` // no process reported the shard
	Longest  time.Duration `json:"longest_lag_ns"`           // by the files

	Dropped int      `json:"dropped"` // events or log lines, of all processes
	Wrong   []string `json:"wrong"`   // the first few of each kind
}

// few limits the sentences of a kind.
const few = 5

func (r *Report) blame(so *int, format string, args ...any) {
	if *so++; *so <= few {
		r.Wrong = append(r.Wrong, fmt.Sprintf(format, args...))
	}
}

// Again returns how many records were handled again, given the number of put records: by the
// counters, plus the records after the last scrapes, and by the files. The counters do not include
// records in failed calls, except those that a checkpoint in the middle has confirmed.
func (r *Report) Again(put int) (counted, written int) {
	return r.Counted + r.Unseen - put, r.Written - put
}

// Compare compares the metrics with the files.
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

// livesOf returns the process that answered each scrape.
func livesOf(builds []Series) map[scrape]string {
	all := map[scrape]string{}
	for _, s := range builds {
		for _, sample := range s.Samples {
			all[scrape{s.Labels["instance"], sample.At}] = s.Labels["worker"]
		}
	}
	return all
}

// perLife returns the samples of a metric by process, in the order of time.
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
