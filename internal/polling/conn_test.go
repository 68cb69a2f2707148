package polling

import (
	"context"
	"testing"
)

// Turns whose calls have the same parent context share one derived context, until a turn ends it.
func TestALanesContext(t *testing.T) {
	t.Parallel()
	validity, end := context.WithCancel(t.Context())
	defer end()
	other, endOther := context.WithCancel(t.Context())
	defer endOther()
	var l conn
	defer l.close()
	first, _ := l.context(validity)
	second, cancel := l.context(validity)
	if first != second {
		t.Error("each turn has a context of its own")
	}
	cancel()
	third, _ := l.context(validity)
	if third.Err() != nil {
		t.Error("a turn begins with a context that has ended")
	}
	fourth, _ := l.context(other)
	end()
	if third.Err() == nil || fourth.Err() != nil {
		t.Error("a turn has the context of other calls")
	}
	endOther()
	if fourth.Err() == nil {
		t.Error("a turn's context outlives its calls")
	}
	fifth, _ := l.context(t.Context())
	l.close()
	if fifth.Err() == nil {
		t.Error("the context of a conn outlives it")
	}
}
