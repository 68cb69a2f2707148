package promweir

import (
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
)

func TestLags(t *testing.T) {
	now := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	at, err := shard.Parse("100")
	if err != nil {
		t.Fatal(err)
	}
	before, err := shard.Parse("50")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		s             weir.ShardStatus
		p             *progress
		read, handled int // seconds; saved is handled where it is 0
		saved         int
	}{
		"nothing is known yet":                    {weir.ShardStatus{Behind: -1, Reading: weir.ShardStarting}, &progress{}, -1, -1, -1},
		"at the tip":                              {weir.ShardStatus{State: weir.ShardAtTip, Reading: weir.ShardAtTip, ReadingSince: ago(9)}, nil, 0, 0, 0},
		"the last answer was behind":              {weir.ShardStatus{Behind: 7 * time.Second, State: weir.ShardPacing, Reading: weir.ShardPacing, ReadingSince: ago(1)}, nil, 7, 7, 7},
		"reads fail":                              {weir.ShardStatus{Behind: 7 * time.Second, State: weir.ShardBackingOff, Reading: weir.ShardBackingOff, ReadingSince: ago(10)}, nil, 17, 17, 17},
		"reading waits for the handler":           {weir.ShardStatus{State: weir.ShardHandling, Reading: weir.ShardAwaitingHandler, ReadingSince: ago(10)}, &progress{handledTo: ago(20)}, 10, 20, 20},
		"the first batch takes long":              {weir.ShardStatus{State: weir.ShardHandling, Reading: weir.ShardAtTip}, &progress{firstRead: ago(30)}, 0, 30, 30},
		"records wait, though nothing is handled": {weir.ShardStatus{State: weir.ShardPacing, Reading: weir.ShardPacing, Buffered: 3}, &progress{handledTo: ago(5)}, 0, 5, 5},
		"all is handled, and not saved":           {weir.ShardStatus{State: weir.ShardAtTip, Reading: weir.ShardAtTip, At: at}, &progress{savedAt: before, savedTo: ago(4), handledTo: ago(1)}, 0, 0, 4},
		"all is saved":                            {weir.ShardStatus{State: weir.ShardAtTip, Reading: weir.ShardAtTip, At: at}, &progress{savedAt: at, savedTo: ago(4)}, 0, 0, 0},
		"a clock that was set back":               {weir.ShardStatus{State: weir.ShardHandling, Reading: weir.ShardBackingOff, ReadingSince: ago(-60)}, &progress{handledTo: ago(-60)}, 0, 0, 0},
	} {
		got := lagsOf(c.s, c.p, now)
		sec := func(n int) time.Duration {
			if n < 0 {
				return -1
			}
			return time.Duration(n) * time.Second
		}
		if want := (lags{sec(c.read), sec(c.handled), sec(c.saved)}); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
