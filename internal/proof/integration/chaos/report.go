package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
	"github.com/weir-go/weir/internal/proof/integration/chaos/watch"
)

// report is the result of one run.
type report struct {
	settings
	Took time.Duration `json:"took_ns"`
	verdict.Verdict
	Effects int `json:"effects,omitempty"` // rows or lines, with -sink
	Letters int `json:"letters,omitempty"` // with -failing; includes duplicates
	// Subscribed and Polled are the numbers of calls that reached Kinesis.
	Subscribed int      `json:"subscribe_calls"`
	Polled     int      `json:"get_records_calls"`
	Wrong      []string `json:"wrong"` // broken promises that the journals do not show
	// Machine is the largest delay of the producer. The machine causes this part of the waiting
	// times.
	Machine time.Duration `json:"machine_late_ns"`
	Metrics *watch.Report `json:"metrics,omitempty"`
	Dir     string        `json:"dir,omitempty"` // directory of the files, if they were kept

	faults int // number of faults, with -sink, where the verdict does not count them
}

func (r *report) clean() bool {
	return r.Clean() && len(r.Wrong) == 0 && (r.Metrics == nil || len(r.Metrics.Wrong) == 0)
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *report) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s, reading %s: %v with %d workers, %d shards at first, %d records a second, heartbeats of %v, failover after %v, seed %d\n\n",
		r.Store, r.Reading, r.Took.Round(time.Second), r.Workers, r.Shards, r.Rate, r.Beat, r.Failover, r.Seed)
	if r.Sink != "" {
		fmt.Fprintf(w, "%d faults, %d records put, %d effects\n", r.faults, r.Put, r.Effects)
		r.end(w)
		return
	}
	fmt.Fprintf(w, "%-40s %6s %9s %13s %9s\n", "fault", "times", "repeated", "longest wait", "allowed")
	times := 0
	for _, k := range r.Kinds {
		fmt.Fprintf(w, "%-40s %6d %9d %13s %9s\n", k.Kind, k.Times, k.Repeated, brief(k.Wait), brief(k.Allowed))
		times += k.Times
	}
	fmt.Fprintf(w, "%-40s %6s %9s %13s %9s\n", "none", "", "", brief(r.Calm), brief(r.Allowance))
	fmt.Fprintf(w, "\n%d faults, %d records put, %d lost, %d order breaks; %d handled again, %d of them without a reason\n",
		times, r.Put, r.Lost, r.Disorder, r.Repeated, r.Unexplained)
	fmt.Fprintf(w, "%d overlaps (%d records were in the hands of frozen processes, which nobody can prevent); %d checkpoints confirmed, %d broken\n",
		r.Overlaps, r.Late, r.Saves, r.Backwards)
	if r.Failing {
		fmt.Fprintf(w, "%d records were dead-lettered, in %d dead letters\n", r.GivenUp, r.Letters)
		r.end(w)
		return
	}
	fmt.Fprintf(w, "%d records waited for longer than allowed, which is a fault's bound and %v for the machine; the machine held this process up for %v at most\n",
		r.Silences, r.Allowance, brief(r.Machine))
	if r.Subscribed+r.Polled > 0 { // otherwise the numbers are not known any more
		fmt.Fprintf(w, "Kinesis had %d calls of SubscribeToShard, all over TLS and HTTP/2, and %d of GetRecords\n", r.Subscribed, r.Polled)
	}
	if r.Metrics != nil {
		r.writeMetrics(w)
	}
	r.end(w)
}

// writeMetrics reports whether the samples in Prometheus agree with the files.
func (r *report) writeMetrics(w io.Writer) {
	m := r.Metrics
	counted, written := m.Again(r.Put)
	fmt.Fprintf(w, "\nWhat Prometheus has seen of %d processes, each second:\n", m.Lives)
	fmt.Fprintf(w, "%d records handled; with %d after the last scrapes, %d of them again; the files have %d, %d of them again, %d in calls that failed or died\n",
		m.Counted, m.Unseen, counted, m.Written, written, m.Failed)
	fmt.Fprintf(w, "%d scrapes of counters, %v behind the files at most and %v ahead; %d events or log lines were dropped\n",
		m.Scrapes, m.Late.Round(time.Millisecond), m.Early.Round(time.Millisecond), m.Dropped)
	fmt.Fprintf(w, "%d gauges of lag, too small by %v at most and too large by %v, %d of them by more than the bound (%v, %v); left out: %d of processes that had been frozen, %d too small while the first call for a shard was at work\n",
		m.LagSamples, m.Under.Round(time.Millisecond), m.Over.Round(time.Millisecond), m.Off, watchedBounds(r.settings).Under, watchedBounds(r.settings).Over, m.Stale, m.First)
	fmt.Fprintf(w, "%d times records of a shard waited for more than %v, %s at most: %d times a gauge told it, %d times nobody told of the shard\n",
		m.Silences, watchedBounds(r.settings).Silence, brief(m.Longest), m.AsLag, m.AsAbsent)
	for _, wrong := range m.Wrong {
		fmt.Fprintln(w, "  broken:", wrong)
	}
}

func (r *report) end(w io.Writer) {
	for _, v := range append(r.Violations, r.Wrong...) {
		fmt.Fprintln(w, "  broken:", v)
	}
	switch {
	case r.clean():
		fmt.Fprintln(w, "every promise was kept")
	default:
		fmt.Fprintln(w, "promises were broken; the files are in", r.Dir)
	}
}

func brief(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
