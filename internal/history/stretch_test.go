package history_test

import (
	"testing"
	"time"

	"github.com/weir-go/weir/internal/history"
)

func TestStretch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lags []time.Duration // in seconds
		want int
	}{
		"no sample":                         {nil, 0},
		"one":                               {[]time.Duration{70}, 0},
		"it was always behind":              {[]time.Duration{70, 80, 90}, 1},
		"it fell behind a moment ago":       {[]time.Duration{0, 2, 1, 40}, 3},
		"it fell behind two minutes ago":    {[]time.Duration{0, 2, 40, 70, 100}, 3},
		"it is not behind":                  {[]time.Duration{70, 80, 0}, 0},
		"its lag was unknown in the middle": {[]time.Duration{0, 40, -1, 100}, 2},
	} {
		lags := make([]time.Duration, len(c.lags))
		for i, s := range c.lags {
			lags[i] = s * time.Second
		}
		if got := history.Stretch(lags); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestWorkersSpreadTheirReports(t *testing.T) {
	t.Parallel()
	a, b := history.ReportsAt("worker-1"), history.ReportsAt("worker-2")
	if a == b || a < 0 || a >= 20*time.Second || b < 0 || b >= 20*time.Second {
		t.Errorf("%v and %v", a, b)
	}
}
