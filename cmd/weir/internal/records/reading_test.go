package records

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

func TestParseFrom(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]weir.Position{
		"oldest":                    weir.Oldest,
		"latest":                    weir.Latest,
		"15m":                       weir.At(now.Add(-15 * time.Minute)),
		"0s":                        weir.At(now),
		"2026-01-30T12:00:00Z":      weir.At(now.Add(-24 * time.Hour)),
		"2026-01-31T13:00:00+01:00": weir.At(now),
		"2026-01-31T11:59:59.5Z":    weir.At(now.Add(-500 * time.Millisecond)),
	} {
		if got, err := ParseFrom(s, now); err != nil || got != want {
			t.Errorf("%s is %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "end", "newest", "-1m", "2026-01-31", "12:00", "49680405229405115719216753852849088384855803376837853186", "2026-02-01T00:00:00Z"} {
		var usage cli.UsageError
		if got, err := ParseFrom(s, now); !errors.As(err, &usage) {
			t.Errorf("%q is %v, %v, want a wrong usage", s, got, err)
		}
	}
}
