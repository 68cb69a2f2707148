package failure

import (
	"math"
	"testing"
	"time"

	"github.com/weir-go/weir/deadletter"
)

const (
	defaultPatience  = 2 * time.Minute
	defaultPerMinute = 60
)

// The table contains the verdict for each failure.
func TestWhatFollowsAFailedCall(t *testing.T) {
	const lots = 1e6
	var (
		none    = Policy{}
		rejects = Policy{On: true, Patience: 2 * time.Minute, PerMinute: 60}
		three   = Policy{On: true, Attempts: 3, Patience: 2 * time.Minute, PerMinute: 60}
		bisects = Policy{On: true, Attempts: 3, Bisect: true, Patience: 2 * time.Minute, PerMinute: 60}
		aged    = Policy{On: true, MaxAge: time.Hour, Patience: 2 * time.Minute, PerMinute: 60}
		hasty   = Policy{On: true, Attempts: 1, Patience: -1, PerMinute: -1}
	)
	again := func(n int) Verdict { return Verdict{Do: Again, Records: n} }
	for _, row := range []struct {
		name   string
		policy Policy
		call   Call
		want   Verdict
	}{
		{"without a policy, for ever", none, Call{Records: 1, Attempts: 1e6, Alone: 1e6, Rejected: true, Other: true, Room: lots}, again(1)},

		{"attempts: not yet", three, Call{Records: 1, Attempts: 2, Alone: 2, Other: true, Room: lots}, again(1)},
		{"attempts: now", three, Call{Records: 1, Attempts: 3, Alone: 3, Other: true, Room: lots}, Verdict{GiveUp, 0, 1, deadletter.Attempts}},
		{"attempts: of a record that was named, of many", three, Call{Records: 9, Named: true, Attempts: 3, Alone: 3, Other: true, Room: lots}, Verdict{GiveUp, 0, 1, deadletter.Attempts}},
		{"attempts: of a batch that fails as one", three, Call{Records: 9, Attempts: 3, Other: true, Room: lots}, Verdict{GiveUp, 0, 9, deadletter.Attempts}},
		{"only what is rejected", rejects, Call{Records: 1, Attempts: 1e6, Alone: 1e6, Failing: 24 * time.Hour, Other: true, Room: lots}, again(1)},

		{"bisect: several", bisects, Call{Records: 9, Attempts: 1, Other: true, Room: lots}, Verdict{Do: Halve, Records: 9}},
		{"bisect: several, after many", bisects, Call{Records: 2, Attempts: 50, Other: true, Room: lots}, Verdict{Do: Halve, Records: 2}},
		{"bisect: what failed beside others does not count", bisects, Call{Records: 1, Attempts: 50, Alone: 2, Other: true, Room: lots}, again(1)},
		{"bisect: alone as often as it may", bisects, Call{Records: 1, Attempts: 50, Alone: 3, Other: true, Room: lots}, Verdict{GiveUp, 0, 1, deadletter.Attempts}},
		{"bisect: not where it was named", bisects, Call{Records: 9, Named: true, Attempts: 1, Alone: 1, Other: true, Room: lots}, again(9)},

		{"rejected", rejects, Call{Records: 1, Rejected: true, Attempts: 1, Alone: 1, Room: lots}, Verdict{GiveUp, 0, 1, deadletter.Rejected}},
		{"rejected by name", rejects, Call{Records: 9, Named: true, Rejected: true, Attempts: 1, Alone: 1, Room: lots}, Verdict{GiveUp, 0, 1, deadletter.Rejected}},
		{"rejected, but which?", rejects, Call{Records: 9, Rejected: true, Attempts: 1, Room: lots}, Verdict{HalveNow, 0, 9, deadletter.Rejected}},
		{"rejected when there is no room", rejects, Call{Records: 1, Rejected: true, Attempts: 1, Alone: 1, Room: 0.9}, Verdict{WaitForRoom, 0, 1, deadletter.Rejected}},

		{"age: old enough", aged, Call{Records: 1, Attempts: 1, Alone: 1, Old: 1, Other: true, Room: lots}, Verdict{GiveUp, 0, 1, deadletter.Age}},
		{"age: young", aged, Call{Records: 1, Attempts: 1e6, Alone: 1e6, Other: true, Room: lots}, again(1)},
		{"age: the old ones of a batch that fails as one", aged, Call{Records: 9, Attempts: 1, Old: 4, Other: true, Room: lots}, Verdict{GiveUp, 0, 4, deadletter.Age}},
		{"age: of a named record", aged, Call{Records: 9, Named: true, Attempts: 1, Alone: 1, Old: 4, Other: true, Room: lots}, Verdict{GiveUp, 0, 1, deadletter.Age}},

		{"nothing else works", three, Call{Records: 1, Attempts: 99, Alone: 99, Failing: 2*time.Minute - 1, Room: lots}, Verdict{WaitForOthers, 0, 1, deadletter.Attempts}},
		{"nothing else works, for long enough", three, Call{Records: 1, Attempts: 99, Alone: 99, Failing: 2 * time.Minute, Room: lots}, Verdict{GiveUp, 0, 1, deadletter.Attempts}},
		{"nothing else works, of age", aged, Call{Records: 1, Attempts: 1, Alone: 1, Old: 1, Room: lots}, Verdict{WaitForOthers, 0, 1, deadletter.Age}},
		{"no room", three, Call{Records: 1, Attempts: 3, Alone: 3, Other: true, Room: 0.99}, Verdict{WaitForRoom, 0, 1, deadletter.Attempts}},
		{"just room", three, Call{Records: 1, Attempts: 3, Alone: 3, Other: true, Room: 1}, Verdict{GiveUp, 0, 1, deadletter.Attempts}},
		{"no room for all of a batch", three, Call{Records: 9, Attempts: 3, Other: true, Room: 8.9}, Verdict{WaitForRoom, 0, 9, deadletter.Attempts}},
		{"more than a minute's, too early", three, Call{Records: 600, Attempts: 99, Failing: 9*time.Minute - 1, Other: true, Room: 60}, Verdict{WaitForRoom, 0, 600, deadletter.Attempts}},
		{"more than a minute's", three, Call{Records: 600, Attempts: 99, Failing: 9 * time.Minute, Other: true, Room: 60}, Verdict{GiveUp, 0, 600, deadletter.Attempts}},
		{"no brake", hasty, Call{Records: 10_000, Attempts: 1}, Verdict{GiveUp, 0, 10_000, deadletter.Attempts}},
	} {
		if got := row.policy.Judge(row.call); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

// The pause depends on the failed calls of the batch or of the failing record. Finding the failing
// record does not make the pauses longer.
func TestWhichFailuresAPauseIsOf(t *testing.T) {
	bisects, three := Policy{On: true, Attempts: 3, Bisect: true}, Policy{On: true, Attempts: 3}
	for _, row := range []struct {
		name            string
		policy          Policy
		then            Action
		attempts, alone int
		want            int
	}{
		{"without a policy", Policy{}, Again, 7, 0, 7},
		{"a batch that fails as one", three, Again, 7, 0, 7},
		{"a record that was named, later", three, Again, 7, 2, 7},
		{"it is looked for", bisects, Halve, 7, 0, 1},
		{"it is looked for again, beside one that was named", bisects, Halve, 9, 3, 1},
		{"it is found", bisects, Again, 10, 1, 1},
		{"it fails again", bisects, Again, 12, 3, 3},
		{"the brake holds it", bisects, WaitForOthers, 20, 11, 11},
		{"the end of a shard", bisects, Again, 4, 0, 4},
	} {
		if got := row.policy.Failures(row.then, &History{Attempts: row.attempts, Alone: row.alone}); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestTheBrakeEnds(t *testing.T) {
	policy := Policy{On: true, Attempts: 1, Patience: defaultPatience, PerMinute: defaultPerMinute}
	for _, records := range []int{1, 2, 60, 61, 10_000} {
		call := Call{Records: records, Attempts: 1, Room: 60}
		least := max(defaultPatience, time.Duration(math.Ceil(float64(records-60)/60*float64(time.Minute))))
		call.Failing = least
		if v := policy.Judge(call); v.Do != GiveUp {
			t.Errorf("%d records after %v: %+v", records, least, v)
		}
		call.Failing = least - 2
		if v := policy.Judge(call); v.Do == GiveUp {
			t.Errorf("%d records just before %v: %+v", records, least, v)
		}
	}
}

func TestTheAllowanceIsThatOfAMinute(t *testing.T) {
	var a allowance
	at := time.Unix(1e9, 0)
	if left := a.now(60, at); left != 60 {
		t.Errorf("%v at first", left)
	}
	a.take(50, 60, at)
	if left := a.now(60, at); left != 10 {
		t.Errorf("%v after 50", left)
	}
	if left := a.now(60, at.Add(10*time.Second)); left != 20 {
		t.Errorf("%v ten seconds later", left)
	}
	if left := a.now(60, at.Add(time.Hour)); left != 60 {
		t.Errorf("%v an hour later", left)
	}
	a.take(600, 60, at)
	if left := a.now(60, at.Add(time.Second)); left != 1 {
		t.Errorf("%v a second after more than there was", left)
	}
	given := 0
	for now := at; now.Before(at.Add(time.Hour)); now = now.Add(10 * time.Millisecond) {
		if a.now(60, now) >= 1 {
			a.take(1, 60, now)
			given++
		}
	}
	if given < 59*60 || given > 61*60 {
		t.Errorf("%d in an hour", given)
	}
}

func TestWhenAKillerIsGivenUp(t *testing.T) {
	g := Policy{Patience: 2 * time.Minute, PerMinute: 60}
	for _, c := range []struct {
		name  string
		held  time.Duration
		other bool
		room  float64
		want  Action
	}{
		{"something else works", 0, true, 60, GiveUp},
		{"nothing else does", 119 * time.Second, false, 60, WaitForOthers},
		{"nothing else does, for long", 2 * time.Minute, false, 60, GiveUp},
		{"too many a minute", time.Hour, true, 0.5, WaitForRoom},
	} {
		if got := g.JudgeKiller(c.held, c.other, c.room); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
