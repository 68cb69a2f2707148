package dashboard

import (
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

func TestBrightnessIsAMetricOnAFixedScale(t *testing.T) {
	t.Parallel()
	behind := func(d time.Duration) shardInfo { return shardInfo{Lag: d, LagKnown: true} }
	brings := func(bytes float64) shardInfo { return shardInfo{Lease: lease.Lease{Load: lease.LoadOf(bytes)}} }
	for _, c := range []struct {
		name, by, class string
		of              shardInfo
		heat            int
	}{
		{"its state", "", "stalled", shardInfo{standing: standing{State: health.Stalled}}, int(health.Stalled)},
		{"a metric that there is not", "x", "ok", behind(time.Hour), 0},
		{"no lag", "lag", "l0", behind(0), 0},
		{"a lag of a minute", "lag", "l2", behind(time.Minute), 2},
		{"a lag of a day", "lag", "l5", behind(24 * time.Hour), 5},
		{"a lag that is not known", "lag", "unknown", shardInfo{}, 0},
		{"one that is finished", "lag", "finished", shardInfo{standing: standing{Done: true}, Lag: time.Hour, LagKnown: true}, 0},
		{"nothing to handle", "bytes", "l0", brings(0), 0},
		{"half of what a shard takes", "bytes", "l4", brings(shardTakes / 2), 4},
		{"all that a shard takes", "bytes", "l5", brings(shardTakes), 5},
		{"a worker that does not say", "bytes", "unknown", shardInfo{}, 0},
	} {
		m := metricOf(c.by)
		if got := m.class(&c.of); got != c.class {
			t.Errorf("%s: %s, want %s", c.name, got, c.class)
		}
		if got := m.heat(&c.of); got != c.heat {
			t.Errorf("%s: %d, want %d", c.name, got, c.heat)
		}
	}
	for _, m := range metrics {
		if n := len(m.scale()); n != len(m.levels)+1 {
			t.Errorf("%s has a scale of %d", m.label, n)
		}
	}
}
