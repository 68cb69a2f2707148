package dashboard

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
)

// metric is a value that the picture shows as the brightness of rectangles. Its levels have a fixed
// scale. Pictures of different times and applications are therefore comparable.
type metric struct {
	label, words string
	about        string         // text that introduces the levels
	levels       [levels]string // names of the levels, from the lowest to the highest
	// reported returns the value that the owner reported for a minute, in percent. It is nil for a
	// metric that has a current value, which now returns. told is the name of the reported
	// activity.
	reported func(moment) int
	told     string
	now      func(*shardInfo) int
	then     func(moment) int
}

const (
	levels     = 6
	unknown    = -1      // level of an unknown value
	shardTakes = 1 << 20 // bytes per second that a shard can take in
)

var metrics = []metric{
	{
		label: "lag", words: "lag", about: "The shade is the lag:",
		levels: [levels]string{"under 10 s", "under 1 min", "under 10 min", "under 1 h", "under 6 h", "more"},
		now:    func(of *shardInfo) int { return lagLevel(of.Lag, of.LagKnown) },
		then:   func(m moment) int { return lagLevel(m.lag, m.lag >= 0) },
	},
	{
		label: "bytes", words: "bytes", about: "The shade is the throughput of its worker, as a part of the 1 MiB per second that a shard accepts:",
		levels: [levels]string{"under 1 %", "under 10 %", "under 25 %", "under 50 %", "under 80 %", "more"},
		now: func(of *shardInfo) int {
			if of.Load == 0 || !of.Held {
				return unknown
			}
			return bytesLevel(of.Load)
		},
		then: func(m moment) int { return bytesLevel(m.load) },
	},
	{
		label: "handler", words: "handler's time", about: "The shade is the part of the time in which the handler was running:",
		levels:   [levels]string{"under 5 %", "under 20 %", "under 50 %", "under 80 %", "under 95 %", "more"},
		reported: func(m moment) int { return int(m.busy) }, told: "handler running at most",
		now:  func(*shardInfo) int { return unknown },
		then: func(m moment) int { return levelIn(float64(m.busy), 5, 20, 50, 80, 95) },
	},
	{
		label: "throttles", words: "throttles", about: "The shade is the part of the time in which reading waited because Kinesis throttled it:",
		levels:   [levels]string{"none", "under 5 %", "under 20 %", "under 50 %", "under 80 %", "more"},
		reported: func(m moment) int { return int(m.throttled) }, told: "throttled at most",
		now:  func(*shardInfo) int { return unknown },
		then: func(m moment) int { return levelIn(float64(m.throttled), 1, 5, 20, 50, 80) },
	},
}

// most describes the maximum of a reported value over the given shards, and the minute of the
// maximum. If several minutes have the maximum, it names the last one.
func (m *metric) most(p past, keys []lease.Key, from, to time.Time) string {
	most, minute := unknown, int64(0)
	for _, key := range keys {
		for _, at := range p.between(key, minuteOf(from), minuteOf(to)) {
			if part := m.reported(at); part > most || part == most && at.minute > minute {
				most, minute = part, at.minute
			}
		}
	}
	switch most {
	case unknown:
		return "not known"
	case 0:
		return "0 %"
	}
	return fmt.Sprintf("%d %% (%s)", most, time.Unix(60*minute, 0).UTC().Format("15:04"))
}

func lagLevel(lag time.Duration, known bool) int {
	if !known {
		return unknown
	}
	return levelIn(lag, 10*time.Second, time.Minute, 10*time.Minute, time.Hour, 6*time.Hour)
}

func bytesLevel(l lease.Load) int { return levelIn(l.Bytes()/shardTakes, 0.01, 0.1, 0.25, 0.5, 0.8) }

// levelIn returns the number of bounds that a value reaches.
func levelIn[T float64 | time.Duration](value T, bounds ...T) int {
	for i, b := range bounds {
		if value < b {
			return i
		}
	}
	return len(bounds)
}

// metricOf returns the metric with this label. It returns nil for the label of the shards' state,
// because the state is not a metric.
func metricOf(label string) *metric {
	if i := slices.IndexFunc(metrics, func(m metric) bool { return m.label == label }); i >= 0 {
		return &metrics[i]
	}
	return nil
}

// heat returns the priority with which a shard gets a row of its own. m may be nil.
func (m *metric) heat(of *shardInfo) int {
	if m == nil || of.Done {
		return of.heat()
	}
	return max(m.now(of), 0)
}

// class returns the CSS class that colours a rectangle. m may be nil.
func (m *metric) class(of *shardInfo) string {
	if m == nil || of.Done {
		return of.Class()
	}
	if level := m.now(of); level != unknown {
		return fmt.Sprintf("l%d", level)
	}
	return "unknown"
}

type swatch struct{ Class, Text string }

// stateKey contains the colours of the states. Several states share a colour, as in page.css.
var stateKey = []swatch{
	{"ok", "ok"},
	{"behind", "behind, catching up, going back"},
	{"falling_behind", "falling behind"},
	{"stalled", "stalled, unread, near the end of retention"},
	{"unknown", "idle, not known"},
	{"finished", "finished"},
}

// scale returns the key of the colours.
func (m *metric) scale() (all []swatch) {
	if m == nil {
		return stateKey
	}
	for i, text := range m.levels {
		all = append(all, swatch{fmt.Sprintf("l%d", i), text})
	}
	return append(all, swatch{"unknown", "not known"})
}
