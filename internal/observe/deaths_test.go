package observe

import (
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestDeathsAreKnownFromTheHistory(t *testing.T) {
	t.Parallel()
	now := time.Unix(60*30_000_000+59, 0)
	key := lease.Key{Stream: "s", Shard: "1"}
	at := func(ago int64, session string, marks history.Marks) Report {
		return Report{Minute: 30_000_000 - ago, Session: session, Worker: "worker-" + session, Marks: marks}
	}
	live := func(sessions ...string) (all []lease.Worker) {
		for _, s := range sessions {
			all = append(all, lease.Worker{Session: s})
		}
		return all
	}
	for name, c := range map[string]struct {
		reports []Report
		workers []lease.Worker
		want    string // the worker that died, or ""
		ago     int64  // its last report
	}{
		"another worker took its shard": {[]Report{at(6, "a", 0), at(5, "a", 0), at(4, "b", history.Began)}, live("b"), "worker-a", 5},
		"nobody took its shard":         {[]Report{at(6, "a", 0), at(5, "a", 0)}, nil, "worker-a", 5},
		"its next report is not due":    {[]Report{at(2, "a", 0), at(1, "a", 0)}, nil, "", 0},
		"it is silent": {
			[]Report{at(5, "a", 0)}, append(live("b"), lease.Worker{Session: "a", Ended: true}), "worker-a", 5,
		},
		"it lives, and lost the shard": {[]Report{at(5, "a", 0), at(4, "b", history.Began)}, live("a", "b"), "", 0},
		"it handed the shard over":     {[]Report{at(5, "a", history.Ended), at(4, "b", history.Began)}, live("b"), "", 0},
		"it reported the loss":         {[]Report{at(5, "a", history.Lost), at(4, "b", history.Began)}, live("b"), "", 0},
		"it stopped":                   {[]Report{at(5, "a", history.Ended)}, nil, "", 0},
		"it finished the shard":        {[]Report{at(5, "a", history.Finished)}, nil, "", 0},
		"it is leaving":                {[]Report{at(5, "a", 0)}, []lease.Worker{{Session: "a", Leaving: true, Ended: true}}, "", 0},
		"long ago":                     {[]Report{at(40, "a", 0), at(39, "b", history.Began), at(0, "b", 0)}, live("b"), "", 0},
		"two, one after the other":     {[]Report{at(9, "a", 0), at(8, "b", history.Began), at(7, "c", history.Began)}, live("c", "a"), "worker-b", 8},
	} {
		var w Watch
		w.Remember(Past{key: c.reports})
		w.Add(Look{At: now, View: lease.View{Workers: c.workers, Leases: []lease.Lease{{Key: key, Position: shard.Oldest}}}})
		died := w.Facts("app", now).Died
		if c.want == "" {
			if len(died) != 0 {
				t.Errorf("%s: %v died", name, died)
			}
			continue
		}
		last := at(c.ago, "", 0)
		last.Worker = c.want
		if want := (health.Death{Worker: c.want, At: last.at(), About: true}); len(died) != 1 || died[0] != want {
			t.Errorf("%s: %v died, want %v", name, died, want)
		}
	}
}
