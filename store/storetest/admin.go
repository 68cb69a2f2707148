package storetest

import (
	"math"
	"slices"
	"strings"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// admin returns the store as a [lease.Admin]. If the store is not one, it skips the case.
func (e *env) admin() lease.Admin {
	e.Helper()
	a, ok := e.store.(lease.Admin)
	if !ok {
		e.Skip("the store is not a lease.Admin")
	}
	return a
}

func (e *env) listed() bool {
	e.Helper()
	apps, err := e.admin().Apps(e.ctx)
	if err != nil {
		e.Fatal(err)
	}
	if !slices.IsSorted(apps) || len(slices.Compact(slices.Clone(apps))) != len(apps) {
		e.Errorf("applications are not sorted, or come twice: %q", apps)
	}
	return slices.Contains(apps, e.app)
}

func (e *env) removed() {
	e.Helper()
	if err := e.admin().Remove(e.ctx, e.app); err != nil {
		e.Fatal(err)
	}
}

// adminCases test [lease.Admin], and arguments that every store rejects.
var adminCases = []testCase{
	{"an application is listed if data of it is stored", func(e *env) {
		e.view()
		equal(e, "an application that was only viewed", e.listed(), false)
		for name, do := range map[string]func(*env){
			"-lease":   func(e *env) { e.must(create("1")) },
			"-session": func(e *env) { e.start("a") },
			"-paused":  func(e *env) { e.must(suspend("orders", true)) },
			"-odd/ 日'": func(e *env) { e.start("a"); e.must(create("1")); e.lead("a", 0) },
		} {
			e := e.in(e.app + name)
			do(e)
			equal(e, name, e.listed(), true)
		}
		equal(e, "one of a like name", e.listed(), false)
	}},
	{"a removed application is like an unused one", func(e *env) {
		other := e.in(e.app + "-other")
		other.start("a")
		other.owned("a", "1")
		e.removed() // nothing was stored yet
		fill := func() {
			e.start("a", "b")
			e.owned("a", "1", "2")
			e.must(create("3"), suspend("orders", true), handoff("2", 2, "b"))
			e.beat("a", at("1", 2, seq(5)))
			e.end("b")
			e.lead("a", 0)
		}
		fill()
		seen := e.view()
		for range 2 {
			e.removed()
			equal(e, "view", canon(e.view()), `leader "" term 0`)
			equal(e, "listed", e.listed(), false)
		}
		e.over(lease.Report{Session: "a", Progress: []lease.Progress{at("1", 2, seq(9))}})
		equal(e, "view", canon(e.view()), `leader "" term 0`)
		fill() // the same steps again must not look like the old application
		if v := e.since(seen.Revision); v.Same {
			e.Error("a view of the removed application counts as the same as one of the new application")
		}
		e.held(e.beat("a"), k("1"), k("2"))
		equal(e, "other", len(other.view().Leases), 1)
		other.held(other.beat("a"), k("1"))
	}},
	{"invalid arguments are refused and change nothing", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		long := strings.Repeat("x", 256)
		var child lease.Progress
		child.Key, child.Epoch, child.Position, child.Children = k("1"), 2, shard.End, []shard.Shard{{ID: long}}
		e.unchanged(func() {
			for name, r := range map[string]lease.Report{
				"a session with a blank": {Session: "a b", First: true},
				"nobody as a session":    {Session: lease.Nobody, First: true},
				"a long session":         {Session: long, First: true},
				"a long child":           {Session: "a", Progress: []lease.Progress{child}},
				"a huge epoch":           {Session: "a", Progress: []lease.Progress{at("1", math.MaxInt64+1, seq(9))}},
				"a huge load":            {Session: "a", Progress: []lease.Progress{{Key: k("1"), Epoch: 2, Load: lease.MaxLoad + 1}}},
			} {
				if _, err := e.store.Heartbeat(e.ctx, e.app, r); err == nil {
					e.Errorf("Heartbeat with %s reports no error", name)
				}
				if err := e.store.Leave(e.ctx, e.app, r); err == nil {
					e.Errorf("Leave with %s reports no error", name)
				}
			}
			for name, a := range map[string]lease.Action{
				"a long stream":         {Kind: lease.Create, Lease: lease.Lease{Key: lease.Key{Stream: long, Shard: "1"}}},
				"a shard with a zero":   {Kind: lease.Create, Lease: lease.Lease{Key: k("a\x00b")}},
				"a negative birth":      {Kind: lease.Create, Lease: lease.Lease{Key: k("2"), Born: -1}},
				"a huge epoch":          {Kind: lease.Create, Lease: lease.Lease{Key: k("2"), Epoch: math.MaxInt64 + 1}},
				"a session that is odd": {Kind: lease.Handoff, Key: k("1"), Epoch: 2, Session: "b c"},
				"no session":            {Kind: lease.Drain, On: true},
				"a long paused stream":  {Kind: lease.Pause, Stream: long, On: true},
			} {
				done, err := e.store.Apply(e.ctx, e.app, []lease.Action{create("5"), a})
				if err == nil {
					e.Errorf("Apply with %s = %v", name, done)
				}
			}
		})
		for _, app := range []string{"", long, "a\xff", "a\x00"} {
			e := e.in(app)
			if _, err := e.store.Heartbeat(e.ctx, app, lease.Report{Session: "a", First: true}); err == nil {
				e.Errorf("application %.10q: Heartbeat reports no error", app)
			}
			if _, err := e.store.View(e.ctx, app, ""); err == nil {
				e.Errorf("application %.10q: View reports no error", app)
			}
			if _, err := e.store.Apply(e.ctx, app, nil); err == nil {
				e.Errorf("application %.10q: Apply reports no error", app)
			}
			if _, err := e.store.Lead(e.ctx, app, "a", 0); err == nil {
				e.Errorf("application %.10q: Lead reports no error", app)
			}
		}
	}},
}
