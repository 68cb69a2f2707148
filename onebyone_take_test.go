package weir

import (
	"errors"
	"testing"
)

// A process that was suspended in the loop body may continue before the timer ends the context. So
// the loop checks the clock before each record, to find out whether the shard is still this
// worker's.
func TestTheLoopAsksTheClockBeforeEachRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lost    error
		yielded int
	}{
		{ErrLeaseLost, 0},
		{nil, 1}, // and then Done fails, because the batch is of no delivery
	} {
		yielded := 0
		turn := &loopTurn{ctx: t.Context(), batch: &Batch{Records: make([]Record, 3)}, checkLease: func() error { return c.lost }}
		stayed := turn.take(t.Context(), func(Record, error) bool { yielded++; return true })
		if yielded != c.yielded || !stayed || c.lost != nil && !errors.Is(turn.err, c.lost) {
			t.Errorf("%v: %d records were yielded, want %d; stayed %t, %v", c.lost, yielded, c.yielded, stayed, turn.err)
		}
	}
}
