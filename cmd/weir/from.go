package main

import (
	"time"

	"github.com/weir-go/weir"
)

const fromHelp = "oldest, latest, a time (2026-01-31T12:00:00Z), or how long ago (15m)"

// parseFrom reads a --from.
func parseFrom(s string, now time.Time) (weir.Position, error) {
	switch s {
	case "oldest":
		return weir.Oldest, nil
	case "latest":
		return weir.Latest, nil
	}
	if ago, err := time.ParseDuration(s); err == nil {
		if ago < 0 {
			return weir.Position{}, usagef("--from %s lies in the future", s)
		}
		return weir.At(now.Add(-ago)), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return weir.Position{}, usagef("--from %q is no place to start: use %s", s, fromHelp)
	}
	if t.After(now.Add(time.Minute)) {
		return weir.Position{}, usagef("--from %s lies in the future", s)
	}
	return weir.At(t), nil
}
