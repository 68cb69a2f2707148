package dashboard

import (
	"fmt"
	"slices"
	"time"
)

// metric is what the brightness of a rectangle says, in levels of a fixed scale, so that pictures
// of different moments and applications compare.
type metric struct {
	label, words string
	about        string   // what the levels are of
	levels       []string // from the least to the most
	level        func(*shardInfo) (level int, known bool)
}

const shardTakes = 1 << 20 // bytes a second that may be written to a shard

var metrics = []metric{
	{
		label: "lag", words: "lag", about: "The shade is the lag:",
		levels: []string{"under 10 s", "under 1 min", "under 10 min", "under 1 h", "under 6 h", "more"},
		level: func(of *shardInfo) (int, bool) {
			return levelIn(of.Lag, 10*time.Second, time.Minute, 10*time.Minute, time.Hour, 6*time.Hour), of.LagKnown
		},
	},
	{
		label: "bytes", words: "bytes", about: "The shade is how many bytes a second its worker handles, as a part of the 1 MiB that a shard takes:",
		levels: []string{"under 1 %", "under 10 %", "under 25 %", "under 50 %", "under 80 %", "more"},
		level: func(of *shardInfo) (int, bool) {
			return levelIn(of.Load.Bytes()/shardTakes, 0.01, 0.1, 0.25, 0.5, 0.8), of.Load > 0
		},
	},
}

// levelIn is how many of the bounds a value reaches.
func levelIn[T float64 | time.Duration](value T, bounds ...T) int {
	for i, b := range bounds {
		if value < b {
			return i
		}
	}
	return len(bounds)
}

// metricOf is the metric that a page was asked for, nil for the state.
func metricOf(label string) *metric {
	if i := slices.IndexFunc(metrics, func(m metric) bool { return m.label == label }); i >= 0 {
		return &metrics[i]
	}
	return nil
}

// heat is how much a shard deserves a row of its own; m may be nil.
func (m *metric) heat(of *shardInfo) int {
	if m == nil || of.Done {
		return of.heat()
	}
	level, known := m.level(of)
	if !known {
		return 0
	}
	return level
}

// class is what a rectangle is filled with; m may be nil.
func (m *metric) class(of *shardInfo) string {
	if m == nil || of.Done {
		return of.Class()
	}
	level, known := m.level(of)
	if !known {
		return "unknown"
	}
	return fmt.Sprintf("l%d", level)
}

type swatch struct{ Class, Text string }

func (m *metric) scale() (all []swatch) {
	if m == nil {
		return nil
	}
	for i, text := range m.levels {
		all = append(all, swatch{fmt.Sprintf("l%d", i), text})
	}
	return append(all, swatch{"unknown", "not known"})
}
