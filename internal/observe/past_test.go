package observe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// reported returns the reports of session s1 about shard a in the last 31 minutes up to the given
// time.
func reported(upTo time.Time, lag func(minutesAgo int) time.Duration, end history.Marks) observe.Past {
	w := history.NewWriter(4000, "w1")
	chunks := map[int64]lease.HistoryChunk{}
	for ago := 30; ago >= 0; ago-- {
		minute := upTo.Unix()/60 - int64(ago)
		s := history.Sample{Key: key("a"), Minute: minute, Lag: lag(ago), Age: -1}
		if ago == 0 {
			s.Marks = end
		}
		since, data := w.Add(minute, []history.Sample{s})
		chunks[since] = lease.HistoryChunk{Session: "s1", Since: since, Data: data}
	}
	var all []lease.HistoryChunk
	for _, c := range chunks {
		all = append(all, c)
	}
	return observe.PastOf(append(all, lease.HistoryChunk{Session: "s9", Data: []byte{99}}))
}

func none(int) time.Duration { return 0 }

func TestAnObserverThatStartsLaterAgreesAboutSince(t *testing.T) {
	t.Parallel()
	stopped := noon.Add(-10*time.Minute - 10*time.Second) // in minute 11:49
	worker := func(beat uint64) lease.Worker { return lease.Worker{Session: "s1", Name: "w1", Heartbeats: beat} }
	for name, c := range map[string]struct {
		of      lease.Lease
		workers []lease.Worker
		marks   history.Marks
		past    bool
		since   time.Time
		why     string
	}{
		"it stopped in order": {
			lease.Lease{Key: key("a"), Position: shard.Oldest}, nil, history.Ended, true, noon.Add(-10 * time.Minute), "no worker lives for at least 10 min",
		},
		"it lives, and released the shard": {
			lease.Lease{Key: key("a"), Position: shard.Oldest}, []lease.Worker{worker(0)}, history.Lost, true, noon.Add(-11*time.Minute + history.ReportsAt("w1") + time.Millisecond), "for at least 11 min",
		},
		"it was killed": {
			lease.Lease{Key: key("a"), Owner: "s1"}, []lease.Worker{worker(7)}, 0, true, noon.Add(-10*time.Minute + history.ReportsAt("w1")), "no worker lives for at least 10 min",
		},
		"it was killed, and declared dead": {
			lease.Lease{Key: key("a"), Owner: "s1"}, []lease.Worker{{Session: "s1", Ended: true}}, 0, true, noon.Add(-10*time.Minute + history.ReportsAt("w1")), "no worker lives for at least 10 min",
		},
		"another one without history had it": {
			lease.Lease{Key: key("a"), Owner: "s2"}, []lease.Worker{{Session: "s2", Ended: true}}, 0, true, noon, "no worker lives for at least 20 s",
		},
		"there is no history": {
			lease.Lease{Key: key("a"), Owner: "s1"}, []lease.Worker{worker(7)}, 0, false, time.Time{}, "no worker lives, since unknown",
		},
	} {
		for _, late := range []bool{false, true} {
			var w observe.Watch
			past := reported(stopped, none, c.marks)
			if c.past && !late {
				w.Remember(past)
			}
			for i := range 11 {
				w.Add(observe.Look{At: noon.Add(time.Duration(i) * 2 * time.Second), View: lease.View{Leases: []lease.Lease{c.of}, Workers: c.workers}})
				if c.past && late && i == 0 {
					w.Remember(past)
				}
			}
			_, all := w.Judge(noon.Add(20 * time.Second))
			if v := all[0]; v.State != health.Unread || !v.Since.Equal(c.since) || !strings.HasSuffix(v.Text(), c.why) {
				t.Errorf("%s, late %v: %v %q since %v, want %q since %v", name, late, v.State, v.Text(), v.Since, c.why, c.since)
			}
		}
	}
}

func TestARunningObserverSaysWhenHeartbeatsEnded(t *testing.T) {
	t.Parallel()
	var w observe.Watch
	view := lease.View{Leases: []lease.Lease{{Key: key("a"), Owner: "s1"}}, Workers: []lease.Worker{{Session: "s1", Name: "w1"}, {Session: "s2", Name: "w2"}}}
	for i := range 600 {
		view.Workers[1].Heartbeats++
		if i <= 60 {
			view.Workers[0].Heartbeats++
		}
		w.Add(observe.Look{At: noon.Add(time.Duration(i) * 2 * time.Second), View: view})
	}
	_, all := w.Judge(noon.Add(20 * time.Minute))
	if v := all[0]; v.Text() != "its worker sends no heartbeats since 12:02:00 UTC" {
		t.Errorf("%v %q", v.State, v.Text())
	}
}

func TestTheFirstLookHasATrend(t *testing.T) {
	t.Parallel()
	for want, lag := range map[health.State]func(ago int) time.Duration{
		health.FallingBehind: func(ago int) time.Duration { return time.Duration(32-ago) * time.Minute },
		health.CatchingUp:    func(ago int) time.Duration { return time.Duration(32+ago) * time.Minute },
		health.OK:            none,
	} {
		var w observe.Watch
		w.Remember(reported(noon.Add(-time.Minute), lag, 0))
		w.Add(observe.Look{
			At: noon, View: lease.View{Leases: []lease.Lease{{Key: key("a"), Owner: "s1"}}, Workers: []lease.Worker{{Session: "s1", Name: "w1"}}},
			Lags: map[lease.Key]observe.Lag{key("a"): {Behind: lag(-1)}},
		})
		if _, all := w.Judge(noon); all[0].State != want {
			t.Errorf("%v, %q; want %v", all[0].State, all[0].Text(), want)
		}
	}
}

// A worker reports for how long a handler has stalled. The stall must keep its start time, even if
// several looks see the same heartbeat.
func TestAComplaintDoesNotMove(t *testing.T) {
	t.Parallel()
	var w observe.Watch
	for i := range 30 {
		at := noon.Add(time.Duration(i) * time.Second)
		beat := uint64(i / 10)
		w.Add(observe.Look{At: at, View: lease.View{Leases: []lease.Lease{{Key: key("a"), Owner: "s1"}}, Workers: []lease.Worker{{
			Session: "s1", Heartbeats: beat, Times: lease.Times{Heartbeat: 10 * time.Second, Failover: time.Minute, Handoff: time.Minute},
			Troubles: []lease.Trouble{{Key: key("a"), State: "in the handler", For: 5*time.Minute + time.Duration(beat)*10*time.Second}},
		}}}})
		if _, all := w.Judge(at); all[0].Text() != "in the handler since 11:55:00 UTC" {
			t.Fatalf("after %d s: %q", i, all[0].Text())
		}
	}
}
