package dashboard

import (
	"testing"
	"time"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestAResetIsDescribedByTimesAndAmounts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	key := lease.Key{Stream: "s", Shard: "1"}
	p := past{shards: map[lease.Key][]moment{}}
	for minute := minuteOf(now) - 60; minute < minuteOf(now); minute++ {
		p.shards[key] = append(p.shards[key], moment{minute: minute, load: lease.LoadOf(1 << 20)})
	}
	step := func(from, to shard.Position) []change.Step {
		return []change.Step{{Key: key, From: from, To: to, Actions: make([]lease.Action, 1)}}
	}
	at := func(minutes int) shard.Position { return shard.At(now.Add(-time.Duration(minutes) * time.Minute)) }
	for name, c := range map[string]struct {
		steps []change.Step
		want  string
	}{
		"ten minutes":    {step(at(1), at(10)), "About 600 MiB would be read again, by the throughput in the history."},
		"half a day":     {step(at(1), at(720)), "At least 3.5 GiB would be read again, by the throughput in the history."},
		"the oldest":     {step(at(50), shard.Oldest), "At least 660 MiB would be read again, by the throughput in the history."},
		"forward":        {step(at(10), at(1)), ""},
		"latest":         {step(at(10), shard.Latest), ""},
		"without moves":  {[]change.Step{{Key: key, From: at(1), To: at(10)}}, ""},
		"without leases": {step(shard.Position{}, at(10)), ""},
	} {
		if got := p.amountInWords(c.steps, now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got, want := placeInWords(at(10), now), "2026-03-01 11:50:00 UTC, 10 min ago"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := placeInWords(shard.Oldest, now); got != "oldest" {
		t.Error(got)
	}
}
