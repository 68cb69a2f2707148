package supervise

import (
	"errors"
	"testing"
	"time"
)

// These states affect no decisions.
const (
	backingOff State = "backing off"
	reading    State = "reading"
	retrying   State = "waiting to handle again"
	ending     State = "read to its end"
)

func TestWhenALeaseIsGivenUp(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	normal := Limits{Stall: 2 * time.Minute, Handler: 10 * time.Minute, Return: 30 * time.Second}
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		v       Shard
		b       Limits
		want    Verdict
		trouble State // "" if there is no trouble
	}{
		"at the tip":                           {Shard{Reading: AtTip, Since: ago(time.Hour)}, normal, Sound, ""},
		"reads fail for a moment":              {Shard{Reading: backingOff, Trying: ago(5 * time.Second), Err: refused}, normal, Sound, ""},
		"reads fail":                           {Shard{Reading: backingOff, Trying: ago(time.Minute), Err: refused}, normal, Sound, backingOff},
		"reads fail for too long":              {Shard{Reading: backingOff, Trying: ago(2 * time.Minute), Err: refused}, normal, Stalled, backingOff},
		"a read hangs":                         {Shard{Reading: reading, Trying: ago(2 * time.Minute)}, normal, Stalled, ""},
		"no memory":                            {Shard{Reading: AwaitingMemory, Trying: ago(2 * time.Minute)}, normal, Stalled, AwaitingMemory},
		"everybody is throttled":               {Shard{ForAll: true, Reading: backingOff, Trying: ago(time.Hour), Err: refused}, normal, Sound, backingOff},
		"it was throttled and now hangs":       {Shard{ForAll: true, Reading: reading, Trying: ago(time.Hour)}, normal, Stalled, ""},
		"reads failed while it was handled":    {Shard{Reading: backingOff, Trying: ago(time.Hour), Since: ago(time.Minute), Err: refused}, normal, Sound, backingOff},
		"reads fail and the handler is busy":   {Shard{Handling: Handling, Since: ago(time.Minute), Reading: backingOff, Trying: ago(time.Hour)}, normal, Sound, ""},
		"it stalled before":                    {Shard{Stalls: 1, Reading: reading, Trying: ago(3 * time.Minute)}, normal, Sound, ""},
		"it stalled before, and again":         {Shard{Stalls: 1, Reading: reading, Trying: ago(4 * time.Minute)}, normal, Stalled, ""},
		"patience has an end":                  {Shard{Stalls: 99, Reading: reading, Trying: ago(64 * time.Minute)}, normal, Stalled, ""},
		"a handler works":                      {Shard{Handling: Handling, Since: ago(time.Minute)}, normal, Sound, ""},
		"a handler takes long":                 {Shard{Handling: Handling, Since: ago(9 * time.Minute)}, normal, Slow, Handling},
		"… which was told":                     {Shard{Handling: Handling, Since: ago(9 * time.Minute), ToldSlow: true}, normal, Sound, Handling},
		"a handler takes too long":             {Shard{Handling: Handling, Since: ago(10 * time.Minute)}, normal, Stalled, Handling},
		"a handler without a bound":            {Shard{Handling: Handling, Since: ago(90 * time.Hour)}, Limits{Stall: time.Minute, Return: time.Second}, Slow, Handling},
		"a handler fails":                      {Shard{Failing: ago(time.Hour), Handling: retrying, Since: ago(time.Second), Err: refused}, normal, Sound, retrying},
		"a handler failed just now":            {Shard{Failing: ago(time.Second), Handling: retrying, Since: ago(time.Second), Err: refused}, normal, Sound, ""},
		"reads fail beside handlers":           {Shard{Parallel: true, Handling: Handling, Since: ago(time.Minute), Reading: backingOff, Trying: ago(2 * time.Minute), ReadErr: refused}, normal, Stalled, ""},
		"reads fail beside a key that waits":   {Shard{Parallel: true, Handling: retrying, Since: ago(time.Minute), Reading: backingOff, Trying: ago(2 * time.Minute), ReadErr: refused}, normal, Stalled, ""},
		"… as they would for all":              {Shard{Parallel: true, ForAll: true, Handling: retrying, Since: ago(time.Minute), Reading: backingOff, Trying: ago(time.Hour), ReadErr: refused}, normal, Sound, ""},
		"nothing is read beside what waits":    {Shard{Parallel: true, Handling: retrying, Since: ago(time.Hour), Reading: AtTip}, normal, Sound, ""},
		"one of many calls takes too long":     {Shard{Parallel: true, Handling: Handling, Since: ago(10 * time.Minute)}, normal, Stalled, Handling},
		"the end waits for the store":          {Shard{Handling: ending, Since: ago(time.Hour)}, normal, Sound, ""},
		"it waits after a stall":               {Shard{Handling: Blocked, Since: ago(time.Minute)}, normal, Sound, Blocked},
		"it waits for a handler that was left": {Shard{Handling: Blocked, Since: ago(2 * time.Minute)}, normal, Stalled, Blocked},
		"its context has ended":                {Shard{Ended: ago(29 * time.Second), Handling: Handling, Since: ago(time.Hour)}, normal, Sound, Handling},
		"it ignores that its context ended":    {Shard{Ended: ago(30 * time.Second), Handling: Handling, Since: ago(time.Hour)}, normal, Hangs, Handling},
		"whatever it does then":                {Shard{Ended: ago(30 * time.Second), Reading: AtTip}, normal, Hangs, ""},
		"only once":                            {Shard{Ended: ago(time.Hour), Left: true, Handling: Handling}, normal, Sound, Abandoned},
	} {
		got, since := c.v.Judge(now, c.b)
		if got != c.want || (got == Sound) != since.IsZero() {
			t.Errorf("%s: %d since %v, want %d", name, got, since, c.want)
		}
		trouble, some := c.v.Trouble(now, c.b)
		if some != (c.trouble != "") || some && trouble.State != string(c.trouble) {
			t.Errorf("%s: trouble %+v, want %q", name, trouble, c.trouble)
		}
		if some && (c.v.Err != nil) != (trouble.Why != "") {
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
		if got := (Stalls{c.stalls, now.Add(-c.ago)}).Counting(now, 2*time.Minute); got != c.want {
			t.Errorf("%d stalls, the last %v ago, count as %d, want %d", c.stalls, c.ago, got, c.want)
		}
	}
	if n := (Stalls{}).Counting(now, time.Minute); n != 0 {
		t.Errorf("nothing counts as %d", n)
	}
}

func TestTheRateFollowsWhatIsHandled(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var r Rate
	for range 600 {
		now = now.Add(time.Second)
		r.Add(1000, now)
	}
	if v := r.Now(now); v < 950 || v > 1050 {
		t.Errorf("1,000 bytes each second are %.0f a second", v)
	}
	if v := r.Now(now.Add(time.Minute)); v < 300 || v > 400 {
		t.Errorf("after a minute without any: %.0f", v)
	}
	if v := r.Now(now.Add(-time.Hour)); v > 1050 {
		t.Errorf("a clock that goes back makes it %.0f", v)
	}
	if v := (Rate{5, 0}).Now(now); v != 5 {
		t.Errorf("%v", v)
	}
}
