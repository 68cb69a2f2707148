package change

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/shard"
)

// ParseTo parses the place where reading must resume: oldest, latest, a time, a position of one
// shard, or a duration before Kinesis' current time. A duration is returned as ago, because
// Kinesis' current time is not known yet.
func ParseTo(s string) (w Wish, ago *time.Duration, err error) {
	if d, err := time.ParseDuration(s); err == nil && strings.ContainsAny(s, "hmsuµn") {
		if d < 0 {
			return w, nil, fmt.Errorf("%s is in the future", s)
		}
		return w, &d, nil
	}
	p, err := shard.Parse(s)
	if err != nil || p.IsZero() || p.IsEnd() {
		return w, nil, fmt.Errorf("%q is not a valid start: use oldest, latest, a time (2026-01-31T12:00:00Z), how long ago (15m), or a sequence number of one shard", s)
	}
	w.To = p
	return w, nil, nil
}
