package backlog

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

var start = time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)

// Record n arrives in second n. at returns its arrival time, and after returns the position after
// it.
func at(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }

func after(t *testing.T, n int) shard.Position {
	t.Helper()
	p, err := shard.After(fmt.Sprint(n + 1))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheOldestRecordIsThatOfTheFirstStretchWhichIsNotDone(t *testing.T) {
	var l Log
	if got := l.Oldest(shard.Oldest); !got.IsZero() {
		t.Errorf("%v in an empty log", got)
	}
	l.Add(at(0), after(t, 9))
	l.Add(at(10), after(t, 19))
	l.Add(at(5), after(t, 15)) // repeated records
	for done, want := range map[int]time.Time{0: at(0), 8: at(0), 9: at(10), 18: at(10), 19: {}} {
		if got := l.Oldest(after(t, done)); got != want {
			t.Errorf("up to %d: %v, want %v", done, got, want)
		}
	}
	if got := l.Oldest(shard.At(start)); got != at(0) {
		t.Errorf("from a time: %v", got)
	}
	l.Saved(after(t, 9))
	if got := l.Oldest(shard.Oldest); got != at(10) {
		t.Errorf("once the first ten are saved: %v", got)
	}
	l.Saved(shard.End)
	if got := l.Oldest(shard.Oldest); !got.IsZero() {
		t.Errorf("once all is saved: %v", got)
	}
}

func TestALogOfWhatIsNeverSavedIsBoundedAndNeverSaysTooLittle(t *testing.T) {
	var l Log
	const n = 10_000
	for i := range n {
		l.Add(at(i), after(t, i))
	}
	if len(l.stretches) > most || cap(l.stretches) > 2*most {
		t.Errorf("%d stretches, room for %d", len(l.stretches), cap(l.stretches))
	}
	for done := range n - 1 {
		if got := l.Oldest(after(t, done)); got.IsZero() || got.After(at(done+1)) {
			t.Fatalf("up to %d: %v is later than %v", done, got, at(done+1))
		}
	}
	l.Saved(after(t, n))
	if l.stretches != nil {
		t.Errorf("room for %d is kept", cap(l.stretches))
	}
}

func TestLagsGrowWhileNothingGetsOn(t *testing.T) {
	now := at(100)
	for name, c := range map[string]struct {
		r               source.Status
		undone, unsaved time.Time
		want            Lags // in seconds
	}{
		"nothing is known yet": {source.Status{Doing: health.NotStarted, Behind: -1}, time.Time{}, time.Time{}, Lags{-1, -1, -1}},
		"at the tip":           {source.Status{Doing: health.AtTip, Trying: at(90)}, time.Time{}, time.Time{}, Lags{0, 0, 0}},
		"subscribed":           {source.Status{Doing: health.Subscribed, Trying: at(95), Behind: 3 * time.Second}, time.Time{}, time.Time{}, Lags{3, 3, 3}},
		"a read is due":        {source.Status{Doing: health.Pacing, Behind: 7 * time.Second, Trying: at(99)}, time.Time{}, time.Time{}, Lags{8, 8, 8}},
		"reads fail":           {source.Status{Doing: health.ReadFailed, Behind: 7 * time.Second, Trying: at(40)}, time.Time{}, time.Time{}, Lags{67, 67, 67}},
		"the handler is slow":  {source.Status{Doing: health.AtTip}, at(70), time.Time{}, Lags{0, 30, 30}},
		"records wait":         {source.Status{Doing: health.AtTip, Buffered: 1, Oldest: at(80)}, time.Time{}, time.Time{}, Lags{0, 20, 20}},
		"both":                 {source.Status{Doing: health.AtTip, Buffered: 1, Oldest: at(80)}, at(70), time.Time{}, Lags{0, 30, 30}},
		"not saved":            {source.Status{Doing: health.AtTip}, time.Time{}, at(60), Lags{0, 0, 40}},
		"all three": {
			source.Status{Doing: health.AwaitingHandler, Behind: time.Second, Trying: at(95)}, at(70), at(60), Lags{6, 30, 40},
		},
		"never answered, with records of before":      {source.Status{Doing: health.ReadFailed, Behind: -1, Trying: at(10)}, at(70), time.Time{}, Lags{30, 30, 30}},
		"a part of the first answer, without its lag": {source.Status{Doing: health.AwaitingHandler, Behind: -1, Buffered: 1, Oldest: at(80)}, at(70), time.Time{}, Lags{30, 30, 30}},
		"a clock that was set back":                   {source.Status{Doing: health.ReadFailed, Trying: at(160)}, at(160), at(160), Lags{0, 0, 0}},
	} {
		got := Now(c.r, c.undone, c.unsaved, now)
		want := c.want
		for _, lag := range []*time.Duration{&want.Read, &want.Handled, &want.Saved} {
			if *lag > 0 {
				*lag *= time.Second
			}
		}
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
