package dashboard

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/health"
)

// standing is the state of a shard or an application, as the page shows it.
type standing struct {
	State health.State
	Done  bool // a finished shard, or an application with only finished shards
}

// Word returns the state in words.
func (s standing) Word() string {
	if s.Done {
		return "finished"
	}
	return s.State.String()
}

// Class returns the state's name in the style sheet.
func (s standing) Class() string {
	if s.Done {
		return "finished"
	}
	return s.State.Label()
}

// heat returns the priority of a shard for its own row in a picture.
func (s standing) heat() int {
	if s.Done || s.State <= health.NotKnown {
		return 0
	}
	return int(s.State)
}

// reason returns the reason of a shard's state in words.
func reason(s health.Shard, now time.Time) string {
	text := s.Why
	switch {
	case text != "":
	case s.State == health.OK && s.Lag() >= time.Second:
		text = short(s.Lag()) + " behind"
	case s.State == health.OK:
		text = "up to date"
	}
	if lag := s.Lag(); lag > 0 && s.State > health.NotKnown {
		text = strings.TrimSuffix(short(lag)+" behind, "+text, ", ")
	}
	if now.Sub(s.Since) > time.Second && !s.Since.IsZero() && (s.State.Trouble() || s.State == health.Idle) {
		text += ", for " + short(now.Sub(s.Since))
	}
	if s.Err != "" {
		text += "; last error: " + s.Err
	}
	return text
}

// short formats a duration for people: 0 s, 42 s, 3 min, 5 h, 2 d.
func short(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 100*time.Second:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 100*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}

// shortID returns a shard's ID without the common prefix.
func shortID(id string) string {
	rest := strings.TrimLeft(strings.TrimPrefix(id, "shardId-"), "0")
	if !strings.HasPrefix(id, "shardId-") {
		return id
	}
	if rest == "" {
		return "0"
	}
	return rest
}

func shorts(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = shortID(id)
	}
	return out
}
