package engine

import (
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// metricMinutes is how many minutes of sums a queue keeps for its metrics.
const metricMinutes = 180

// queueMinute contains the sums of one minute.
type queueMinute struct {
	at                            int64 // minutes since 1970
	received, acknowledged, empty int64
}

// minute returns the sums of the current minute.
func (q *queue) minute(now time.Time) *queueMinute {
	at := now.Unix() / 60
	if n := len(q.minutes); n == 0 || q.minutes[n-1].at != at {
		if n >= metricMinutes {
			q.minutes = append(q.minutes[:0], q.minutes[1:]...)
		}
		q.minutes = append(q.minutes, queueMinute{at: at})
	}
	return &q.minutes[len(q.minutes)-1]
}

// QueueMetrics is a request for metrics of queues, as CloudWatch's GetMetricData.
type QueueMetrics struct {
	start, end float64 // seconds since 1970
	queries    []metricQuery
}

type metricQuery struct {
	id, namespace, name string
	dimensions          map[string]string
	period              int64
}

// Decode reads a request in the CBOR of Smithy.
func (r *QueueMetrics) Decode(d codec.Decoder) error {
	return codec.Fields{
		{Name: "StartTime", Into: epoch(&r.start)},
		{Name: "EndTime", Into: epoch(&r.end)},
		{Name: "MetricDataQueries", Into: func(d codec.Decoder) error { return d.Array(func() error { return r.query(d) }) }},
	}.Decode(d)
}

// query reads one query. Members that are not about metrics of queues are skipped.
func (r *QueueMetrics) query(d codec.Decoder) error {
	q := metricQuery{dimensions: map[string]string{}, period: 60}
	var id, namespace, name codec.Opt[string]
	var period codec.Opt[int64]
	dimension := func(d codec.Decoder) error {
		var name, value codec.Opt[string]
		err := codec.Fields{{Name: "Name", Into: &name}, {Name: "Value", Into: &value}}.Decode(d)
		q.dimensions[name.V] = value.V
		return err
	}
	metric := codec.Fields{
		{Name: "Namespace", Into: &namespace}, {Name: "MetricName", Into: &name},
		{Name: "Dimensions", Into: func(d codec.Decoder) error { return d.Array(func() error { return dimension(d) }) }},
	}
	err := codec.Fields{
		{Name: "Id", Into: &id},
		{Name: "MetricStat", Into: codec.Fields{{Name: "Metric", Into: metric}, {Name: "Period", Into: &period}}},
	}.Decode(d)
	q.id, q.namespace, q.name = id.V, namespace.V, name.V
	if period.V > 0 {
		q.period = period.V
	}
	r.queries = append(r.queries, q)
	return err
}

func epoch(to *float64) func(codec.Decoder) error {
	return func(d codec.Decoder) (err error) {
		*to, _, err = d.Float()
		return err
	}
}

// point is a value of a metric at a time in seconds since 1970.
type point struct{ at, value int64 }

// Answer writes the answer, with the newest value first. Numbers of records have only one value,
// that of now. A metric without values has no points, as in CloudWatch.
func (e *Engine) Answer(now time.Time, r *QueueMetrics, out *codec.Encoder) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out.Map()
	out.Key("MetricDataResults").Array(len(r.queries))
	for i := range r.queries {
		q := &r.queries[i]
		points := e.points(now, r, q)
		out.Elem().Map()
		out.Key("Id").Text(q.id)
		out.Key("Label").Text(q.name)
		out.Key("StatusCode").Text("Complete")
		out.Key("Timestamps").Array(len(points))
		for _, p := range points {
			out.Elem().Seconds(p.at)
		}
		out.End()
		out.Key("Values").Array(len(points))
		for _, p := range points {
			out.Elem().Int(p.value)
		}
		out.End()
		out.End()
	}
	out.End()
	out.End()
}

// points returns the values of one metric, the newest first.
func (e *Engine) points(now time.Time, r *QueueMetrics, m *metricQuery) []point {
	q := e.queues[m.dimensions["QueueId"]]
	if m.namespace != "AWS/Kinesis" || q == nil || q.name != m.dimensions["QueueName"] || !e.settleQueue(q, now) {
		return nil
	}
	l := q.ledger
	l.sweep(q.exists)
	at := now.Unix() / m.period * m.period
	switch m.name {
	case "VisibleQueueRecords":
		return []point{{at, int64(q.undelivered() + len(l.visible[normalPath]))}}
	case "InFlightQueueRecords":
		return []point{{at, int64(l.inFlight())}}
	case "VisibleDeadLetterQueueRecords":
		return []point{{at, int64(len(l.visible[deadPath]))}}
	}
	var all []point
	for i := len(q.minutes) - 1; i >= 0; i-- {
		minute := q.minutes[i]
		var n int64
		switch m.name {
		case "ReceivedQueueRecords":
			n = minute.received
		case "AcknowledgedQueueRecords":
			n = minute.acknowledged
		case "EmptyReceives":
			n = minute.empty
		default:
			return nil
		}
		if t := float64(minute.at * 60); t < r.start-59 || t >= r.end {
			continue
		}
		start := minute.at * 60 / m.period * m.period
		if last := len(all) - 1; last >= 0 && all[last].at == start {
			all[last].value += n
		} else if n > 0 {
			all = append(all, point{start, n})
		}
	}
	return all
}
