package lease

import (
	"testing"
	"time"

	"github.com/weir-go/weir/shard"
)

var watchTimes = Times{Heartbeat: time.Second, Failover: 5 * time.Second, Handoff: 30 * time.Second}

// clock passes views to a Watch. Each view is requested and arrives at the same time.
type clock struct {
	t   *testing.T
	w   *Watch
	now time.Time
}

func newClock(t *testing.T, suspect Leader) *clock {
	return &clock{t, NewWatch(watchTimes, suspect), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (c *clock) see(v View) Facts { return c.w.See(v, c.now, c.now) }

// pass shows the same view every half second during d.
func (c *clock) pass(d time.Duration, v View) (f Facts) {
	for range d / (500 * time.Millisecond) {
		c.now = c.now.Add(500 * time.Millisecond)
		f = c.see(v)
	}
	return f
}

func workers(beats map[string]uint64) View {
	var v View
	for s, b := range beats {
		v.Workers = append(v.Workers, Worker{Session: s, Heartbeats: b})
	}
	return v
}

func TestASessionIsDeadWhenItsBeatStoodStill(t *testing.T) {
	c := newClock(t, Leader{})
	c.see(workers(map[string]uint64{"a": 1, "b": 7}))
	if f := c.pass(4500*time.Millisecond, workers(map[string]uint64{"a": 1, "b": 7})); len(f.Dead) != 0 {
		t.Fatalf("dead after 4.5 s: %v", f.Dead)
	}
	f := c.pass(500*time.Millisecond, workers(map[string]uint64{"a": 1, "b": 8}))
	if at, dead := f.Dead["a"]; !dead || at != 1 || len(f.Dead) != 1 {
		t.Errorf("after 5 s, in which b moved: %v", f.Dead)
	}
	if f := c.pass(4500*time.Millisecond, workers(map[string]uint64{"a": 2, "b": 8})); len(f.Dead) != 0 {
		t.Errorf("a came back and b stood for 4.5 s: %v", f.Dead)
	}
}

// The row of an ended session is removed after ten failover times. If it were removed at once, a
// late call could create it again or refer to it.
func TestAnEndedSessionIsForgottenLate(t *testing.T) {
	c, v := newClock(t, Leader{}), View{Workers: []Worker{{Session: "a", Heartbeats: 1, Ended: true}, {Session: "b", Heartbeats: 1}}}
	c.see(v)
	for i := range 99 {
		v.Workers[1].Heartbeats++
		if f := c.pass(500*time.Millisecond, v); len(f.Forgettable) != 0 || f.Any() {
			t.Fatalf("after %v: %+v", time.Duration(i+1)*500*time.Millisecond, f)
		}
	}
	v.Workers[1].Heartbeats++
	if f := c.pass(500*time.Millisecond, v); !f.Forgettable["a"] || !f.Any() {
		t.Errorf("after ten failover times: %+v", f)
	}
	if plan := Plan(v, Facts{}, Limits{}); len(plan) != 0 {
		t.Errorf("before that it is planned to %v", plan)
	}
	v.Workers = v.Workers[1:]
	if c.see(v); len(c.w.ended) != 0 {
		t.Error("a row that has gone is remembered")
	}
}

func TestTimeAroundAFailedReadProvesNothing(t *testing.T) {
	c, v := newClock(t, Leader{}), workers(map[string]uint64{"a": 1})
	c.see(v)
	for range 20 {
		c.w.Missed()
		c.now = c.now.Add(time.Hour)
		if f := c.see(v); len(f.Dead) != 0 {
			t.Fatal("an outage of the store made a session dead")
		}
	}
	if f := c.pass(5*time.Second, v); len(f.Dead) != 1 {
		t.Error("five seconds of successful reads do not count after an outage")
	}
}

func TestALeaderThatWasPausedSawNothing(t *testing.T) {
	c, v := newClock(t, Leader{}), workers(map[string]uint64{"a": 1})
	c.see(v)
	c.now = c.now.Add(time.Hour) // the process was suspended between two successful reads
	if f := c.see(v); len(f.Dead) != 0 {
		t.Error("a pause of the leader made a session dead")
	}
}

func TestOnlyTheTimeBetweenReadsCounts(t *testing.T) {
	c, v := newClock(t, Leader{}), workers(map[string]uint64{"a": 1})
	c.see(v)
	for range 9 { // each read takes 900 ms, which do not count, with 100 ms in between
		began := c.now.Add(100 * time.Millisecond)
		c.now = began.Add(900 * time.Millisecond)
		if f := c.w.See(v, began, c.now); len(f.Dead) != 0 {
			t.Fatal("the time that reads took was counted")
		}
	}
}

func TestTheLeaderThatWasTakenOverFromIsDeadAtOnce(t *testing.T) {
	c := newClock(t, Leader{Session: "old", Heartbeats: 9})
	if f := c.see(workers(map[string]uint64{"old": 9, "new": 1})); f.Dead["old"] != 9 || len(f.Dead) != 1 {
		t.Errorf("dead: %v", f.Dead)
	}
	c = newClock(t, Leader{Session: "old", Heartbeats: 9})
	if f := c.see(workers(map[string]uint64{"old": 10, "new": 1})); len(f.Dead) != 0 {
		t.Error("the old leader has sent a heartbeat since, and counts as dead")
	}
}

func TestARevocationRipensOnlyAfterTheOldOwnerWasTold(t *testing.T) {
	key := Key{Stream: "s", Shard: "1"}
	v := View{
		Workers: []Worker{{Session: "a", Heartbeats: 1}},
		Leases:  []Lease{{Key: key, Epoch: 4, Revoked: "a"}},
	}
	beat := func() { v.Workers[0].Heartbeats++ }
	c := newClock(t, Leader{})
	for range 20 {
		beat()
		c.now = c.now.Add(time.Second)
		if f := c.see(v); len(f.Ripe) != 0 || !f.OutOfDate["a"] {
			t.Fatalf("not told yet: ripe %v, out-of-date %v", f.Ripe, f.OutOfDate)
		}
	}
	c.w.Told("a", c.now)
	for i := range 12 {
		beat()
		f := c.pass(500*time.Millisecond, v)
		if ripe := len(f.Ripe) > 0; ripe != (i >= 9) {
			t.Fatalf("%v after being told: ripe %v", time.Duration(i+1)*500*time.Millisecond, f.Ripe)
		}
		if f.OutOfDate["a"] {
			t.Fatal("is to be told twice")
		}
	}
	v.Leases[0].Epoch = 6 // revoked again later
	beat()
	if f := c.pass(500*time.Millisecond, v); len(f.Ripe) != 0 || !f.OutOfDate["a"] {
		t.Errorf("a new revocation inherits from the old one: %+v", f)
	}
}

func TestTimeBeforeTheTellDoesNotCount(t *testing.T) {
	v := View{Workers: []Worker{{Session: "a"}}, Leases: []Lease{{Key: Key{"s", "1"}, Epoch: 4, Revoked: "a"}}}
	c := newClock(t, Leader{})
	c.see(v)
	c.now = c.now.Add(900 * time.Millisecond) // duration of the Apply
	c.w.Told("a", c.now)
	if f := c.pass(4500*time.Millisecond, v); len(f.Ripe) != 0 {
		t.Error("ripe 4.5 s after the tell: what the Apply took was counted")
	}
	if f := c.pass(500*time.Millisecond, v); len(f.Ripe) != 1 {
		t.Error("not ripe 5 s after the tell")
	}
}

func TestAHandOffIsOverdueWhenTheSameWishStoodForTheTimeout(t *testing.T) {
	key := Key{Stream: "s", Shard: "1"}
	v := View{Leases: []Lease{{Key: key, Epoch: 2, Owner: "a", Heir: "b"}}}
	c := newClock(t, Leader{})
	c.see(v)
	if f := c.pass(29*time.Second, v); len(f.Overdue) != 0 {
		t.Fatal("overdue too early")
	}
	v.Leases[0].Heir = "c"
	if f := c.pass(29*time.Second, v); len(f.Overdue) != 0 {
		t.Fatal("a new wish inherits the age of the old one")
	}
	if f := c.pass(2*time.Second, v); f.Overdue[key] != 2 {
		t.Errorf("overdue: %v", f.Overdue)
	}
}

func TestAWorkerThatBelievesSomethingElseIsToldAfterSomeBeats(t *testing.T) {
	leases := []Lease{{Key: Key{"s", "1"}, Epoch: 2, Owner: "a"}}
	v := View{Leases: leases, Workers: []Worker{{Session: "a", Heartbeats: 1, Holds: Fingerprint(leases)}}}
	c := newClock(t, Leader{})
	for range 20 {
		v.Workers[0].Heartbeats++
		c.now = c.now.Add(time.Second)
		if f := c.see(v); f.OutOfDate["a"] {
			t.Fatal("told although it knows")
		}
	}
	v.Workers[0].Holds = 0 // it never learned of its lease
	told := 0
	for range 20 {
		v.Workers[0].Heartbeats++
		c.now = c.now.Add(time.Second)
		if c.see(v).OutOfDate["a"] {
			told++
		}
	}
	if told < 3 || told > 6 {
		t.Errorf("told %d times in 20 heartbeats, want about every fourth heartbeat", told)
	}
}

func TestFollowCountsLikeTheLeader(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var f Follow
	l := Leader{Session: "a", Epoch: 1, Heartbeats: 5}
	f.See(Orders{Leader: l}, watchTimes, now, now)
	for i := 1; i <= 5; i++ {
		now = now.Add(time.Second)
		dead, wait := f.See(Orders{Leader: l}, watchTimes, now, now)
		if dead != (i == 5) || wait != time.Duration(5-i)*time.Second {
			t.Errorf("after %d s: dead %v, wait %v", i, dead, wait)
		}
	}
	l.Heartbeats++
	if dead, wait := f.See(Orders{Leader: l}, watchTimes, now, now); dead || wait != 5*time.Second {
		t.Error("a heartbeat of the leader does not start it anew")
	}
	f.Missed()
	now = now.Add(time.Hour)
	if dead, _ := f.See(Orders{Leader: l}, watchTimes, now, now); dead {
		t.Error("an outage made the leader dead")
	}
}

// A lease keeps the revocation of a session that died before it acknowledged. No action waits for
// the acknowledgement, and no session is notified.
func TestWatchForgetsTheDeadOfRevokedLeases(t *testing.T) {
	for name, position := range map[string]shard.Position{"finished": shard.End, "paused": shard.Oldest} {
		t.Run(name, func(t *testing.T) {
			watch := NewWatch(Times{Heartbeat: time.Second, Failover: 5 * time.Second, Handoff: time.Minute}, Leader{})
			now := time.Unix(1_000_000, 0)
			v := View{
				Leases:  []Lease{{Key: Key{Stream: "s", Shard: "1"}, Epoch: 3, Revoked: "a", Position: position}},
				Workers: []Worker{{Session: "a", Heartbeats: 1}},
			}
			if f := watch.See(v, now, now); !f.OutOfDate["a"] {
				t.Errorf("while it lives: %+v", f)
			}
			v.Workers[0].Ended = true
			if f := watch.See(v, now.Add(time.Second), now.Add(time.Second)); f.Any() {
				t.Errorf("when it has ended: %+v", f)
			}
			v.Workers = nil
			if f := watch.See(v, now.Add(2*time.Second), now.Add(2*time.Second)); f.Any() {
				t.Errorf("when it is gone: %+v", f)
			}
		})
	}
}
