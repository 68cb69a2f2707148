package health_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
)

// watched adds an observation each step for an hour, and returns the evaluation after each of them.
func watched(step time.Duration, change func(after time.Duration, o *health.Observation)) (all []health.Shard) {
	var w health.Observations
	for after := time.Duration(0); after <= time.Hour; after += step {
		o := health.Observation{
			At: noon.Add(after), Owner: "w1", Saved: at("1" + strings.Repeat("0", int(after/time.Second)/60)),
			ReadLag: health.Unknown, HandledLag: health.Unknown,
		}
		change(after, &o)
		w.Add(o, 5*time.Minute)
		all = append(all, health.Evaluate(w.All(), o.At, health.Options{}))
	}
	return all
}

// The time when a state began must not move while the state lasts, however long that is.
func TestTheTimeWhenAStateBeganDoesNotMove(t *testing.T) {
	t.Parallel()
	from := 10 * time.Minute
	for name, c := range map[string]struct {
		state  health.State
		change func(after time.Duration, o *health.Observation)
		text   string
	}{
		"no worker lives": {health.Unread, func(after time.Duration, o *health.Observation) {
			if after >= from {
				o.Owner, o.Reason = "", health.NoWorker
			}
		}, "no worker lives since 12:10:00 UTC"},
		"paused": {health.Idle, func(after time.Duration, o *health.Observation) {
			if after >= from {
				o.Owner, o.Reason = "", health.Paused
			}
		}, "paused since 12:10:00 UTC"},
		"nothing is done": {health.Stalled, func(after time.Duration, o *health.Observation) {
			if after >= from {
				o.Saved, o.SavedLag, o.Reason = at("7"+strings.Repeat("0", 9)), after-from+time.Second, health.InHandler
			}
		}, "in the handler since 12:10:00 UTC"},
		"its lag grows": {health.FallingBehind, func(after time.Duration, o *health.Observation) {
			if after >= from {
				o.SavedLag = after - from + 11*time.Second
			}
		}, "behind since 12:10:00 UTC"},
	} {
		for _, step := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second} {
			all := watched(step, c.change)
			for i, v := range all {
				after := time.Duration(i) * step
				if after < from+5*time.Minute {
					continue
				}
				want := strings.ReplaceAll(c.text, "since 12:10:00 UTC", "for at least "+strconv.Itoa(int((after-from)/time.Minute))+" min")
				if step <= 5*time.Second {
					want = c.text
				}
				if v.State != c.state || v.Since.Sub(noon.Add(from)).Abs() > time.Second || v.AtLeast != (step > 5*time.Second) || !strings.HasSuffix(v.Text(), want) {
					t.Fatalf("%s, each %v, after %v: %v %q since %v, want %q", name, step, after, v.State, v.Text(), v.Since, want)
				}
			}
		}
	}
}

// If observations are up to 10 s apart, the time of a change between them is known to within 5 s.
func TestAChangeBetweenTwoLooksIsInTheMiddle(t *testing.T) {
	t.Parallel()
	all := watched(8*time.Second, func(after time.Duration, o *health.Observation) {
		if after >= 10*time.Minute {
			o.Owner, o.Reason = "", health.NoWorker
		}
	})
	if v := all[len(all)-1]; !v.Since.Equal(noon.Add(10*time.Minute-4*time.Second)) || v.AtLeast {
		t.Errorf("%q", v.Text())
	}
}

func TestWhatWasThereAtTheFirstLookBeganAtAnUnknownTime(t *testing.T) {
	t.Parallel()
	for _, v := range watched(time.Second, func(_ time.Duration, o *health.Observation) { o.Owner, o.Reason = "", health.NoWorker }) {
		if !v.Since.IsZero() || v.Text() != "no worker lives, since unknown" {
			t.Fatalf("%q since %v", v.Text(), v.Since)
		}
	}
}

func TestAShardThatWasUpToDateAtTheFirstLookFellBehindLater(t *testing.T) {
	t.Parallel()
	all := watched(time.Second, func(after time.Duration, o *health.Observation) { o.SavedLag = 2*time.Second + after })
	if v := all[len(all)-1]; v.State != health.FallingBehind || !v.Since.Equal(noon.Add(9*time.Second)) {
		t.Errorf("%v, %q", v.State, v.Text())
	}
	idle := watched(time.Second, func(_ time.Duration, o *health.Observation) { o.Owner, o.Reason = "", health.WaitsForParents })
	if v := idle[9]; v.Text() != "waits for its parents" {
		t.Errorf("%q", v.Text())
	}
}

// Lags from history may be wrong by 5 %, so only a larger difference counts as a change.
func TestTheTrendIsKnownFromThePast(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lag   func(minutesAgo int) time.Duration
		state health.State
		why   string
	}{
		"it grows":            {func(ago int) time.Duration { return time.Duration(40-ago) * time.Minute }, health.FallingBehind, "grew by"},
		"it falls":            {func(ago int) time.Duration { return time.Duration(40+ago) * time.Minute }, health.CatchingUp, "its lag fell by"},
		"it stays":            {func(int) time.Duration { return 40 * time.Minute }, health.Behind, "neither grows nor falls"},
		"it is within a blur": {func(ago int) time.Duration { return 40*time.Minute + time.Duration(ago%2)*3*time.Minute }, health.Behind, "neither grows nor falls"},
		"it began just now": {func(ago int) time.Duration {
			if ago == 0 {
				return time.Minute
			}
			return 0
		}, health.Behind, "a moment ago"},
	} {
		var w health.Observations
		for ago := 30; ago > 0; ago-- {
			w.Add(health.Observation{At: noon.Add(-time.Duration(ago) * time.Minute), Owner: "w1", Past: true, HandledLag: c.lag(ago), SavedLag: -1, ReadLag: -1}, 5*time.Minute)
		}
		w.Add(health.Observation{At: noon, Owner: "w1", Saved: at("5"), SavedLag: c.lag(0), HandledLag: -1, ReadLag: -1}, 5*time.Minute)
		if v := health.Evaluate(w.All(), noon, health.Options{}); v.State != c.state || !strings.Contains(v.Why(), c.why) {
			t.Errorf("%s: %v, %q", name, v.State, v.Why())
		}
	}
}

func TestThePastIsDroppedOnceMoreIsKnown(t *testing.T) {
	t.Parallel()
	var w health.Observations
	for ago := 180; ago > 0; ago-- {
		w.Add(health.Observation{At: noon.Add(-time.Duration(ago) * time.Minute), Owner: "w1", Past: true}, 5*time.Minute)
	}
	if n := len(w.All()); n != 31 {
		t.Errorf("%d of the past are kept", n)
	}
	for i := range 151 {
		w.Add(health.Observation{At: noon.Add(time.Duration(i) * time.Second), Owner: "w1"}, 5*time.Minute)
	}
	for _, o := range w.All() {
		if o.Past {
			t.Errorf("the past of %v is still there", o.At)
		}
	}
}

// A record that waits shows since when a shard has been behind, also to an observer who has just
// begun to watch it, and who cannot say whether the lag grows.
func TestALagShowsSinceWhenAShardIsBehind(t *testing.T) {
	t.Parallel()
	first := health.Observation{
		At: noon, Saved: at("7"), SavedLag: 5*time.Minute + 10*time.Second, HandledLag: health.Unknown,
		ReadLag: health.Unknown, Owner: "a",
	}
	want := noon.Add(-5 * time.Minute)
	v := health.Evaluate([]health.Observation{first}, noon, health.Options{})
	if v.State != health.Behind || v.Reason != health.WatchedBriefly || !v.Since.Equal(want) || !v.AtLeast {
		t.Errorf("%v, %v since %v, at least: %v", v.State, v.Reason, v.Since, v.AtLeast)
	}
	var w health.Observations
	earlier := first
	earlier.At, earlier.SavedLag = noon.Add(-time.Hour), 0
	w.Add(earlier, 5*time.Minute)
	w.Add(first, 5*time.Minute)
	v = health.Evaluate(w.All(), noon, health.Options{})
	if !v.Since.Equal(want) || !v.AtLeast {
		t.Errorf("after an hour without a look, since %v, at least: %v", v.Since, v.AtLeast)
	}
}
