package otelweir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/health"
)

// Observe makes the gauges of t report the shards of c. Each collection of metrics queries c, until
// stop is called. c must be created with the options that were passed to [New]. A shard disappears
// from the gauges when its lease ends.
func (t *Telemetry) Observe(c *weir.Consumer) (stop func() error, err error) {
	if c == nil {
		return nil, errors.New("otelweir: Observe needs a consumer")
	}
	in, version := t.instruments, weirVersion()
	registered, err := in.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		_, shards := c.Health()
		t.observe(o, shards)
		o.ObserveInt64(in.eventsDropped, int64(c.Counts().EventsDropped), metric.WithAttributes(appKey.String(t.app)))
		o.ObserveInt64(in.buildInfo, 1, metric.WithAttributes(appKey.String(t.app), workerKey.String(t.worker), versionKey.String(version)))
		return nil
	}, in.leases, in.leader, in.leaderEpoch, in.shardState, in.buildInfo, in.lag, in.handledLag, in.checkpointLag, in.eventsDropped)
	if err != nil {
		return nil, fmt.Errorf("otelweir: registering gauges: %w", err)
	}
	return registered.Unregister, nil
}

// stateOf is a stream and a state of its shards.
type stateOf struct {
	stream string
	state  health.State
}

// lags contains the lags of a shard.
type lags struct {
	read, handled, saved time.Duration
}

// observe reports the gauges for the worker's shards.
func (t *Telemetry) observe(o metric.Observer, shards []health.Named) {
	leases, worst := map[string]int64{}, map[string]lags{}
	states := map[stateOf]int64{}
	for _, stream := range t.streams.seen() {
		leases[stream] = 0
	}
	for _, s := range shards {
		leases[s.Stream]++
		states[stateOf{s.Stream, s.State}]++
		l := lags{s.ReadLag, s.HandledLag, s.SavedLag}
		if t.perShard {
			o.ObserveInt64(t.instruments.shardState, 1, metric.WithAttributes(appKey.String(t.app), streamKey.String(s.Stream), shardKey.String(s.Name), stateKey.String(s.State.Label())))
			t.tellLags(o, l, t.with(s.Stream, shardKey.String(s.Name)))
		}
		if before, some := worst[s.Stream]; some {
			l = lags{max(l.read, before.read), max(l.handled, before.handled), max(l.saved, before.saved)}
		}
		worst[s.Stream] = l
	}
	if !t.perShard {
		for of, n := range states {
			o.ObserveInt64(t.instruments.shardState, n, t.with(of.stream, stateKey.String(of.state.Label())))
		}
	}
	for _, stream := range slices.Sorted(maps.Keys(leases)) {
		o.ObserveInt64(t.instruments.leases, leases[stream], t.ofStreamOnly(stream))
		if l, some := worst[stream]; some && !t.perShard {
			t.tellLags(o, l, t.ofStreamOnly(stream))
		}
	}
	t.tellLeading(o)
}

func (t *Telemetry) ofStreamOnly(stream string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(appKey.String(t.app), streamKey.String(stream)))
}

func (t *Telemetry) tellLags(o metric.Observer, l lags, of metric.MeasurementOption) {
	for _, g := range []struct {
		gauge metric.Float64Observable
		value time.Duration
	}{{t.instruments.lag, l.read}, {t.instruments.handledLag, l.handled}, {t.instruments.checkpointLag, l.saved}} {
		if g.value >= 0 {
			o.ObserveFloat64(g.gauge, g.value.Seconds(), of)
		}
	}
}

// tellLeading reports whether this worker leads. It reports the term only if the worker leads,
// because other workers know only an outdated term.
func (t *Telemetry) tellLeading(o metric.Observer) {
	app := metric.WithAttributes(appKey.String(t.app))
	last := t.leading.Load()
	if last == nil || !last.Leads {
		o.ObserveInt64(t.instruments.leader, 0, app)
		return
	}
	o.ObserveInt64(t.instruments.leader, 1, app)
	o.ObserveInt64(t.instruments.leaderEpoch, int64(last.Epoch), app)
}

// weirVersion returns the version of weir that this program contains.
func weirVersion() string {
	const module = "github.com/weir-go/weir"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Version != "" {
			return m.Version
		}
	}
	return "(devel)"
}
