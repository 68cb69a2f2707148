package weir

import (
	"errors"
	"testing"
	"time"
)

func TestWhenALeaseIsGivenUp(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	normal := bounds{stall: 2 * time.Minute, handler: 10 * time.Minute, leave: 30 * time.Second}
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		v       vitals
		b       bounds
		want    verdict
		trouble ShardState // "" for none
	}{
		"at the tip":                           {vitals{reading: ShardAtTip, since: ago(time.Hour)}, normal, sound, ""},
		"reads fail for a moment":              {vitals{reading: ShardBackingOff, trying: ago(5 * time.Second), err: refused}, normal, sound, ""},
		"reads fail":                           {vitals{reading: ShardBackingOff, trying: ago(time.Minute), err: refused}, normal, sound, ShardBackingOff},
		"reads fail for too long":              {vitals{reading: ShardBackingOff, trying: ago(2 * time.Minute), err: refused}, normal, stalls, ShardBackingOff},
		"a read hangs":                         {vitals{reading: ShardReading, trying: ago(2 * time.Minute)}, normal, stalls, ""},
		"no memory":                            {vitals{reading: ShardAwaitingMemory, trying: ago(2 * time.Minute)}, normal, stalls, ShardAwaitingMemory},
		"everybody is throttled":               {vitals{watched: watched{same: true}, reading: ShardBackingOff, trying: ago(time.Hour), err: refused}, normal, sound, ShardBackingOff},
		"it was throttled and now hangs":       {vitals{watched: watched{same: true}, reading: ShardReading, trying: ago(time.Hour)}, normal, stalls, ""},
		"reads failed while it was handled":    {vitals{reading: ShardBackingOff, trying: ago(time.Hour), since: ago(time.Minute), err: refused}, normal, sound, ShardBackingOff},
		"reads fail and the handler is busy":   {vitals{state: ShardHandling, since: ago(time.Minute), reading: ShardBackingOff, trying: ago(time.Hour)}, normal, sound, ""},
		"it stalled before":                    {vitals{watched: watched{tries: 1}, reading: ShardReading, trying: ago(3 * time.Minute)}, normal, sound, ""},
		"it stalled before, and again":         {vitals{watched: watched{tries: 1}, reading: ShardReading, trying: ago(4 * time.Minute)}, normal, stalls, ""},
		"patience has an end":                  {vitals{watched: watched{tries: 99}, reading: ShardReading, trying: ago(64 * time.Minute)}, normal, stalls, ""},
		"a handler works":                      {vitals{state: ShardHandling, since: ago(time.Minute)}, normal, sound, ""},
		"a handler takes long":                 {vitals{state: ShardHandling, since: ago(9 * time.Minute)}, normal, sound, ShardHandling},
		"a handler takes too long":             {vitals{state: ShardHandling, since: ago(10 * time.Minute)}, normal, stalls, ShardHandling},
		"a handler without a bound":            {vitals{state: ShardHandling, since: ago(90 * time.Hour)}, bounds{stall: time.Minute, leave: time.Second}, sound, ShardHandling},
		"a handler fails":                      {vitals{watched: watched{failing: ago(time.Hour)}, state: ShardRetrying, since: ago(time.Second), err: refused}, normal, sound, ShardRetrying},
		"a handler failed just now":            {vitals{watched: watched{failing: ago(time.Second)}, state: ShardRetrying, since: ago(time.Second), err: refused}, normal, sound, ""},
		"the end waits for the store":          {vitals{state: ShardEnding, since: ago(time.Hour)}, normal, sound, ""},
		"it waits after a stall":               {vitals{state: ShardBlocked, since: ago(time.Minute)}, normal, sound, ShardBlocked},
		"it waits for a handler that was left": {vitals{state: ShardBlocked, since: ago(2 * time.Minute)}, normal, stalls, ShardBlocked},
		"its context has ended":                {vitals{watched: watched{ended: ago(29 * time.Second)}, state: ShardHandling, since: ago(time.Hour)}, normal, sound, ShardHandling},
		"it ignores that its context ended":    {vitals{watched: watched{ended: ago(30 * time.Second)}, state: ShardHandling, since: ago(time.Hour)}, normal, hangs, ShardHandling},
		"whatever it does then":                {vitals{watched: watched{ended: ago(30 * time.Second)}, reading: ShardAtTip}, normal, hangs, ""},
		"only once":                            {vitals{watched: watched{ended: ago(time.Hour), left: make(chan struct{})}, state: ShardHandling}, normal, sound, ShardAbandoned},
	} {
		got, since := c.v.judge(now, c.b)
		if got != c.want || (got == sound) != since.IsZero() {
			t.Errorf("%s: %d since %v, want %d", name, got, since, c.want)
		}
		trouble, some := c.v.trouble(now, c.b)
		if some != (c.trouble != "") || some && trouble.State != string(c.trouble) {
			t.Errorf("%s: trouble %+v, want %q", name, trouble, c.trouble)
		}
		if some && (c.v.err != nil) != (trouble.Why != "") {
			t.Errorf("%s: trouble says %q", name, trouble.Why)
		}
	}
}

func TestStallsAreForgotten(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, c := range []struct {
		stalls int
		ago    time.Duration
		want   int
	}{{0, 0, 0}, {1, time.Minute, 1}, {1, 8 * time.Minute, 1}, {1, 9 * time.Minute, 0}, {3, 32 * time.Minute, 3}, {99, 128 * time.Minute, 99}, {99, 129 * time.Minute, 0}} {
		if got := (memory{c.stalls, now.Add(-c.ago)}).tries(now, 2*time.Minute); got != c.want {
			t.Errorf("%d stalls, the last %v ago, count as %d, want %d", c.stalls, c.ago, got, c.want)
		}
	}
	if n := (memory{}).tries(now, time.Minute); n != 0 {
		t.Errorf("nothing counts as %d", n)
	}
}

func TestTheRateFollowsWhatIsHandled(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var r rate
	for range 600 {
		now = now.Add(time.Second)
		r.add(1000, now)
	}
	if v := r.now(now); v < 950 || v > 1050 {
		t.Errorf("1,000 bytes each second are %.0f a second", v)
	}
	if v := r.now(now.Add(time.Minute)); v < 300 || v > 400 {
		t.Errorf("after a minute without any: %.0f", v)
	}
	if v := r.now(now.Add(-time.Hour)); v > 1050 {
		t.Errorf("a clock that goes back makes it %.0f", v)
	}
	if v := (rate{5, 0}).now(now); v != 5 {
		t.Errorf("%v", v)
	}
}
