package figures_test

import (
	"math"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/figures"
)

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 20_000: "20,000", 1_234_567: "1,234,567", -5: "-5", -999: "-999", -1000: "-1,000",
		math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := figures.Count(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 106: "106 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 64 << 10: "64 KiB", 1<<20 - 1: "1 MiB", 1<<20 - 60: "1023.9 KiB",
		2_200_000: "2.1 MiB", 5 << 30: "5 GiB", math.MaxInt64: "8388608 TiB",
	} {
		if got := figures.Bytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0: "0 s", 40 * time.Microsecond: "0 ms", 340 * time.Millisecond: "340 ms", 999_400 * time.Microsecond: "999 ms", 999_900 * time.Microsecond: "1 s",
		time.Second: "1 s", 1500 * time.Millisecond: "1.5 s", 30 * time.Second: "30 s", 119_900 * time.Millisecond: "119.9 s", 119_980 * time.Millisecond: "2 min",
		2 * time.Minute: "2 min", 5*time.Minute + 30*time.Second: "5 min 30 s", time.Hour + 59*time.Minute + 59*time.Second: "119 min 59 s",
		2*time.Hour - time.Millisecond: "2 h", 2*time.Hour + 5*time.Minute + 10*time.Second: "2 h 5 min", 24 * time.Hour: "24 h",
		2*day - time.Second: "2 d", 3*day + 4*time.Hour: "3 d 4 h", 365 * day: "365 d", -3 * time.Second: "-3 s", math.MinInt64: "-106751 d 23 h",
	} {
		if got := figures.Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
