package health_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/shard"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seq string) shard.Position {
	p, err := shard.After(seq)
	if err != nil {
		panic(err)
	}
	return p
}

// each returns observations of one shard, one for every 30 s of the last five minutes. In all of
// them the shard has an owner and no Reason. change modifies them.
func each(change func(i int, o *health.Observation)) []health.Observation {
	var all []health.Observation
	for i := range 11 {
		o := health.Observation{
			At: noon.Add(time.Duration(i-10) * 30 * time.Second), Owner: "w1", Saved: at("1" + string(rune('0'+i%10))),
			ReadLag: 0, HandledLag: health.Unknown, SavedLag: 0, Retention: 24 * time.Hour,
		}
		if i == 10 {
			o.Saved = at("30")
		}
		change(i, &o)
		all = append(all, o)
	}
	return all
}

func TestAShardIsJudgedByItsObservations(t *testing.T) {
	t.Parallel()
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	for name, c := range map[string]struct {
		seen  []health.Observation
		state health.State
		why   string
	}{
		"nothing was seen of it":               {nil, health.NotKnown, "never observed"},
		"nothing waits":                        {each(func(int, *health.Observation) {}), health.OK, ""},
		"a lag that is allowed":                {each(func(_ int, o *health.Observation) { o.SavedLag = 10 * time.Second }), health.OK, ""},
		"its lag is unknown":                   {each(func(_ int, o *health.Observation) { o.SavedLag, o.ReadLag = -1, -1 }), health.NotKnown, "lag"},
		"it is read to its end":                {each(func(_ int, o *health.Observation) { o.Saved, o.Owner, o.SavedLag = shard.End, "", -1 }), health.OK, "end"},
		"a large lag that shrinks":             {each(func(i int, o *health.Observation) { o.SavedLag = minutes(300 - 10*i) }), health.CatchingUp, "its lag fell by"},
		"a small lag that grows":               {each(func(i int, o *health.Observation) { o.SavedLag = time.Minute + time.Duration(i)*time.Second }), health.FallingBehind, "grew by"},
		"a lag that wobbles and does not fall": {each(func(i int, o *health.Observation) { o.SavedLag = minutes(200 + i%2) }), health.Behind, "neither grows nor falls"},
		"it rose, and falls by now":            {each(func(i int, o *health.Observation) { o.SavedLag = minutes(60 - (i-3)*(i-3)) }), health.CatchingUp, "its lag fell by"},
		"records came a moment ago": {each(func(i int, o *health.Observation) {
			if i > 7 {
				o.SavedLag = minutes(1)
			}
		}), health.Behind, "a moment ago"},
		"it was watched for a moment": {each(func(_ int, o *health.Observation) { o.SavedLag = minutes(9) })[9:], health.Behind, "too briefly"},
		"its handler hangs": {each(func(i int, o *health.Observation) {
			o.Saved, o.SavedLag, o.Reason, o.Since = at("7"), minutes(5+i), health.InHandler, noon.Add(-minutes(9))
		}), health.Stalled, "in the handler"},
		"its handler fails": {each(func(i int, o *health.Observation) {
			o.Saved, o.SavedLag, o.Reason, o.Attempts, o.Err = at("7"), minutes(5+i), health.HandlerFailed, i, "no such table"
		}), health.Stalled, "handle again"},
		"what nobody says is in its way": {each(func(i int, o *health.Observation) { o.Saved, o.SavedLag = at("7"), minutes(5+i) }), health.Stalled, "no record is handled"},
		"its owner says so, and nothing else is known": {each(func(_ int, o *health.Observation) {
			o.SavedLag, o.Complains, o.Since, o.Reason = -1, true, noon.Add(-minutes(3)), health.ReadFailed
		})[10:], health.Stalled, "backing off"},
		"its owner says so for a moment": {each(func(_ int, o *health.Observation) {
			o.SavedLag, o.Complains, o.Since, o.Reason = 0, true, noon.Add(-minutes(1)), health.ReadFailed
		})[10:], health.OK, ""},
		"its worker sends no heartbeats": {each(func(_ int, o *health.Observation) { o.Owner, o.Reason = "", health.OwnerSilent }), health.Unread, "no heartbeats"},
		"an open window holds its checkpoint, and it catches up": {each(func(i int, o *health.Observation) {
			o.Handled, o.Saved, o.HandledLag, o.SavedLag, o.Held = o.Saved, at("7"), 0, minutes(9+i), "by an open window"
		}), health.OK, "by an open window"},
		"an open window holds its checkpoint, of which alone something is known": {each(func(i int, o *health.Observation) {
			o.Saved, o.SavedLag, o.Held = at("7"), minutes(9+i), "by an open window"
		}), health.OK, "by an open window"},
		"a window that is open for too long": {each(func(i int, o *health.Observation) {
			o.Saved, o.SavedLag, o.Held = at("7"), 20*time.Hour, "by an open window"
		}), health.RetentionNear, "records expire in 4 h"},
		"no worker lives":                       {each(func(_ int, o *health.Observation) { o.Owner, o.Reason = "", health.NoWorker }), health.Unread, "no worker lives"},
		"no room, and nothing known of its lag": {each(func(_ int, o *health.Observation) { o.Owner, o.Reason, o.SavedLag = "", health.NoRoom, -1 }), health.Unread, "room"},
		"it waits for its parents": {each(func(_ int, o *health.Observation) {
			o.Owner, o.Reason, o.SavedLag = "", health.WaitsForParents, minutes(9)
		}), health.Idle, "parents"},
		"an operator paused it": {each(func(_ int, o *health.Observation) { o.Owner, o.Reason = "", health.Paused }), health.Idle, "paused"},
		"paused until records are lost": {each(func(_ int, o *health.Observation) {
			o.Owner, o.Reason, o.SavedLag = "", health.Paused, 23*time.Hour
		}), health.RetentionNear, "records expire in 1 h"},
		"half of the retention": {each(func(i int, o *health.Observation) { o.SavedLag = 13*time.Hour - minutes(i) }), health.RetentionNear, "records expire in"},
		"beyond the retention":  {each(func(_ int, o *health.Observation) { o.SavedLag = 30 * time.Hour }), health.RetentionNear, "expired"},
		"records have expired":  {each(func(_ int, o *health.Observation) { o.Expired, o.SavedLag = true, minutes(3) }), health.RetentionNear, "expired"},
		"it was set back": {each(func(i int, o *health.Observation) {
			if i >= 5 {
				o.Saved, o.SavedLag = at("1"), minutes(60-i)
			}
		}), health.GoingBack, "reset to an earlier position"},
		"it was set back and has caught up": {each(func(i int, o *health.Observation) {
			if i == 5 {
				o.Saved = at("1")
			}
		}), health.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := health.Evaluate(c.seen, noon, health.Options{})
			if v.State != c.state || !strings.Contains(v.Why(), c.why) || (c.why == "" && v.Why() != "") {
				t.Errorf("%v, %q; want %v, %q", v.State, v.Why(), c.state, c.why)
			}
		})
	}
}

// A shard only falls behind if its lag grows by more than a second in two minutes.
func TestALagThatHardlyGrowsIsNoTrouble(t *testing.T) {
	t.Parallel()
	for growth, want := range map[time.Duration]health.State{
		0: health.Behind, 250 * time.Millisecond: health.Behind, 334 * time.Millisecond: health.FallingBehind,
		-250 * time.Millisecond: health.Behind, -450 * time.Millisecond: health.CatchingUp,
	} {
		seen := each(func(i int, o *health.Observation) { o.SavedLag = time.Hour + time.Duration(i)*growth })
		if v := health.Evaluate(seen, noon, health.Options{}); v.State != want {
			t.Errorf("%v in 30 s: %v, %q, want %v", growth, v.State, v.Why(), want)
		}
	}
}

func TestAStallBeginsWhenNothingWasDoneAnyMore(t *testing.T) {
	t.Parallel()
	seen := each(func(i int, o *health.Observation) {
		o.SavedLag = time.Hour
		if i >= 4 {
			o.Saved = at("20")
		}
	})
	if v := health.Evaluate(seen, noon, health.Options{}); v.State != health.Stalled || !v.Since.Equal(noon.Add(-3*time.Minute)) {
		t.Errorf("%v since %v", v.State, v.Since)
	}
	if v := health.Evaluate(seen, noon, health.Options{StallAfter: 4 * time.Minute}); v.State == health.Stalled {
		t.Errorf("stalled after three minutes of four: %+v", v)
	}
}

func TestALagGrowsWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	seen := each(func(_ int, o *health.Observation) {
		o.Owner, o.Reason, o.SavedLag, o.ReadLag = "", health.NoWorker, time.Hour, -1
	})
	v := health.Evaluate(seen, noon.Add(2*time.Hour), health.Options{})
	if v.SavedLag != 3*time.Hour || v.ReadLag != health.Unknown || v.Left != 21*time.Hour {
		t.Errorf("%+v", v)
	}
	if v := health.Evaluate(seen, noon.Add(11*time.Hour), health.Options{}); v.State != health.RetentionNear {
		t.Errorf("%+v", v)
	}
}

func TestObservationsKeepTheirTimeAtAnyRate(t *testing.T) {
	t.Parallel()
	for _, rate := range []time.Duration{time.Millisecond, time.Second, 30 * time.Second, time.Minute, time.Hour} {
		var w health.Observations
		for i := range 2000 {
			w.Add(health.Observation{At: noon.Add(time.Duration(i) * rate)}, 5*time.Minute)
		}
		all := w.All()
		if len(all) > 12 || !all[len(all)-1].At.Equal(noon.Add(1999*rate)) {
			t.Errorf("each %v: %d are kept, the last of %v", rate, len(all), all[len(all)-1].At)
		}
		if spans := all[len(all)-1].At.Sub(all[0].At); rate >= time.Second && rate <= time.Minute && spans < 4*time.Minute {
			t.Errorf("each %v: they span %v", rate, spans)
		}
		w.Add(health.Observation{At: noon, Owner: "late"}, 5*time.Minute)
		if all := w.All(); all[len(all)-1].Owner == "late" {
			t.Error("an old observation is the last")
		}
	}
}

func TestSinceWhenNobodyReadsDoesNotMove(t *testing.T) {
	t.Parallel()
	var w health.Observations
	for i := range 2000 {
		o := health.Observation{At: noon.Add(time.Duration(i) * time.Second), Owner: "w1", SavedLag: time.Second}
		if i >= 7 {
			o.Owner, o.Reason = "", health.NoWorker
		}
		w.Add(o, 5*time.Minute)
		v := health.Evaluate(w.All(), o.At, health.Options{})
		if want := noon.Add(7 * time.Second); i >= 7 && (v.State != health.Unread || !v.Since.Equal(want)) {
			t.Fatalf("after %d s: %v since %v, want %v", i, v.State, v.Since, want)
		}
	}
	one := []health.Observation{{At: noon, Reason: health.NoWorker, SavedLag: time.Second}}
	if v := health.Evaluate(one, noon.Add(200*time.Second), health.Options{}); v.State != health.Unread || !v.Since.IsZero() {
		t.Errorf("one look says since when: %+v", v)
	}
	if n := len(w.All()); n > 14 {
		t.Errorf("%d are kept", n)
	}
}

func TestAnApplicationIsAsBadAsItsWorstShard(t *testing.T) {
	t.Parallel()
	shardOf := func(name string, s health.State, lag time.Duration) health.Named {
		return health.Named{Stream: "orders", Name: name, Shard: health.Shard{State: s, SavedLag: lag, HandledLag: -1, ReadLag: -1, Reason: health.OtherReason, Detail: "why", Since: noon, Err: "no\x1b[1m such\ntable"}}
	}
	for sentence, all := range map[string][]health.Named{
		"unknown: it has no shards yet":         nil,
		"ok: all shards were read to their end": {{Shard: health.Shard{Finished: true}}},
		"ok: its shard is up to date":           {shardOf("a", health.OK, 0)},
		"ok: all 2 shards are up to date": {
			shardOf("a", health.OK, 0), shardOf("b", health.OK, 0), {Name: "z", Shard: health.Shard{Finished: true}},
		},
		"stalled: b of orders, 2 min behind, why since 12:00:00 UTC; last error: no [1m such table; of the others 1 stalled, 1 catching up": {
			shardOf("a", health.OK, 0), shardOf("c", health.Stalled, time.Minute), shardOf("b", health.Stalled, 2*time.Minute), shardOf("d", health.CatchingUp, time.Hour),
		},
	} {
		got := health.Sum(all)
		if got.Sentence != sentence {
			t.Errorf("%s\nwant %s", got.Sentence, sentence)
		}
		for i := range all { // in any order
			all = append(all[1:], all[0])
			if other := health.Sum(all); other.Sentence != got.Sentence {
				t.Errorf("turned by %d: %s", i+1, other.Sentence)
			}
		}
	}
	if lag := health.Sum([]health.Named{shardOf("a", health.OK, 0), shardOf("d", health.CatchingUp, time.Hour)}).Lag; lag != time.Hour {
		t.Errorf("lag %v", lag)
	}
}

func TestEveryStateHasItsWords(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range health.States() {
		if s.String() == "" || s.Label() == "" || seen[s.Label()] || strings.Contains(s.Label(), " ") {
			t.Errorf("%d: %q, %q", s, s, s.Label())
		}
		seen[s.Label()] = true
	}
}

// Evaluate never panics, and a shard never gets a better state because its records have expired.
func FuzzEvaluate(f *testing.F) {
	f.Add(int64(1), int64(60), int64(86400), uint8(3), uint8(0), false)
	f.Add(int64(-1), int64(-9223372036854775808), int64(9223372036854775807), uint8(255), uint8(9), true)
	f.Fuzz(func(t *testing.T, lag, age, retention int64, n, wait uint8, owned bool) {
		var seen []health.Observation
		for i := range int(n % 16) {
			o := health.Observation{
				At: noon.Add(time.Duration(i) * time.Minute), SavedLag: time.Duration(lag), HandledLag: time.Duration(lag) + time.Duration(i), ReadLag: health.Unknown,
				Reason: health.Reason(wait), Retention: time.Duration(retention),
			}
			if owned {
				o.Owner = "w"
			}
			seen = append(seen, o)
		}
		now := noon.Add(time.Duration(age))
		was := health.Evaluate(seen, now, health.Options{})
		if was.Lag() < health.Unknown || was.Left < health.Unknown || was.Caught < health.Unknown || was.State.Label() == "" {
			t.Fatalf("%+v", was)
		}
		if len(seen) == 0 {
			return
		}
		seen[len(seen)-1].Expired = true
		if is := health.Evaluate(seen, now, health.Options{}); is.State < was.State {
			t.Fatalf("%v, and when its records expired %v", was.State, is.State)
		}
	})
}

// The observations are up to half a minute apart. A lag that begins between two of them does not
// make the state unclear.
func TestALagThatBeganWhileItWasWatchedIsNotWatchedTooBriefly(t *testing.T) {
	t.Parallel()
	for _, past := range []bool{false, true} {
		var w health.Observations
		began := noon.Add(10 * time.Minute)
		for now := noon; now.Before(began.Add(8 * time.Minute)); now = now.Add(2 * time.Second) {
			fromPast := past && now.Before(began.Add(150*time.Second))
			if fromPast && !now.Equal(now.Truncate(time.Minute)) {
				continue // history has one a minute
			}
			lag, place := max(0, now.Sub(began)*3/4), at(fmt.Sprint(1000+now.Sub(noon).Seconds()))
			w.Add(health.Observation{At: now, Owner: "w", Past: fromPast, Saved: place, HandledLag: lag, SavedLag: -1, ReadLag: -1}, 5*time.Minute)
			v := health.Evaluate(w.All(), now, health.Options{})
			if v.Reason == health.WatchedBriefly || v.Reason == health.LagSteady {
				t.Errorf("after %v, with a past: %v: %v", now.Sub(began), past, v.Why())
			}
			if now.Sub(began) > 4*time.Minute && v.State != health.FallingBehind {
				t.Errorf("after %v, with a past: %v: %v, %v", now.Sub(began), past, v.State, v.Why())
			}
		}
	}
}
