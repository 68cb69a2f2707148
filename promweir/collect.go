package promweir

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/health"
)

// descriptions contains the descriptions of the metrics that are computed at each scrape.
type descriptions struct {
	lag, handledLag, savedLag, state, leases, storeUp, leader, epoch, dropped, build *prometheus.Desc
}

func describe(app prometheus.Labels, worker, version string, shards bool) *descriptions {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, app)
	}
	shard, worst := []string{"stream"}, ", of the worker's worst shard."
	if shards {
		shard, worst = append(shard, "shard"), "."
	}
	return &descriptions{
		state:      desc("weir_shard_state", "1 for the state of the shard"+worst, append(shard[:len(shard):len(shard)], "state")...),
		lag:        desc("weir_lag_seconds", "How far reading is behind the tip of the shard"+worst, shard...),
		handledLag: desc("weir_handled_lag_seconds", "How far handling is behind the tip of the shard"+worst, shard...),
		savedLag:   desc("weir_checkpoint_lag_seconds", "How far the saved checkpoint is behind the tip of the shard"+worst, shard...),
		leases:     desc("weir_leases", "Shards held by this worker.", "stream"),
		storeUp:    desc("weir_store_up_timestamp_seconds", "The time of the last heartbeat that the store answered; 0 before the first."),
		leader:     desc("weir_leader", "Whether this worker leads, as far as it knows: 1 or 0."),
		epoch:      desc("weir_leader_epoch", "The leader's epoch when this worker last became the leader or stopped being the leader."),
		dropped:    desc("weir_events_dropped_total", "Events and log records dropped because Options.OnEvent or the logger could not keep up."),
		build: prometheus.NewDesc("weir_build_info", "1, for its labels.", nil,
			prometheus.Labels{"app": app["app"], "worker": worker, "version": version}),
	}
}

// Describe sends the descriptions of all metrics to the channel.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.counters {
		c.Describe(to)
	}
	d := m.described
	for _, desc := range []*prometheus.Desc{d.lag, d.handledLag, d.savedLag, d.state, d.leases, d.storeUp, d.leader, d.epoch, d.dropped, d.build} {
		to <- desc
	}
}

// Collect sends the current values of all metrics to the channel. The values about a consumer's
// shards appear only after [Metrics.Watch].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.counters {
		c.Collect(to)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	d := m.described
	gauge(d.build, 1)
	consumer := m.consumer.Load()
	if consumer == nil {
		return
	}
	answered := 0.0
	if t := consumer.StoreAnswered(); !t.IsZero() {
		answered = float64(t.UnixMilli()) / 1000
	}
	gauge(d.storeUp, answered)
	to <- prometheus.MustNewConstMetric(d.dropped, prometheus.CounterValue, float64(consumer.Counts().EventsDropped))

	_, shards := consumer.Health()
	stand := m.stand(shards)
	gauge(d.leader, stand.leads)
	gauge(d.epoch, float64(stand.epoch))
	for stream, n := range stand.leases {
		gauge(d.leases, float64(n), stream)
	}
	for key, of := range stand.shards {
		labels := []string{key.stream}
		if m.shardLabel {
			labels = append(labels, key.shard)
		}
		gauge(d.state, 1, append(labels[:len(labels):len(labels)], of.state.Label())...)
		known := func(d *prometheus.Desc, lag time.Duration) {
			if lag >= 0 {
				gauge(d, lag.Seconds(), labels...)
			}
		}
		known(d.lag, of.read)
		known(d.handledLag, of.handled)
		known(d.savedLag, of.saved)
	}
}

// standing is the state of a worker's shards. Without the shard label, there is one entry for each
// stream, with the worst state and the largest lags. The key of such an entry has no shard.
type standing struct {
	leads  float64
	epoch  uint64
	leases map[string]int
	shards map[shardKey]shardStanding
}

type shardStanding struct {
	read, handled, saved time.Duration // lags; negative if unknown
	state                health.State
}

// stand computes the standing from the state of the shards.
func (m *Metrics) stand(shards []health.Named) standing {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := standing{epoch: m.epoch, leases: map[string]int{}, shards: map[shardKey]shardStanding{}}
	if m.leads {
		all.leads = 1
	}
	for stream := range m.streams {
		all.leases[stream] = 0
	}
	for _, s := range shards {
		all.leases[s.Stream]++
		key := shardKey{s.Stream, s.Name}
		if !m.shardLabel {
			key.shard = ""
		}
		worst, some := all.shards[key]
		if !some {
			worst = shardStanding{health.Unknown, health.Unknown, health.Unknown, health.OK}
		}
		all.shards[key] = shardStanding{
			max(s.ReadLag, worst.read), max(s.HandledLag, worst.handled), max(s.SavedLag, worst.saved), max(s.State, worst.state),
		}
	}
	return all
}
