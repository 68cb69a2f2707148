package exporter

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

// exported is a Prometheus collector for the results of a watcher.
type exported struct{ of *watcher }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descUp       = desc("weir_up", "Whether the store answers for the application: 1 or 0.", "app")
	descState    = desc("weir_shard_state", "1 for the present state of the shard, given by its label.", "app", "stream", "shard", "state")
	descSavedLag = desc("weir_checkpoint_lag_seconds", "The age of the oldest record after the shard's checkpoint.", "app", "stream", "shard")
	descLeft     = desc("weir_retention_left_seconds", "The time until unhandled records of the shard expire.", "app", "stream", "shard")
	descAge      = desc("weir_checkpoint_age_seconds", "The time since the shard's checkpoint last moved. It does not move while nothing is written to the shard.", "app", "stream", "shard")
	descLeases   = desc("weir_leases", "Shards of the stream that have an owner.", "app", "stream")
	descUnheld   = desc("weir_leases_unheld", "Unfinished shards of the stream without an owner.", "app", "stream")
	descPaused   = desc("weir_paused", "Whether the stream or its application is paused: 1 or 0.", "app", "stream")
	descWorkers  = desc("weir_workers", "Live workers, by their heartbeats.", "app")
	descLed      = desc("weir_led", "Whether a live worker leads the application: 1 or 0.", "app")
	descReads    = desc("weir_exporter_shard_reads_total", "Lag measurements of shards by this exporter. Each takes one or two of the five reads per second of its shard.", "app")
	descLooked   = desc("weir_exporter_looked_timestamp_seconds", "The time of the store's last answer for the application.", "app")
	descriptions = []*prometheus.Desc{
		descUp, descState, descSavedLag, descLeft, descAge, descLeases, descUnheld, descPaused,
		descWorkers, descLed, descReads, descLooked,
	}
)

// Describe implements prometheus.Collector.
func (exported) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		to <- d
	}
}

// Collect computes the state of the applications and sends their metrics.
func (e exported) Collect(to chan<- prometheus.Metric) {
	now := time.Now()
	for _, a := range e.of.judge(now) {
		gauge := func(d *prometheus.Desc, v float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{a.name}, labels...)...)
		}
		up := 1.0
		if a.err != nil || !a.known {
			up = 0
		}
		gauge(descUp, up)
		if !a.known {
			continue
		}
		gauge(descLooked, float64(a.looked.UnixMilli())/1000)
		to <- prometheus.MustNewConstMetric(descReads, prometheus.CounterValue, float64(a.reads), a.name)
		if up == 1 { // otherwise the living workers are unknown
			gauge(descWorkers, float64(a.group.Living))
			gauge(descLed, a.led())
		}
		for stream, n := range a.group.Streams {
			gauge(descLeases, float64(n.Held), stream)
			gauge(descUnheld, float64(n.Unheld), stream)
			paused := 0.0
			if n.Paused {
				paused = 1
			}
			gauge(descPaused, paused, stream)
		}
		for _, s := range a.shards {
			key := lease.Key{Stream: s.Stream, Shard: s.Name}
			if m, known := a.moved[key]; known && !m.to.IsEnd() {
				gauge(descState, 1, s.Stream, s.Name, s.State.Label())
				gauge(descAge, now.Sub(m.at).Seconds(), s.Stream, s.Name)
				if s.SavedLag >= 0 {
					gauge(descSavedLag, s.SavedLag.Seconds(), s.Stream, s.Name)
				}
				if s.Left >= 0 {
					gauge(descLeft, s.Left.Seconds(), s.Stream, s.Name)
				}
			}
		}
	}
}

func (a *standing) led() float64 {
	if a.group.Leader != "" {
		return 1
	}
	return 0
}

// lagAnswer is the part of /lag.json about one application.
type lagAnswer struct {
	App     string         `json:"app"`
	Verdict health.Verdict `json:"verdict"`
	// Lag is the largest known lag. It is null if no lag is known.
	Lag     *float64 `json:"lag_seconds"`
	Shards  int      `json:"shards"` // unfinished shards
	Held    int      `json:"held"`
	Workers int      `json:"workers"` // live workers
	Seen    string   `json:"seen"`    // when the store last answered
	Error   string   `json:"error,omitempty"`
}

func (a *standing) answer() lagAnswer {
	l := lagAnswer{
		App: a.name, Verdict: health.Conclude(a.facts),
		Workers: a.group.Living, Shards: a.group.Open, Held: a.group.Held,
	}
	if a.known {
		l.Seen = a.looked.UTC().Format(time.RFC3339)
	}
	if a.err != nil {
		l.Error = explain.Error(a.err)
	} else if a.sum.Lag >= 0 {
		seconds := a.sum.Lag.Seconds()
		l.Lag = &seconds
	}
	return l
}

// serveLag answers with all applications. With ?app=NAME it answers with one.
func (w *watcher) serveLag(rw http.ResponseWriter, r *http.Request) {
	all := []lagAnswer{}
	name := r.URL.Query().Get("app")
	for _, a := range w.judge(time.Now()) {
		if name == "" || a.name == name {
			all = append(all, a.answer())
		}
	}
	var body any = struct {
		Apps []lagAnswer `json:"apps"`
	}{all}
	if name != "" {
		if len(all) == 0 {
			http.Error(rw, "no such application is watched", http.StatusNotFound)
			return
		}
		body = all[0]
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(body) // the client may have disconnected
}
