package dashboard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

func TestEachStateHasOneColourInTheKey(t *testing.T) {
	t.Parallel()
	css, err := assets.ReadFile("assets/page.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range health.States() {
		n := 0
		for _, of := range stateKey {
			if slices.Contains(strings.Split(of.Text, ", "), state.String()) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is in the key %d times", state, n)
		}
	}
	for _, of := range stateKey {
		if of.Class != "unknown" && !strings.Contains(string(css), ".swatch."+of.Class+" ") {
			t.Errorf("the swatch of %q has no colour", of.Text)
		}
	}
}

func TestBrightnessIsAMetricOnAFixedScale(t *testing.T) {
	t.Parallel()
	behind := func(d time.Duration) shardInfo { return shardInfo{Lag: d, LagKnown: true} }
	brings := func(bytes float64) shardInfo {
		return shardInfo{Lease: lease.Lease{Load: lease.LoadOf(bytes)}, Held: true}
	}
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
		{"one that no worker holds", "bytes", "unknown", shardInfo{Lease: lease.Lease{Load: 30}}, 0},
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
	for _, c := range []struct {
		name, by string
		at       moment
		level    int
	}{
		{"an idle handler", "handler", moment{}, 0},
		{"a handler that is always at work", "handler", moment{busy: 100}, 5},
		{"one that is, throttled or not", "handler", moment{throttled: 100}, 0},
		{"no throttle", "throttles", moment{busy: 100}, 0},
		{"a single one", "throttles", moment{throttled: 2}, 1},
		{"some", "throttles", moment{throttled: 6}, 2},
		{"a fifth of the time", "throttles", moment{throttled: 20}, 3},
		{"half of the time", "throttles", moment{throttled: 50}, 4},
		{"all of the time", "throttles", moment{throttled: 100}, 5},
	} {
		m := metricOf(c.by)
		if got := m.then(c.at); got != c.level {
			t.Errorf("%s: level %d, want %d", c.name, got, c.level)
		}
		if now := m.class(&shardInfo{}); now != "unknown" {
			t.Errorf("%s: of now it is %s", c.name, now)
		}
	}
	for _, m := range metrics {
		if n := len(m.scale()); n != len(m.levels)+1 {
			t.Errorf("%s has a scale of %d", m.label, n)
		}
	}
}

func TestTheMostOfSomeShardsIsSaidWithItsMinute(t *testing.T) {
	t.Parallel()
	key := func(shard string) lease.Key { return lease.Key{Stream: "s", Shard: shard} }
	p := past{shards: map[lease.Key][]moment{
		key("1"): {{minute: 10, throttled: 90}, {minute: 20, throttled: 30}, {minute: 30, throttled: 4}, {minute: 41, throttled: 100}},
		key("2"): {{minute: 21, throttled: 20}, {minute: 31, throttled: 30}, {minute: 40}},
		key("3"): {{minute: 25}},
	}}
	for _, c := range []struct {
		name string
		of   []lease.Key
		want string
	}{
		{"of one, what was before and after left out", []lease.Key{key("1")}, "30 % (00:20)"},
		{"of two, the last of equals", []lease.Key{key("1"), key("2")}, "30 % (00:31)"},
		{"of one without any", []lease.Key{key("3")}, "0 %"},
		{"of one of which nobody reported", []lease.Key{key("4")}, "not known"},
	} {
		if got := metricOf("throttles").most(p, c.of, time.Unix(60*15, 0), time.Unix(60*40, 0)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
