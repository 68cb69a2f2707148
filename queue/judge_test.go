package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/failure"
)

func TestWhichRecordsAreSetAside(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	three := history{attempts: 3, first: ago(time.Minute), latest: ago(time.Second), before: ago(10 * time.Second)}
	for _, c := range []struct {
		name     string
		policy   FailurePolicy
		history  history
		rejected bool
		age      time.Duration
		worked   time.Time
		aside    bool
		why      deadletter.Reason
	}{
		{"no limit", FailurePolicy{}, three, false, time.Hour, ago(time.Second), false, ""},
		{"a rejected record", FailurePolicy{}, three, true, 0, time.Time{}, true, deadletter.Rejected},
		{"all attempts failed, others succeed", FailurePolicy{MaxAttempts: 3}, three, false, 0, ago(time.Second), true, deadletter.Attempts},
		{"all attempts failed, and nothing else succeeds", FailurePolicy{MaxAttempts: 3, OutageGrace: 2 * time.Minute}, three, false, 0, time.Time{}, false, deadletter.Attempts},
		{"another record succeeded before the last two failures", FailurePolicy{MaxAttempts: 3, OutageGrace: 2 * time.Minute}, three, false, 0, ago(20 * time.Second), false, deadletter.Attempts},
		{"the grace is over", FailurePolicy{MaxAttempts: 3, OutageGrace: time.Minute}, three, false, 0, time.Time{}, true, deadletter.Attempts},
		{"attempts are left", FailurePolicy{MaxAttempts: 4}, three, false, 0, ago(time.Second), false, ""},
		{"too old", FailurePolicy{MaxAge: time.Hour}, three, false, time.Hour, ago(time.Second), true, deadletter.Age},
		{"not too old", FailurePolicy{MaxAge: time.Hour}, three, false, time.Minute, ago(time.Second), false, ""},
	} {
		b := &failure.Brake{Policy: c.policy.policy()}
		if aside, why := judge(b, &c.history, c.rejected, c.age, c.worked, now); aside != c.aside || why != c.why {
			t.Errorf("%s: %v %q", c.name, aside, why)
		}
	}
	b := &failure.Brake{Policy: (&FailurePolicy{Destination: deadletter.Func(nil), MaxPerMinute: 1}).policy()}
	if aside, _ := judge(b, &three, true, 0, now, now); !aside {
		t.Error("the first one in a minute is not set aside")
	}
	b.Took(1, now)
	if aside, _ := judge(b, &three, true, 0, now, now); aside {
		t.Error("the second one in a minute is set aside")
	}
}

func TestReleases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target string
		count  int
		want   time.Duration
	}{{builtIn, 3, 0}, {"NONE", 0, 2 * time.Second}, {"NONE", 1, 2 * time.Second}, {"", 3, 8 * time.Second}, {"NONE", 1000, 15 * time.Minute}} {
		if d := releaseDelay(c.target, c.count); d != c.want {
			t.Errorf("%q, %d: %v", c.target, c.count, d)
		}
	}
	for _, c := range []struct {
		count, most int
		want        bool
	}{{1, 6, true}, {3, 6, true}, {4, 6, false}, {3, 0, true}, {4, 0, false}, {1, 1, false}, {50, 100, true}} {
		if releaseAtStop(c.count, c.most) != c.want {
			t.Errorf("%d of %d", c.count, c.most)
		}
	}
}

func TestErrorsNameRecords(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	a, b := Record{ID: "a"}, Record{ID: "b", Sub: 2}
	for _, c := range []struct {
		name  string
		err   error
		keys  []string
		whole bool
	}{
		{"no error", nil, nil, false},
		{"an error without a name", boom, nil, true},
		{"a wrapped error without a name", fmt.Errorf("x: %w", boom), nil, true},
		{"one record", Failed(a, boom), []string{"a"}, false},
		{"two records", errors.Join(Failed(a, boom), Failed(b, nil)), []string{"a", "b+2"}, false},
		{"a wrapped name", fmt.Errorf("x: %w", Failed(b, boom)), []string{"b+2"}, false},
		{"a record and an error", errors.Join(Failed(a, boom), boom), []string{"a"}, true},
	} {
		named, whole := failures(c.err)
		ok := whole == c.whole && len(named) == len(c.keys)
		for _, k := range c.keys {
			ok = ok && named[k] != nil
		}
		if !ok {
			t.Errorf("%s: %v %v", c.name, named, whole)
		}
	}
	named, _ := failures(Failed(a, weir.Reject(boom)))
	if !weir.IsRejected(named["a"]) || weir.IsRejected(boom) {
		t.Error("the rejection is lost")
	}
}

func TestHowLongAcknowledgementsWait(t *testing.T) {
	for _, c := range []struct {
		name                  string
		option, handling, all time.Duration
		concurrency           int
		want                  time.Duration
	}{
		{"as the option says", time.Millisecond, time.Hour, time.Minute, 1, time.Millisecond},
		{"no handler has finished", 0, 0, time.Minute, 10, 100 * time.Millisecond},
		{"fast handlers", 0, time.Millisecond, time.Minute, 1, 100 * time.Millisecond},
		{"ten records of one handler", 0, time.Second, time.Minute, 1, 10 * time.Second},
		{"ten records of ten handlers", 0, time.Second, time.Minute, 10, time.Second},
		{"half of the hold", 0, time.Hour, time.Minute, 10, 30 * time.Second},
	} {
		if got := ackDelay(c.option, c.handling, c.all, c.concurrency); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
