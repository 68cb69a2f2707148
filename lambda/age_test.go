package lambda

import (
	"testing"
	"time"
)

func TestWhichRecordsAreTooOld(t *testing.T) {
	now, s := time.Unix(1_800_000_000, 0), time.Second
	for _, c := range []struct {
		name string
		ages []time.Duration // a negative age means that the service's clock is ahead
		max  time.Duration
		want int
	}{
		{"there is no bound", []time.Duration{61 * s, 60 * s}, 0, 0},
		{"there are no records", nil, 60 * s, 0},
		{"those at the beginning", []time.Duration{63 * s, 62 * s, 60 * s}, 60 * s, 2},
		{"as old as it may be is not too old", []time.Duration{60 * s}, 60 * s, 0},
		{"all", []time.Duration{63 * s, 62 * s, 61 * s}, 60 * s, 3},
		{"not those behind one that is young enough", []time.Duration{63 * s, 59 * s, 61 * s}, 60 * s, 1},
		{"one that arrived in the future is not", []time.Duration{-time.Hour}, 60 * s, 0},
		{"one whose arrival is not known is not", []time.Duration{now.Sub(time.UnixMilli(0))}, 60 * s, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tooOld(len(c.ages), func(i int) time.Time { return now.Add(-c.ages[i]) }, now, c.max); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
