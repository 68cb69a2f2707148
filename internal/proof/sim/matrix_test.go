package sim

import (
	"strings"
	"testing"
	"time"
)

func TestCoveringListHoldsEveryLegalPair(t *testing.T) {
	list := covering()
	m := newMatrix()
	for _, s := range list {
		if !s.legal() || s != s.whole() {
			t.Errorf("%v is not a whole legal set", s)
		}
		m.add(Crossed{s, time.Hour})
	}
	if missing := m.missing(); len(missing) > 0 {
		t.Errorf("%d pairs are in no set, such as %s with %s", len(missing), missing[0][0], missing[0][1])
	}
	if len(list) > 60 {
		t.Errorf("the list has %d sets: every run has to be as long to visit all pairs", len(list))
	}
}

// TestEachPairIsLegalOrHasAReason compares the rules about pairs with expected results.
func TestEachPairIsLegalOrHasAReason(t *testing.T) {
	for _, tt := range []struct {
		a, b feature
		want string
	}{
		{featParallel, featTooOld, ""},
		{featParallel, featReused, "-"},
		{featParallel, featBatchWait, "-"},
		{featParallel, featLoopForm, "-"},
		{featAttempts, featWindowed, "-"},
		{featOpenForm, featPullForm, "-"},
		{featRecordForm, featIdleCalls, "."},
		{featLoopForm, featNamed, "."},
		{featPullForm, featWindowed, ""},
		{featPosition, featResetting, ""},
		{featPartitions, featPosition, ""},
		{featPartitions, featIdleCalls, "-"},
		{featPartitions, featReused, "-"},
		{featPartitions, featBatchWait, "-"},
		{featPartitions, featWindowed, "-"},
		{featPartitions, featRecordForm, "."},
	} {
		if got := legality(tt.a, tt.b); got != tt.want {
			t.Errorf("%s with %s: %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestMatrixNamesThePairsWithTheFewestHours(t *testing.T) {
	m := newMatrix()
	for _, p := range legalPairs() {
		m.add(Crossed{setOf(p[0], p[1]), 2 * time.Hour})
	}
	delete(m.hours, pair{featParallel, featTooOld})
	delete(m.seeds, pair{featParallel, featTooOld})
	var out strings.Builder
	m.print(&out, true)
	for _, want := range []string{"354 of 355 legal ones", "the fewest worker hours: Parallel with RejectOld 0.00,"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasPrefix(line, "           ") {
			continue
		}
		if len(line) > 131 {
			t.Errorf("a line of the matrix has %d columns: %s", len(line), line)
		}
	}
}
