package observe

import (
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestFactsComeFromTheLookAndTheHistory(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.January, 1, 12, 0, 30, 0, time.UTC)
	busy, free := lease.Key{Stream: "s", Shard: "busy"}, lease.Key{Stream: "s", Shard: "free"}
	report := func(ago int64, busy int, marks history.Marks) Report {
		return Report{Minute: now.Unix()/60 - ago, Session: "S", Lag: time.Hour, Busy: busy, Throttled: 10, Marks: marks}
	}
	look := Look{
		At: now,
		View: lease.View{
			Leader: lease.Leader{Session: "S"},
			Workers: []lease.Worker{
				{Session: "S", MaxLeases: 3, Troubles: []lease.Trouble{
					{State: lease.CutOff, For: time.Minute, Why: "no route"},
					{Key: busy, State: "in the handler", For: time.Minute, Failing: lease.Failing{Attempts: 7}},
				}},
				{Session: "drained", MaxLeases: 9, Drain: true},
			},
			Leases: []lease.Lease{
				{Key: busy, Epoch: 1, Owner: "S", Position: shard.Oldest, Load: lease.LoadOf(1 << 20)},
				{Key: free, Epoch: 1, Position: shard.Oldest, Load: lease.LoadOf(1 << 20)},
			},
		},
		Silent: map[string]bool{},
		Lags:   map[lease.Key]Lag{busy: {Behind: time.Hour}},
	}
	var w Watch
	w.Remember(Past{busy: {report(9, 0, 0), report(2, 90, history.Failing), report(1, 100, 0), report(0, 0, history.Ended)}})
	w.Add(look)
	f := w.Facts("app", now)
	if f.App != "app" || f.Workers != 2 || !f.Led || f.Leases != 1 || f.MaxLeases != 3 || f.PausedApp || len(f.Shards) != 2 {
		t.Errorf("%+v", f)
	}
	shards := map[string]health.ShardFacts{}
	for _, s := range f.Shards {
		shards[s.Name] = s
	}
	want := health.Recent{Minutes: 2, Busy: 95, Throttled: 10, Failing: 1}
	if s := shards["busy"]; s.Recent != want || s.Load != 1<<20 || s.Doing != health.InHandler || s.Attempts != 7 || !s.CutOff ||
		!s.DoingSince.Equal(now.Add(-time.Minute)) {
		t.Errorf("%+v", s)
	}
	if s := shards["free"]; s.Recent != (health.Recent{}) || s.Load >= 0 || s.Doing != health.NoReason || s.CutOff {
		t.Errorf("%+v", s)
	}
	w.Recall(Past{busy: {report(0, 20, 0)}})
	for _, s := range w.Facts("app", now).Shards {
		if s.Name == "busy" && s.Recent != (health.Recent{Minutes: 1, Busy: 20, Throttled: 10}) {
			t.Errorf("after newer reports: %+v", s.Recent)
		}
	}
	look.View.Workers[0].MaxLeases, look.View.Paused, look.At = 0, []string{""}, now.Add(time.Second)
	w.Add(look)
	if f := w.Facts("app", look.At); f.MaxLeases != 0 || !f.PausedApp {
		t.Errorf("%+v", f)
	}
}

// The deaths of workers that stop in order, or that no look saw alive, are not reported.
func TestFactsNameTheWorkersThatDied(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	key := lease.Key{Stream: "s", Shard: "1"}
	var w Watch
	look := func(seconds int, leaving bool, beats uint64) {
		w.Add(Look{At: begin.Add(time.Duration(seconds) * time.Second), View: lease.View{
			Workers: []lease.Worker{
				{Session: "a", Name: "worker-1", Heartbeats: uint64(seconds)},
				{Session: "b", Name: "worker-2", Heartbeats: min(beats, 2)},
				{Session: "c", Name: "worker-3", Heartbeats: min(beats, 2), Leaving: leaving, Ended: leaving},
				{Session: "d", Name: "worker-4", Ended: true},
			},
			Leases: []lease.Lease{{Key: key, Epoch: 1, Owner: "a", Position: shard.Oldest}},
		}})
	}
	look(1, false, 1)
	look(2, false, 2)
	if f := w.Facts("app", begin); len(f.Died) != 0 || f.Shards[0].Owner != "worker-1" {
		t.Errorf("%+v, owner %q", f.Died, f.Shards[0].Owner)
	}
	look(62, true, 2)
	want := health.Death{Worker: "worker-2", At: begin.Add(2 * time.Second)}
	if f := w.Facts("app", begin); len(f.Died) != 1 || f.Died[0] != want {
		t.Errorf("%+v, want %+v", f.Died, want)
	}
}
