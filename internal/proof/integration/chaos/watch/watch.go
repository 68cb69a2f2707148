// Package watch compares Prometheus' samples of workers during faults with the files of the
// handlers. Its result depends only on these. It shares nothing with weir except the names of
// metrics.
package watch

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
)

// Sample is a value at the time of a scrape. The time is that of the clock of the files.
type Sample struct {
	At    int64   `json:"at"`
	Value float64 `json:"value"`
}

// Series is a series in Prometheus, with all its successful scrapes.
type Series struct {
	Labels  map[string]string `json:"labels"`
	Samples []Sample          `json:"samples"`
}

// The names of the compared metrics.
const (
	Handled = "weir_handled_records_total"
	Lag     = "weir_handled_lag_seconds"
	Dropped = "weir_events_dropped_total"
	Build   = "weir_build_info" // identifies the process
)

// Metrics returns the names of all metrics of this package.
func Metrics() []string { return []string{Handled, Lag, Dropped, Build} }

// Seen contains the scraped series by the name of the metric.
type Seen map[string][]Series

// Bounds contains the allowed deviations of metrics.
type Bounds struct {
	// Delay is the maximum time between the end of a call and its appearance in a counter. The
	// counter may also be early by this time.
	Delay time.Duration
	// Over is the maximum error of a lag gauge that is too large. Under is the maximum error of a
	// lag gauge that is too small.
	Over, Under time.Duration
	// Silence is the lag from which a shard counts as silent. It must be larger than Under.
	Silence time.Duration
	// Thawed is how long a resumed process may report shards that it has lost in the meantime.
	Thawed time.Duration
}

// Report is the result of the comparison.
type Report struct {
	Scrapes int `json:"scrapes"` // compared scrapes of a counter
	Lives   int `json:"lives"`   // processes with at least one scrape
	// The final values of the counters and of the files: in total, in failed calls, and after the
	// last scrape of a process.
	Counted int `json:"counted"`
	Written int `json:"written"`
	Failed  int `json:"in_failed_calls"`
	Unseen  int `json:"after_the_last_scrape"`
	// The largest delay of a counter after the end of a call, and the largest lead before it.
	Late  time.Duration `json:"late_ns"`
	Early time.Duration `json:"early_ns"`

	LagSamples int `json:"lag_samples"`   // number of compared samples
	Stale      int `json:"stale_samples"` // samples of resumed processes, which are skipped
	// First is the number of skipped samples that were too small during the first call for a shard.
	First int           `json:"first_samples"`
	Under time.Duration `json:"lag_under_ns"` // largest deviation below
	Over  time.Duration `json:"lag_over_ns"`  // largest deviation above
	Off   int           `json:"lag_off"`      // samples whose deviation is larger than allowed

	Silences int           `json:"silences"` // long waits of a shard's records, according to the files
	AsLag    int           `json:"silences_told_as_lag"`
	AsAbsent int           `json:"silences_told_as_absence"` // waits during which no process reported the shard
	Longest  time.Duration `json:"longest_lag_ns"`           // according to the files

	Dropped int      `json:"dropped"` // events or log lines that all processes dropped
	Wrong   []string `json:"wrong"`   // the first few problems of each kind
}

// few is the maximum number of sentences of each kind.
const few = 5

func (r *Report) blame(so *int, format string, args ...any) {
	if *so++; *so <= few {
		r.Wrong = append(r.Wrong, fmt.Sprintf(format, args...))
	}
}

// Again returns the number of records that were handled again, according to the counters and
// according to the files. put is the number of records that were put. The first result includes the
// records after the last scrapes. The counters do not include records in failed calls, except for
// those that a checkpoint in the middle of the call confirmed.
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

// scrape identifies one answer of a target.
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
