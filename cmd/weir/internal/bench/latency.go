package bench

import (
	"math"
	"time"
)

// latencies counts durations in buckets that are 2 % wide, from 1 µs on.
type latencies struct {
	buckets [1400]int64
	n       int64
	max     time.Duration
}

const bucketWidth = 1.02

func (l *latencies) add(d time.Duration) {
	i := 0
	if us := float64(d) / float64(time.Microsecond); us > 1 {
		i = min(int(math.Log(us)/math.Log(bucketWidth))+1, len(l.buckets)-1)
	}
	l.buckets[i]++
	l.n++
	l.max = max(l.max, d)
}

// at returns a percentile: the latency that the given part of the records did not exceed. It rounds
// the latency up to the end of its bucket.
func (l *latencies) at(part float64) time.Duration {
	need := int64(math.Ceil(part * float64(l.n)))
	seen := int64(0)
	for i, n := range l.buckets {
		if seen += n; n > 0 && seen >= need {
			limit := math.Pow(bucketWidth, float64(i)) * float64(time.Microsecond)
			return min(time.Duration(limit), l.max)
		}
	}
	return 0
}

// percentiles are latencies in milliseconds, for programs.
type percentiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func (l *latencies) percentiles() percentiles {
	ms := func(d time.Duration) float64 {
		return math.Round(float64(d)/float64(time.Microsecond)) / 1000
	}
	return percentiles{ms(l.at(.5)), ms(l.at(.9)), ms(l.at(.99)), ms(l.max)}
}
