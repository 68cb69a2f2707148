package failure

import "testing"

func TestWhatFollowsACallOfTheHandler(t *testing.T) {
	for _, c := range []struct {
		name   string
		result Result
		gives  bool
		want   Next
	}{
		{"it returns nil", Result{}, false, Advance},
		{"… although it noted less", Result{Over: true}, false, Advance},
		{"it fails", Result{Outcome: Failed}, false, Retry},
		{"it fails when all is done", Result{Outcome: Failed, Done: true}, false, Advance},
		{"it fails when all is done, as the term ends", Result{Outcome: Failed, Done: true, Over: true}, false, Advance},
		{"it fails because the term is over", Result{Outcome: Failed, Over: true}, false, Abort},
		{"it stops Run", Result{Outcome: StopsRun}, false, Stop},
		{"it stops Run when all is done", Result{Outcome: StopsRun, Done: true}, false, Stop},
		{"it stops Run when the term is over", Result{Outcome: StopsRun, Over: true}, false, Stop},
		{"the lease is wanted between two records", Result{Outcome: WantedBack}, false, Leave},
		{"a batch was pulled", Result{Outcome: AsksForNext, Pulled: true}, false, PassOn},
		{"… and all of it was done before the next is asked for", Result{Outcome: AsksForNext, Done: true, Pulled: true}, false, PassOn},
		{"the function that pulls has returned", Result{Outcome: Failed, Pulled: true}, false, Leave},
		{"… with Stop", Result{Outcome: StopsRun, Pulled: true}, false, Stop},
		{"… when the term was over", Result{Outcome: Failed, Pulled: true, Over: true}, false, Abort},
		{"it leaves records out that are too old", Result{Outcome: Failed, Blame: Blame{Named: true, Untried: 2}}, true, LeaveOut},
		{"… and nothing is dead-lettered", Result{Outcome: Failed, Blame: Blame{Named: true, Untried: 2}}, false, Retry},
		{"… when the term is over", Result{Outcome: Failed, Blame: Blame{Named: true, Untried: 2}, Over: true}, true, Abort},
		{"it names a record that it had done", Result{Outcome: Failed, Blame: Blame{Denied: true}}, true, Deny},
		{"… as the last of its call", Result{Outcome: Failed, Blame: Blame{Denied: true}, Done: true}, true, Advance},
	} {
		if got := Decide(c.result, c.gives); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
