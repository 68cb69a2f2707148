package lease

import (
	"testing"
	"time"
)

// follower gets orders once per second. Each heartbeat is answered at the time when it was sent.
type follower struct {
	Follow
	now time.Time
}

func (f *follower) see(leader Leader, others map[string]uint64) (dead bool) {
	f.now = f.now.Add(time.Second)
	o := Orders{Leader: leader}
	for session, beat := range others {
		o.Others = append(o.Others, SessionHeartbeat{session, beat})
	}
	dead, _ = f.See(o, watchTimes, f.now, f.now)
	return dead
}

// The first view of a new leader shows exactly the sessions that died together with the previous
// leader.
func TestANewLeaderGoesOnFromWhatItSaw(t *testing.T) {
	f := follower{now: time.Unix(1_000_000, 0)}
	old := Leader{Session: "old", Epoch: 1, Heartbeats: 7}
	for i := range 6 {
		beat := uint64(i)
		f.see(old, map[string]uint64{"old": 7, "dead": 3, "lives": beat, "late": min(beat, 2)})
	}
	w := f.Watch(watchTimes, old)
	now := f.now.Add(100 * time.Millisecond)
	v := workers(map[string]uint64{"old": 7, "dead": 3, "lives": 5, "late": 2, "moved": 1, "me": 9})
	if facts := w.See(v, now, now); len(facts.Dead) != 2 || facts.Dead["old"] != 7 || facts.Dead["dead"] != 3 {
		t.Errorf("dead: %v", facts.Dead)
	}
	for i := range v.Workers {
		v.Workers[i].Ended = v.Workers[i].Session == "old" || v.Workers[i].Session == "dead"
	}
	w.See(v, now, now)
	// The heartbeat of the session late has not changed for 3.1 s. The next view is due when this
	// session can count as dead.
	if next := w.Next(time.Minute); next != 1900*time.Millisecond {
		t.Errorf("the next look is due in %v", next)
	}
	for session := range w.beats.sessions {
		w.beats.sessions[session].time = time.Hour
	}
	if again := f.Watch(watchTimes, Leader{}); again.beats.sessions["lives"].time != 0 {
		t.Error("what a leader goes on from is shared with what the worker goes on to see")
	}
}

func TestWhatAFollowerSeesOfOthers(t *testing.T) {
	dead := func(f *follower, v View) map[string]uint64 {
		return f.Watch(watchTimes, Leader{}).See(v, f.now, f.now).Dead
	}
	start := func() *follower {
		f := &follower{now: time.Unix(1_000_000, 0)}
		for range 6 {
			f.see(Leader{}, map[string]uint64{"a": 3})
		}
		return f
	}
	here := workers(map[string]uint64{"a": 3})
	if d := dead(start(), here); d["a"] != 3 {
		t.Errorf("a count that stood for 5 s: %v", d)
	}
	if d := dead(start(), workers(map[string]uint64{"a": 4})); len(d) != 0 {
		t.Errorf("a count that moved after the last heartbeat: %v", d)
	}
	f := start()
	f.see(Leader{}, map[string]uint64{"a": 4})
	if d := dead(f, workers(map[string]uint64{"a": 4})); len(d) != 0 {
		t.Errorf("a count that moved: %v", d)
	}
	f = start()
	f.see(Leader{}, nil) // the store no longer reports the session, or the session left
	f.see(Leader{}, map[string]uint64{"a": 3})
	if d := dead(f, here); len(d) != 0 {
		t.Errorf("a count that was not there for a while: %v", d)
	}
	f = &follower{now: time.Unix(1_000_000, 0)}
	for range 20 { // an outage between every two answers
		f.see(Leader{}, map[string]uint64{"a": 3})
		f.Missed()
		f.now = f.now.Add(time.Hour)
	}
	if d := dead(f, here); len(d) != 0 {
		t.Errorf("an outage of the store: %v", d)
	}
	f = &follower{now: time.Unix(1_000_000, 0)}
	for range 4 { // the worker is paused between every two answers
		f.see(Leader{}, map[string]uint64{"a": 3})
		f.now = f.now.Add(time.Hour)
	}
	if d := dead(f, here); len(d) != 0 {
		t.Errorf("pauses of the worker itself: %v", d)
	}
}

// A worker that sends a heartbeat with each record mostly waits for answers. It finds dead sessions
// almost as early as other workers.
func TestFollowCountsTimeBetweenManyBeats(t *testing.T) {
	times := Times{Heartbeat: time.Second, Failover: 5 * time.Second}
	start := time.UnixMilli(0)
	o := Orders{Leader: Leader{Session: "x", Epoch: 1, Heartbeats: 7}, Others: []SessionHeartbeat{{Session: "x", Heartbeats: 7}}}
	var f Follow
	for began := start; ; began = began.Add(10 * time.Millisecond) {
		dead, wait := f.See(o, times, began, began.Add(9*time.Millisecond))
		if dead {
			if took := began.Sub(start); took < times.Failover || took > times.Failover+times.Heartbeat/2 {
				t.Errorf("found after %v", took)
			}
			break
		}
		if wait <= 0 || began.Sub(start) > 2*times.Failover {
			t.Fatalf("after %v it is to wait for %v", began.Sub(start), wait)
		}
	}
}
