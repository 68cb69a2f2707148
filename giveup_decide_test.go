package weir

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/weir-go/weir/deadletter"
)

var toNowhere = deadletter.Func(func(context.Context, []deadletter.Letter) error { return nil })

// What follows a failure, as a table. The policies are as New leaves them.
func TestWhatFollowsAFailedCall(t *testing.T) {
	const lots = 1e6
	var (
		none    = GiveUp{}
		rejects = GiveUp{To: toNowhere, Patience: 2 * time.Minute, PerMinute: 60}
		three   = GiveUp{To: toNowhere, Attempts: 3, Patience: 2 * time.Minute, PerMinute: 60}
		bisects = GiveUp{To: toNowhere, Attempts: 3, Bisect: true, Patience: 2 * time.Minute, PerMinute: 60}
		aged    = GiveUp{To: toNowhere, MaxAge: time.Hour, Patience: 2 * time.Minute, PerMinute: 60}
		hasty   = GiveUp{To: toNowhere, Attempts: 1, Patience: -1, PerMinute: -1}
	)
	again := func(n int) verdict { return verdict{do: handleAgain, records: n} }
	for _, row := range []struct {
		name   string
		policy GiveUp
		call   failedCall
		want   verdict
	}{
		{"without a policy, for ever", none, failedCall{records: 1, attempts: 1e6, alone: 1e6, rejected: true, other: true, room: lots}, again(1)},

		{"attempts: not yet", three, failedCall{records: 1, attempts: 2, alone: 2, other: true, room: lots}, again(1)},
		{"attempts: now", three, failedCall{records: 1, attempts: 3, alone: 3, other: true, room: lots}, verdict{giveUp, 1, deadletter.Attempts}},
		{"attempts: of a record that was named, of many", three, failedCall{records: 9, named: true, attempts: 3, alone: 3, other: true, room: lots}, verdict{giveUp, 1, deadletter.Attempts}},
		{"attempts: of a batch that fails as one", three, failedCall{records: 9, attempts: 3, other: true, room: lots}, verdict{giveUp, 9, deadletter.Attempts}},
		{"only what is rejected", rejects, failedCall{records: 1, attempts: 1e6, alone: 1e6, failing: 24 * time.Hour, other: true, room: lots}, again(1)},

		{"bisect: several", bisects, failedCall{records: 9, attempts: 1, other: true, room: lots}, verdict{do: halve, records: 9}},
		{"bisect: several, after many", bisects, failedCall{records: 2, attempts: 50, other: true, room: lots}, verdict{do: halve, records: 2}},
		{"bisect: what failed beside others does not count", bisects, failedCall{records: 1, attempts: 50, alone: 2, other: true, room: lots}, again(1)},
		{"bisect: alone as often as it may", bisects, failedCall{records: 1, attempts: 50, alone: 3, other: true, room: lots}, verdict{giveUp, 1, deadletter.Attempts}},
		{"bisect: not where it was named", bisects, failedCall{records: 9, named: true, attempts: 1, alone: 1, other: true, room: lots}, again(9)},

		{"rejected", rejects, failedCall{records: 1, rejected: true, attempts: 1, alone: 1, room: lots}, verdict{giveUp, 1, deadletter.Rejected}},
		{"rejected by name", rejects, failedCall{records: 9, named: true, rejected: true, attempts: 1, alone: 1, room: lots}, verdict{giveUp, 1, deadletter.Rejected}},
		{"rejected, but which?", rejects, failedCall{records: 9, rejected: true, attempts: 1, room: lots}, verdict{halveNow, 9, deadletter.Rejected}},
		{"rejected when there is no room", rejects, failedCall{records: 1, rejected: true, attempts: 1, alone: 1, room: 0.9}, verdict{waitForRoom, 1, deadletter.Rejected}},

		{"age: old enough", aged, failedCall{records: 1, attempts: 1, alone: 1, old: 1, other: true, room: lots}, verdict{giveUp, 1, deadletter.Age}},
		{"age: young", aged, failedCall{records: 1, attempts: 1e6, alone: 1e6, other: true, room: lots}, again(1)},
		{"age: the old ones of a batch that fails as one", aged, failedCall{records: 9, attempts: 1, old: 4, other: true, room: lots}, verdict{giveUp, 4, deadletter.Age}},
		{"age: of a named record", aged, failedCall{records: 9, named: true, attempts: 1, alone: 1, old: 4, other: true, room: lots}, verdict{giveUp, 1, deadletter.Age}},

		{"nothing else works", three, failedCall{records: 1, attempts: 99, alone: 99, failing: 2*time.Minute - 1, room: lots}, verdict{waitForOthers, 1, deadletter.Attempts}},
		{"nothing else works, for long enough", three, failedCall{records: 1, attempts: 99, alone: 99, failing: 2 * time.Minute, room: lots}, verdict{giveUp, 1, deadletter.Attempts}},
		{"nothing else works, of age", aged, failedCall{records: 1, attempts: 1, alone: 1, old: 1, room: lots}, verdict{waitForOthers, 1, deadletter.Age}},
		{"no room", three, failedCall{records: 1, attempts: 3, alone: 3, other: true, room: 0.99}, verdict{waitForRoom, 1, deadletter.Attempts}},
		{"just room", three, failedCall{records: 1, attempts: 3, alone: 3, other: true, room: 1}, verdict{giveUp, 1, deadletter.Attempts}},
		{"no room for all of a batch", three, failedCall{records: 9, attempts: 3, other: true, room: 8.9}, verdict{waitForRoom, 9, deadletter.Attempts}},
		{"more than a minute's, too early", three, failedCall{records: 600, attempts: 99, failing: 9*time.Minute - 1, other: true, room: 60}, verdict{waitForRoom, 600, deadletter.Attempts}},
		{"more than a minute's", three, failedCall{records: 600, attempts: 99, failing: 9 * time.Minute, other: true, room: 60}, verdict{giveUp, 600, deadletter.Attempts}},
		{"no brake", hasty, failedCall{records: 10_000, attempts: 1}, verdict{giveUp, 10_000, deadletter.Attempts}},
	} {
		if got := row.policy.judge(row.call); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

// However a batch fails, it is given up within bounds that the policy says: the brake ends.
// Finding the record at fault does not make the pauses longer.
func TestWhichFailuresAPauseIsOf(t *testing.T) {
	bisects, three := GiveUp{To: toNowhere, Attempts: 3, Bisect: true}, GiveUp{To: toNowhere, Attempts: 3}
	for _, row := range []struct {
		name            string
		policy          GiveUp
		then            consequence
		attempts, alone int
		want            int
	}{
		{"without a policy", GiveUp{}, handleAgain, 7, 0, 7},
		{"a batch that fails as one", three, handleAgain, 7, 0, 7},
		{"a record that was named, later", three, handleAgain, 7, 2, 7},
		{"it is looked for", bisects, halve, 7, 0, 1},
		{"it is looked for again, beside one that was named", bisects, halve, 9, 3, 1},
		{"it is found", bisects, handleAgain, 10, 1, 1},
		{"it fails again", bisects, handleAgain, 12, 3, 3},
		{"the brake holds it", bisects, waitForOthers, 20, 11, 11},
		{"the end of a shard", bisects, handleAgain, 4, 0, 4},
	} {
		if got := row.policy.failures(row.then, row.attempts, row.alone); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestTheBrakeEnds(t *testing.T) {
	policy := GiveUp{To: toNowhere, Attempts: 1, Patience: defaultPatience, PerMinute: defaultPerMinute}
	for _, records := range []int{1, 2, 60, 61, 10_000} {
		call := failedCall{records: records, attempts: 1, room: 60}
		least := max(defaultPatience, time.Duration(math.Ceil(float64(records-60)/60*float64(time.Minute))))
		call.failing = least
		if v := policy.judge(call); v.do != giveUp {
			t.Errorf("%d records after %v: %+v", records, least, v)
		}
		call.failing = least - 2
		if v := policy.judge(call); v.do == giveUp {
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
