package supervise

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
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
		trouble health.Reason // NoReason if there is no trouble
	}{
		"at the tip":                           {Shard{Reading: health.AtTip, Since: ago(time.Hour)}, normal, Sound, health.NoReason},
		"reads fail for a moment":              {Shard{Reading: health.ReadFailed, Trying: ago(5 * time.Second), Err: refused}, normal, Sound, health.NoReason},
		"reads fail":                           {Shard{Reading: health.ReadFailed, Trying: ago(time.Minute), Err: refused}, normal, Sound, health.ReadFailed},
		"reads fail for too long":              {Shard{Reading: health.ReadFailed, Trying: ago(2 * time.Minute), Err: refused}, normal, Stalled, health.ReadFailed},
		"a read hangs":                         {Shard{Reading: health.Requesting, Trying: ago(2 * time.Minute)}, normal, Stalled, health.NoReason},
		"no memory":                            {Shard{Reading: health.AwaitingMemory, Trying: ago(2 * time.Minute)}, normal, Stalled, health.AwaitingMemory},
		"everybody is throttled":               {Shard{ForAll: true, Reading: health.ReadFailed, Trying: ago(time.Hour), Err: refused}, normal, Sound, health.ReadFailed},
		"it was throttled and now hangs":       {Shard{ForAll: true, Reading: health.Requesting, Trying: ago(time.Hour)}, normal, Stalled, health.NoReason},
		"reads failed while it was handled":    {Shard{Reading: health.ReadFailed, Trying: ago(time.Hour), Since: ago(time.Minute), Err: refused}, normal, Sound, health.ReadFailed},
		"reads fail and the handler is busy":   {Shard{Handling: health.InHandler, Since: ago(time.Minute), Reading: health.ReadFailed, Trying: ago(time.Hour)}, normal, Sound, health.NoReason},
		"it stalled before":                    {Shard{Stalls: 1, Reading: health.Requesting, Trying: ago(3 * time.Minute)}, normal, Sound, health.NoReason},
		"it stalled before, and again":         {Shard{Stalls: 1, Reading: health.Requesting, Trying: ago(4 * time.Minute)}, normal, Stalled, health.NoReason},
		"patience has an end":                  {Shard{Stalls: 99, Reading: health.Requesting, Trying: ago(64 * time.Minute)}, normal, Stalled, health.NoReason},
		"a handler works":                      {Shard{Handling: health.InHandler, Since: ago(time.Minute)}, normal, Sound, health.NoReason},
		"a handler takes long":                 {Shard{Handling: health.InHandler, Since: ago(9 * time.Minute)}, normal, Slow, health.InHandler},
		"… which was told":                     {Shard{Handling: health.InHandler, Since: ago(9 * time.Minute), ToldSlow: true}, normal, Sound, health.InHandler},
		"a handler takes too long":             {Shard{Handling: health.InHandler, Since: ago(10 * time.Minute)}, normal, Stalled, health.InHandler},
		"a handler without a bound":            {Shard{Handling: health.InHandler, Since: ago(90 * time.Hour)}, Limits{Stall: time.Minute, Return: time.Second}, Slow, health.InHandler},
		"a handler fails":                      {Shard{Failing: ago(time.Hour), Handling: health.HandlerFailed, Since: ago(time.Second), Err: refused}, normal, Sound, health.HandlerFailed},
		"a handler failed just now":            {Shard{Failing: ago(time.Second), Handling: health.HandlerFailed, Since: ago(time.Second), Err: refused}, normal, Sound, health.NoReason},
		"reads fail beside handlers":           {Shard{Parallel: true, Handling: health.InHandler, Since: ago(time.Minute), Reading: health.ReadFailed, Trying: ago(2 * time.Minute), ReadErr: refused}, normal, Stalled, health.NoReason},
		"reads fail beside a key that waits":   {Shard{Parallel: true, Handling: health.HandlerFailed, Since: ago(time.Minute), Reading: health.ReadFailed, Trying: ago(2 * time.Minute), ReadErr: refused}, normal, Stalled, health.NoReason},
		"… as they would for all":              {Shard{Parallel: true, ForAll: true, Handling: health.HandlerFailed, Since: ago(time.Minute), Reading: health.ReadFailed, Trying: ago(time.Hour), ReadErr: refused}, normal, Sound, health.NoReason},
		"nothing is read beside what waits":    {Shard{Parallel: true, Handling: health.HandlerFailed, Since: ago(time.Hour), Reading: health.AtTip}, normal, Sound, health.NoReason},
		"one of many calls takes too long":     {Shard{Parallel: true, Handling: health.InHandler, Since: ago(10 * time.Minute)}, normal, Stalled, health.InHandler},
		"the end waits for the store":          {Shard{Handling: health.Ended, Since: ago(time.Hour)}, normal, Sound, health.NoReason},
		"it waits after a stall":               {Shard{Handling: health.AfterStall, Since: ago(time.Minute)}, normal, Sound, health.AfterStall},
		"it waits for a handler that was left": {Shard{Handling: health.AfterStall, Since: ago(2 * time.Minute)}, normal, Stalled, health.AfterStall},
		"its context has ended":                {Shard{Ended: ago(29 * time.Second), Handling: health.InHandler, Since: ago(time.Hour)}, normal, Sound, health.InHandler},
		"it ignores that its context ended":    {Shard{Ended: ago(30 * time.Second), Handling: health.InHandler, Since: ago(time.Hour)}, normal, Hangs, health.InHandler},
		"whatever it does then":                {Shard{Ended: ago(30 * time.Second), Reading: health.AtTip}, normal, Hangs, health.NoReason},
		"only once":                            {Shard{Ended: ago(time.Hour), Left: true, Handling: health.InHandler}, normal, Sound, health.Abandoned},
	} {
		got, since := c.v.Judge(now, c.b)
		if got != c.want || (got == Sound) != since.IsZero() {
			t.Errorf("%s: %d since %v, want %d", name, got, since, c.want)
		}
		trouble, some := c.v.Trouble(now, c.b)
		if some != (c.trouble != health.NoReason) || some && trouble.State != c.trouble.Reported() {
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
