package emfweir

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/health"
)

// line is one line: its dimensions, and its metrics in the order of their definition.
type line struct {
	dimensions []pair
	metrics    []metric
}

type pair struct{ name, value string }

type metric struct {
	name, unit string
	value      any // a number, or up to 100 numbers
}

// lines returns the lines for the events so far and starts the next interval.
func (m *Metrics) lines(held []weir.ShardStatus) []line {
	m.mu.Lock()
	shards, taken, lost := m.shards, m.taken, m.lost
	m.shards, m.taken, m.lost = map[shardKey]*counts{}, 0, 0
	m.mu.Unlock()

	leases := 0
	worst := time.Duration(-1)
	for _, s := range held {
		if s.Reason == health.Abandoned { // another worker may own the shard
			continue
		}
		leases++
		key := shardKey{s.Stream, s.Shard}
		c := shards[key]
		if c == nil {
			c = &counts{behind: -1}
			shards[key] = c
		}
		c.behind = max(c.behind, s.ReadLag)
	}
	if !m.byShard {
		shards = byStream(shards)
	}
	var all []line
	for _, key := range sorted(shards) {
		worst = max(worst, shards[key].behind)
		all = append(all, m.processed(key, shards[key]))
	}
	if worst >= 0 {
		all = append(all, line{[]pair{{"Operation", "ApplicationTracker"}}, []metric{{"MillisBehindLatest", "Milliseconds", worst.Milliseconds()}}})
	}
	return append(all,
		line{m.ofWorker("RenewAllLeases"), []metric{{"CurrentLeases", "Count", leases}, {"LostLeases", "Count", lost}}},
		line{m.ofWorker("TakeLeases"), []metric{{"TakenLeases", "Count", taken}}})
}

// ofWorker returns the dimensions for the metrics of a worker.
func (m *Metrics) ofWorker(operation string) []pair {
	all := []pair{{"Operation", operation}}
	if m.byShard && m.worker != "" {
		all = append(all, pair{"WorkerIdentifier", m.worker})
	}
	return all
}

// processed returns the line for a shard or a stream.
func (m *Metrics) processed(key shardKey, c *counts) line {
	l := line{dimensions: []pair{{"Operation", "ProcessTask"}}}
	if m.byStream {
		l.dimensions = append(l.dimensions, pair{"StreamId", key.stream})
	}
	if m.byShard {
		l.dimensions = append(l.dimensions, pair{"ShardId", key.shard})
	}
	l.metrics = []metric{{"RecordsProcessed", "Count", c.records}, {"DataBytesProcessed", "Bytes", c.bytes}}
	if c.behind >= 0 {
		l.metrics = append(l.metrics, metric{"MillisBehindLatest", "Milliseconds", c.behind.Milliseconds()})
	}
	for _, d := range []struct {
		name string
		of   *durations
	}{{"RecordProcessor.processRecords.Time", &c.handling}, {"KinesisDataFetcher.getRecords.Time", &c.reading}} {
		if d.of.n > 0 {
			l.metrics = append(l.metrics, metric{d.name, "Milliseconds", d.of.values()})
		}
	}
	// A metric whose count is 0 is left out. It then costs nothing, and an alarm can treat it as
	// not breaching.
	for _, n := range []struct {
		name string
		of   int
	}{{"HandlerFailures", c.failures}, {"RecordsDeadLettered", c.deadLettered}, {"ReadsThrottled", c.throttle}} {
		if n.of > 0 {
			l.metrics = append(l.metrics, metric{n.name, "Count", n.of})
		}
	}
	return l
}

func byStream(shards map[shardKey]*counts) map[shardKey]*counts {
	all := map[shardKey]*counts{}
	for _, key := range sorted(shards) {
		stream := shardKey{stream: key.stream}
		if all[stream] == nil {
			all[stream] = &counts{behind: -1}
		}
		all[stream].merge(shards[key])
	}
	return all
}

func sorted(shards map[shardKey]*counts) []shardKey {
	keys := make([]shardKey, 0, len(shards))
	for key := range shards {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b shardKey) int { return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.shard, b.shard)) })
	return keys
}

// encode returns the line in the embedded metric format, with a newline.
func (l line) encode(namespace string, now time.Time) ([]byte, error) {
	type definition struct {
		Name string
		Unit string
	}
	type directive struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []definition
	}
	members := map[string]any{}
	d := directive{Namespace: namespace, Dimensions: [][]string{nil}}
	for _, p := range l.dimensions {
		d.Dimensions[0] = append(d.Dimensions[0], p.name)
		members[p.name] = p.value
	}
	for _, m := range l.metrics {
		d.Metrics = append(d.Metrics, definition{m.name, m.unit})
		members[m.name] = m.value
	}
	members["_aws"] = struct {
		Timestamp         int64
		CloudWatchMetrics []directive
	}{now.UnixMilli(), []directive{d}}
	text, err := json.Marshal(members)
	return append(text, '\n'), err
}
