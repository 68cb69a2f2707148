package group

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
)

func TestDoubt(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	gone := lease.Trouble{Key: lease.Key{Stream: "s", Shard: "a"}, Why: "Kinesis GetRecords: ResourceNotFoundException: no"}
	with := func(change func(*lease.Trouble)) lease.Trouble {
		of := gone
		change(&of)
		return of
	}
	for name, c := range map[string]struct {
		trouble lease.Trouble
		ago     time.Duration // since the last listing began
		ended   bool
		want    bool
	}{
		"the stream is unknown":       {gone, doubtPause, false, true},
		"the position is refused":     {with(func(t *lease.Trouble) { t.Why = "the service refuses the position 1" }), time.Minute, false, true},
		"just listed":                 {gone, doubtPause - 1, false, false},
		"of a session that has ended": {gone, time.Minute, true, false},
		"another error":               {with(func(t *lease.Trouble) { t.Why = "EOF" }), time.Minute, false, false},
		"an error of the handler":     {with(func(t *lease.Trouble) { t.Failing.Attempts = 1 }), time.Minute, false, false},
		"an error of dead letters":    {with(func(t *lease.Trouble) { t.Failing.Letters = true }), time.Minute, false, false},
		"of the worker":               {with(func(t *lease.Trouble) { t.Key = lease.Key{} }), time.Minute, false, false},
		"of a stream not listed":      {with(func(t *lease.Trouble) { t.Stream = "other" }), time.Minute, false, false},
	} {
		s := &listings{streams: map[string]*listed{"s": {began: now.Add(-c.ago)}}}
		due := map[string]bool{}
		s.doubt([]lease.Worker{{Ended: c.ended, Troubles: []lease.Trouble{c.trouble}}}, now, due)
		if due[c.trouble.Stream] != c.want {
			t.Errorf("%s: %v", name, due)
		}
	}
}

func TestPauseAfterAFailedListing(t *testing.T) {
	cfg := Config{Times: lease.Times{Heartbeat: time.Second}, ListInterval: 20 * time.Second}
	gone := fmt.Errorf("stream s: %w", ErrNoStream)
	for _, c := range []struct {
		failures int
		err      error
		want     time.Duration
	}{
		{1, errors.New("EOF"), 2 * time.Second},
		{3, gone, 8 * time.Second},
		{9, gone, doubtPause},
		{9, errors.New("EOF"), 20 * time.Second},
	} {
		if got := (&listed{errors: c.failures}).pause(c.err, cfg); got != c.want {
			t.Errorf("after %d failures, %v: %v, want %v", c.failures, c.err, got, c.want)
		}
	}
}
