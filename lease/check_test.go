package lease_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"encoding/json"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

var checkKey = lease.Key{Stream: "orders", Shard: "1"}

func TestReportsThatMakeNoSenseAreRefused(t *testing.T) {
	long := strings.Repeat("x", 256)
	progress := func(p lease.Progress) lease.Report {
		if p.Key == (lease.Key{}) {
			p.Key = checkKey
		}
		return lease.Report{Session: "a", Progress: []lease.Progress{p}}
	}
	child := func(s shard.Shard) lease.Report {
		return progress(lease.Progress{Position: shard.End, Children: []shard.Shard{s}})
	}
	for _, c := range []struct {
		name  string
		r     lease.Report
		names string // a part of the error; "" for none
	}{
		{"no session", lease.Report{}, "Report.Session"},
		{"nobody", lease.Report{Session: lease.Nobody}, "Report.Session"},
		{"a session with a slash", lease.Report{Session: "a/b"}, "a/b"},
		{"a session with an umlaut", lease.Report{Session: "ä"}, "ä"},
		{"a session that is too long", lease.Report{Session: long[:101]}, "Report.Session"},
		{"the longest session", lease.Report{Session: long[:100]}, ""},
		{"all of the alphabet", lease.Report{Session: "azAZ09.:_-"}, ""},
		{"a key without a stream", lease.Report{Session: "a", Progress: []lease.Progress{{Key: lease.Key{Shard: "1"}}}}, "stream"},
		{"a key without a shard", lease.Report{Session: "a", Progress: []lease.Progress{{Key: lease.Key{Stream: "s"}}}}, "shard"},
		{"a stream that is too long", progress(lease.Progress{Key: lease.Key{Stream: long, Shard: "1"}}), "stream"},
		{"the longest stream", progress(lease.Progress{Key: lease.Key{Stream: long[:255], Shard: "1"}}), ""},
		{"a shard that is not UTF-8", progress(lease.Progress{Key: lease.Key{Stream: "s", Shard: "\xff"}}), "shard"},
		{"a shard with a zero byte", progress(lease.Progress{Key: lease.Key{Stream: "s", Shard: "a\x00"}}), "shard"},
		{"the highest epoch", progress(lease.Progress{Epoch: math.MaxInt64}), ""},
		{"an epoch that is too high", progress(lease.Progress{Epoch: math.MaxInt64 + 1}), "orders/1"},
		{"the highest load", progress(lease.Progress{Load: lease.MaxLoad}), ""},
		{"a load that is too high", progress(lease.Progress{Load: lease.MaxLoad + 1}), "orders/1"},
		{"a child", child(shard.Shard{ID: "2", Parents: []string{"1", "3"}}), ""},
		{"a child without a name", child(shard.Shard{}), "shard"},
		{"a child with three parents", child(shard.Shard{ID: "2", Parents: []string{"1", "3", "4"}}), "orders/2"},
		{"a child with an unnamed parent", child(shard.Shard{ID: "2", Parents: []string{""}}), "orders/2"},
		{"a child with a range from the end", child(shard.Shard{ID: "2", Range: shard.HashRange{Start: shard.MaxHashKey}}), "orders/2"},
		{"too many children", progress(lease.Progress{Children: make([]shard.Shard, 101)}), "101"},
	} {
		_, err := c.r.Check()
		if (err != nil) != (c.names != "") || err != nil && !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v, want an error that names %q", c.name, err, c.names)
		}
	}
}

func TestReportsAreMadeToFit(t *testing.T) {
	for weight, want := range map[float64]float64{0: 1, -2: 1, math.Inf(1): 1, math.Inf(-1): 1, 0.5: 0.5, math.MaxFloat64: math.MaxFloat64} {
		if r, err := (lease.Report{Session: "a", Weight: weight}).Check(); err != nil || r.Weight != want {
			t.Errorf("weight %v became %v, %v", weight, r.Weight, err)
		}
	}
	troubles := []lease.Trouble{{Key: checkKey, State: strings.Repeat("s", 300), Why: strings.Repeat("日", 100) + "\x00\xff", For: -time.Second}}
	r, err := lease.Report{Session: "a", Name: strings.Repeat("n", 199) + "ä", Weight: math.NaN(), MaxLeases: -3, Troubles: troubles}.Check()
	if err != nil || r.Weight != 1 || r.MaxLeases != 0 || r.Name != strings.Repeat("n", 199) {
		t.Errorf("got %+v, %v", r, err)
	}
	got := r.Troubles[0]
	if got.State != strings.Repeat("s", 40) || got.Why != strings.Repeat("日", 66) || got.For != 0 {
		t.Errorf("got %+v", got)
	}
	if troubles[0].For != -time.Second {
		t.Error("the caller's slice was changed")
	}
	if r, err := (lease.Report{Session: "a", Name: "a\x00b\xff"}).Check(); err != nil || r.Name != "a\uFFFDb\uFFFD" {
		t.Errorf("name %q, %v", r.Name, err)
	}
}

func FuzzReportsFit(f *testing.F) {
	f.Add("name", "state", "why", "shard", 3, 1.0)
	f.Add("\xff\x00", "<>&", strings.Repeat("\x01", 300), "\"", 50, math.Inf(1))
	f.Fuzz(func(t *testing.T, name, state, why, id string, n int, weight float64) {
		r := lease.Report{Session: "a", Name: name, Weight: weight}
		for range n % 64 {
			r.Troubles = append(r.Troubles, lease.Trouble{Key: lease.Key{Stream: "s", Shard: id}, State: state, Why: why, For: time.Duration(n),
				Failing: lease.Failing{At: why, KeyHash: name, Held: state, Attempts: n, Records: -n, GivenUp: n}})
		}
		got, err := r.Check()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(got.Troubles)
		if err != nil || len(text) > 3<<10 || len(got.Troubles) > lease.MaxTroubles || len(got.Troubles) > len(r.Troubles) {
			t.Errorf("%d troubles of %d bytes, %v", len(got.Troubles), len(text), err)
		}
		for _, s := range append([]string{got.Name}, func() (all []string) {
			for _, tr := range got.Troubles {
				all = append(all, tr.Shard, tr.State, tr.Why, tr.Failing.At, tr.Failing.KeyHash, tr.Failing.Held)
			}
			return all
		}()...) {
			if !utf8.ValidString(s) || strings.Contains(s, "\x00") || len(s) > 255 {
				t.Errorf("%q does not fit", s)
			}
		}
		if !(got.Weight > 0) || math.IsInf(got.Weight, 0) {
			t.Errorf("weight %v", got.Weight)
		}
		again, err := got.Check()
		if err != nil || len(again.Troubles) != len(got.Troubles) || again.Name != got.Name {
			t.Errorf("checked twice it is another: %+v", again)
		}
	})
}

func TestActionsThatMakeNoSenseAreRefused(t *testing.T) {
	long := strings.Repeat("x", 256)
	create := func(change func(*lease.Lease)) lease.Action {
		l := lease.Lease{Key: checkKey, Epoch: 1, Position: shard.Oldest}
		change(&l)
		return lease.Action{Kind: lease.Create, Lease: l}
	}
	replace := func(change func(*lease.Action)) lease.Action {
		a := lease.Action{Kind: lease.Replace, Key: checkKey, Epoch: 4, Lease: lease.Lease{Key: checkKey, Epoch: 5, Position: shard.Oldest}}
		change(&a)
		return a
	}
	for _, c := range []struct {
		name  string
		a     lease.Action
		names string
	}{
		{"no kind", lease.Action{}, "unknown kind"},
		{"another kind", lease.Action{Kind: lease.Birth + 1}, "unknown kind"},
		{"a plain lease", create(func(*lease.Lease) {}), ""},
		{"a full lease", create(func(l *lease.Lease) {
			*l = lease.Lease{Key: checkKey, Parents: []string{"a", "b"}, Epoch: math.MaxInt64, Owner: "a", Heir: lease.Nobody, Revoked: "b", Last: "c",
				Shunned: "d", Load: lease.MaxLoad, Born: math.MaxInt64}
		}), ""},
		{"a lease without a shard", create(func(l *lease.Lease) { l.Shard = "" }), "shard"},
		{"a lease with a huge epoch", create(func(l *lease.Lease) { l.Epoch = 1 << 63 }), "orders/1"},
		{"a lease with a huge load", create(func(l *lease.Lease) { l.Load = lease.MaxLoad + 1 }), "orders/1"},
		{"a lease born before time", create(func(l *lease.Lease) { l.Born = -1 }), "orders/1"},
		{"a lease owned by nobody", create(func(l *lease.Lease) { l.Owner = lease.Nobody }), "orders/1"},
		{"a lease revoked from an invalid session", create(func(l *lease.Lease) { l.Revoked = "a b" }), "orders/1"},
		{"a lease last owned by an invalid session", create(func(l *lease.Lease) { l.Last = "a b" }), "orders/1"},
		{"a lease that shuns an invalid session", create(func(l *lease.Lease) { l.Shunned = "a b" }), "orders/1"},
		{"an invalid heir", create(func(l *lease.Lease) { l.Heir = "a b" }), "orders/1"},
		{"a lease with three parents", create(func(l *lease.Lease) { l.Parents = []string{"1", "2", "3"} }), "orders/1"},
		{"a lease with a parent without a name", create(func(l *lease.Lease) { l.Parents = []string{""} }), "orders/1"},
		{"a range from the end", create(func(l *lease.Lease) { l.Range.Start = shard.MaxHashKey }), "orders/1"},
		{"an assignment", lease.Action{Kind: lease.Assign, Key: checkKey, Session: "a"}, ""},
		{"an assignment without a session", lease.Action{Kind: lease.Assign, Key: checkKey}, "Session is empty"},
		{"an assignment to nobody", lease.Action{Kind: lease.Assign, Key: checkKey, Session: lease.Nobody}, "assign"},
		{"an assignment without a key", lease.Action{Kind: lease.Assign, Session: "a"}, "stream"},
		{"a handoff to nobody", lease.Action{Kind: lease.Handoff, Key: checkKey, Session: lease.Nobody}, ""},
		{"a handoff that is withdrawn", lease.Action{Kind: lease.Handoff, Key: checkKey}, ""},
		{"a handoff to an invalid session", lease.Action{Kind: lease.Handoff, Key: checkKey, Session: "~~"}, "handoff"},
		{"a revocation with a huge epoch", lease.Action{Kind: lease.Revoke, Key: checkKey, Epoch: 1 << 63}, "orders/1"},
		{"a deletion of a long name", lease.Action{Kind: lease.Delete, Key: lease.Key{Stream: long, Shard: "1"}}, "stream"},
		{"a move to before time", lease.Action{Kind: lease.Move, Key: checkKey, Born: -1}, "orders/1"},
		{"a move without a key", lease.Action{Kind: lease.Move}, "stream"},
		{"a replacement", replace(func(*lease.Action) {}), ""},
		{"a replacement by an invalid lease", replace(func(a *lease.Action) { a.Lease.Born = -1 }), "orders/1"},
		{"a replacement without a key", replace(func(a *lease.Action) { a.Key = lease.Key{} }), "stream"},
		{"a replacement by another shard's", replace(func(a *lease.Action) { a.Lease.Shard = "2" }), "another shard"},
		{"a replacement with the same epoch", replace(func(a *lease.Action) { a.Lease.Epoch = 4 }), "not later"},
		{"a replacement that is owned", replace(func(a *lease.Action) { a.Lease.Owner = "a" }), "owner"},
		{"a replacement with an heir", replace(func(a *lease.Action) { a.Lease.Heir = "a" }), "owner"},
		{"a replacement at a huge epoch", replace(func(a *lease.Action) { a.Epoch = 1 << 63 }), "orders/1"},
		{"a birth", lease.Action{Kind: lease.Birth, Key: checkKey, Born: 1}, ""},
		{"a birth without a time", lease.Action{Kind: lease.Birth, Key: checkKey}, "orders/1"},
		{"a birth without a key", lease.Action{Kind: lease.Birth, Born: 1}, "stream"},
		{"an end at the last heartbeat", lease.Action{Kind: lease.EndSession, Session: "a", Heartbeats: math.MaxInt64}, ""},
		{"an end with a huge heartbeat", lease.Action{Kind: lease.EndSession, Session: "a", Heartbeats: math.MaxUint64}, "beat"},
		{"an end without a session", lease.Action{Kind: lease.EndSession}, "session"},
		{"none forgotten", lease.Action{Kind: lease.Forget}, "session"},
		{"none told", lease.Action{Kind: lease.Tell}, "session"},
		{"none drained", lease.Action{Kind: lease.Drain}, "session"},
		{"all paused", lease.Action{Kind: lease.Pause}, ""},
		{"a long name paused", lease.Action{Kind: lease.Pause, Stream: long}, "stream"},
	} {
		err := c.a.Check()
		if (err != nil) != (c.names != "") || err != nil && !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v, want an error that names %q", c.name, err, c.names)
		}
	}
	for app, good := range map[string]bool{"": false, "a": true, long: false, long[:255]: true, "\xff": false, "a\x00": false, "日本 /": true} {
		if err := lease.CheckApp(app); (err == nil) != good {
			t.Errorf("application %.20q: %v", app, err)
		}
	}
}

func TestWhoSaysThatItIsCutOff(t *testing.T) {
	k := lease.Key{Stream: "s", Shard: "1"}
	for want, all := range map[bool][][]lease.Trouble{
		true:  {{{State: lease.CutOff}}, {{Key: k, State: "stalled"}, {State: lease.CutOff, Why: "no route"}}},
		false: {nil, {{Key: k, State: lease.CutOff}}, {{State: "stalled"}}},
	} {
		for _, troubles := range all {
			if w := (lease.Worker{Troubles: troubles}); w.CutOff() != want {
				t.Errorf("%+v: %t", troubles, !want)
			}
		}
	}
}

func TestLoads(t *testing.T) {
	for _, c := range []struct {
		bytes float64
		want  lease.Load
		text  string
	}{
		{math.NaN(), 1, "idle"}, {-1, 1, "idle"}, {0, 1, "idle"}, {0.9, 1, "idle"}, {1, 2, "about 2.0 B/s"}, {2, 2, "about 2.0 B/s"}, {4, 4, "about 4.0 B/s"},
		{1 << 16, 32, "about 64 KiB/s"}, {1 << 20, 40, "about 1.0 MiB/s"}, {2 << 20, 42, "about 2.0 MiB/s"}, {math.Inf(1), lease.MaxLoad, "about 1020 GiB/s"},
	} {
		got := lease.LoadOf(c.bytes)
		if got != c.want || got.String() != c.text {
			t.Errorf("LoadOf(%v) = %d, %s", c.bytes, got, got)
		}
	}
	if got := lease.Load(0); got.String() != "unknown" || got.Bytes() != 0 || lease.Load(1).Bytes() != 0 {
		t.Error("what is not said, or idle, has bytes")
	}
	for l := lease.Load(2); l <= lease.MaxLoad; l++ {
		if got := lease.LoadOf(l.Bytes()); got != l {
			t.Errorf("class %d stands for %v bytes, whose class is %d", l, l.Bytes(), got)
		}
	}
	if lease.Load(255).Bytes() != lease.MaxLoad.Bytes() {
		t.Error("a class beyond the scale is more than the highest")
	}
}
