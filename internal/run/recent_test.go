package run

import (
	"testing"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
)

// A run remembers the last minutes of its shards, and forgets earlier ones.
func TestARunRemembersTheLastMinutes(t *testing.T) {
	t.Parallel()
	s, key := newStanding(), lease.Key{Stream: "s", Shard: "1"}
	if got := s.recently(key); got != (health.Recent{}) {
		t.Errorf("before the first sample: %+v", got)
	}
	for minute := range 2 * health.RecentMinutes {
		of := history.Sample{Key: key, Busy: 100}
		if minute >= health.RecentMinutes {
			of.Busy, of.Throttled, of.Marks = 80, 20, history.Failing
		}
		s.keep([]history.Sample{of, {Key: lease.Key{Stream: "s", Shard: "idle"}}})
	}
	want := health.Recent{Minutes: health.RecentMinutes, Busy: 80, Throttled: 20, Failing: health.RecentMinutes}
	if got := s.recently(key); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := s.recently(lease.Key{Stream: "s", Shard: "idle"}); got != (health.Recent{Minutes: health.RecentMinutes}) {
		t.Errorf("idle: %+v", got)
	}
	if n := len(s.recent[0]); n != 1 {
		t.Errorf("%d samples of a minute are kept, want that of the busy shard", n)
	}
}
