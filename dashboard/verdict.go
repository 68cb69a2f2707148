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
	Done  bool          // the shard is finished, or all shards of the application are
	Cause health.Reason // why the worst shard is in the state, or [health.NoReason]
}

// Word returns the state in words. It adds the reason if a reader may misunderstand the state
// without it.
func (s standing) Word() string {
	if s.Done {
		return "finished"
	}
	switch {
	case s.State == health.Idle && s.Cause != health.NoReason:
		return s.State.String() + " (" + s.Cause.String() + ")"
	case s.State == health.RetentionNear && s.Cause == health.RecordsExpired:
		return s.State.String() + " (records expired)"
	}
	return s.State.String()
}

// Class returns the CSS class of the state.
func (s standing) Class() string {
	if s.Done {
		return "finished"
	}
	return s.State.Label()
}

// heat returns the priority with which a shard gets a row of its own in a picture.
func (s standing) heat() int {
	if s.Done || s.State <= health.NotKnown {
		return 0
	}
	return int(s.State)
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

// shortID returns the ID of a shard without the prefix that all IDs share.
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
