package dynamostore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestDecide(t *testing.T) {
	owned := lease.Lease{Epoch: 5, Owner: "a"}
	wished := lease.Lease{Epoch: 5, Owner: "a", Heir: "b"}
	revoked := lease.Lease{Epoch: 6, Revoked: "a"}
	release := lease.Progress{Epoch: 5, Release: true}
	end := lease.Progress{Epoch: 5, Position: shard.End}
	for _, c := range []struct {
		name    string
		lease   lease.Lease
		session string
		p       lease.Progress
		want    outcome
	}{
		{"its owner releases a lease", owned, "a", release, freed},
		{"its owner releases a lease that has an heir", wished, "a", release, handedOver},
		{"its owner releases a lease whose heir is nobody", lease.Lease{Epoch: 5, Owner: "a", Heir: lease.Nobody}, "a", release, freed},
		{"its owner finishes a lease", owned, "a", end, finished},
		{"an end beats the heir", wished, "a", lease.Progress{Epoch: 5, Position: shard.End, Release: true}, finished},
		{"an older epoch is ignored", owned, "a", lease.Progress{Epoch: 4, Release: true}, ignored},
		{"a later epoch is ignored", owned, "a", lease.Progress{Epoch: 6, Position: shard.End}, ignored},
		{"somebody else is ignored", owned, "b", release, ignored},
		{"the heir itself is ignored", wished, "b", release, ignored},
		{"the revoked session acknowledges", revoked, "a", release, acknowledged},
		{"it acknowledges also with an end that comes too late", revoked, "a", lease.Progress{Epoch: 5, Position: shard.End, Release: true}, acknowledged},
		{"a late end alone acknowledges nothing", revoked, "a", end, ignored},
		{"others do not acknowledge", revoked, "b", release, ignored},
		{"a free lease has nothing to give back", lease.Lease{Epoch: 5}, "a", release, ignored},
	} {
		if got := decide(c.lease, c.session, c.p); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestRuns(t *testing.T) {
	k := func(id string) lease.Key { return lease.Key{Stream: "s", Shard: id} }
	assign := func(id string) lease.Action { return lease.Action{Kind: lease.Assign, Key: k(id), Session: "a"} }
	create := func(id string) lease.Action { return lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: k(id)}} }
	end := func(s string) lease.Action { return lease.Action{Kind: lease.EndSession, Session: s} }
	for _, c := range []struct {
		name    string
		actions []lease.Action
		want    []run
	}{
		{"nothing", nil, nil},
		{"one", []lease.Action{assign("1")}, []run{{0, 1}}},
		{"a kind on many leases goes side by side", []lease.Action{assign("1"), assign("2"), assign("3")}, []run{{0, 3}}},
		{"another kind waits", []lease.Action{create("1"), create("2"), assign("1"), assign("2")}, []run{{0, 2}, {2, 4}}},
		{"the same lease waits", []lease.Action{assign("1"), assign("2"), assign("1"), assign("1")}, []run{{0, 2}, {2, 3}, {3, 4}}},
		{"sessions are told apart too", []lease.Action{end("a"), end("b"), end("a")}, []run{{0, 2}, {2, 3}}},
	} {
		if got := slices.Collect(runs(c.actions)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestARevisionStandsForWhatWasRead(t *testing.T) {
	base := func() group {
		return group{leader: leaderRow{changes: 4}, workers: []workerRow{{Worker: lease.Worker{Session: "a"}, freed: 1}, {Worker: lease.Worker{Session: "b"}, freed: 2}}}
	}
	sum, settled := base().condense()
	if !settled {
		t.Error("a settled group is not")
	}
	same := base()
	same.workers[0].Heartbeats, same.workers[0].told, same.workers[1].Ended, same.leader.term = 9, 9, true, 9
	if got, _ := same.condense(); got != sum {
		t.Error("beats, notes, ends and leaders change the revision")
	}
	for name, change := range map[string]func(*group){
		"an announced change": func(g *group) { g.leader.changes++ },
		"another application": func(g *group) { g.leader.token = "other" },
		"a freed lease":       func(g *group) { g.workers[1].freed++ },
		"freed by the other":  func(g *group) { g.workers[0].freed, g.workers[1].freed = 2, 1 },
		"a worker that left":  func(g *group) { g.workers = g.workers[:1] },
		"another worker":      func(g *group) { g.workers[1].Session = "c" },
	} {
		g := base()
		change(&g)
		if got, _ := g.condense(); got == sum {
			t.Errorf("%s does not change the revision", name)
		}
	}
	g := base()
	g.workers[0].unsettled = true
	if _, settled := g.condense(); settled {
		t.Error("a group with an unsettled session is settled")
	}
}

func TestWhichRevisionsStillStand(t *testing.T) {
	s := New(nil, Options{})
	s.doubt["doubted"] = 10 * time.Second
	rev := func(id, sum string, at time.Duration) string { return fmt.Sprintf("%s/%s/%020d", id, sum, at) }
	now := 90 * time.Second
	for _, c := range []struct {
		name, app, since string
		want             bool
	}{
		{"a recent one", "app", rev(s.id, "sum", now-time.Second), true},
		{"no revision", "app", "", false},
		{"nonsense", "app", "a/b/c", false},
		{"another group", "app", rev(s.id, "other", now-time.Second), false},
		{"another store", "app", rev("other", "sum", now-time.Second), false},
		{"an old one", "app", rev(s.id, "sum", now-readInFull), false},
		{"one from the future", "app", rev(s.id, "sum", now+1), false},
		{"one with a digit too many", "app", rev(s.id, "sum", now-time.Second) + "0", false},
		{"one from before a note was lost", "doubted", rev(s.id, "sum", 10*time.Second), false},
		{"one from after a note was lost", "doubted", rev(s.id, "sum", now-time.Second), true},
	} {
		if got := s.current(c.app, c.since, "sum", now); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestParallel(t *testing.T) {
	for _, n := range []int{0, 1, 2, inParallel, 10 * inParallel} {
		var calls atomic.Int64
		if err := parallel(n, func(int) error { calls.Add(1); return nil }); err != nil || calls.Load() != int64(n) {
			t.Errorf("%d: %d calls, %v", n, calls.Load(), err)
		}
	}
	var after atomic.Int64
	fail := errors.New("third")
	err := parallel(1000, func(i int) error {
		if i == 3 {
			return fail
		}
		after.Add(1)
		return nil
	})
	if !errors.Is(err, fail) {
		t.Error(err)
	}
	if after.Load() == 999 {
		t.Log("every call began before the failing one ended")
	}
}

func TestTheNamesInReportsAndActionsAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxRowBytes)
	for _, r := range []lease.Report{
		{},
		{Session: long},
		{Session: "a", Progress: []lease.Progress{{Key: lease.Key{Stream: strings.Repeat("/", 255), Shard: long[:255]}}}},
		{Session: "\xff"},
		{Session: "a", Progress: []lease.Progress{{Key: lease.Key{Stream: "s", Shard: long}}}},
		{Session: "a", Progress: []lease.Progress{{Children: []shard.Shard{{ID: long}}}}},
	} {
		if _, err := checkReport(r); err == nil {
			t.Errorf("report %.60v", r)
		}
	}
	for _, a := range []lease.Action{
		{},
		{Kind: lease.Pause + 1},
		{Kind: lease.Assign},
		{Kind: lease.Assign, Session: "\xff"},
		{Kind: lease.Revoke, Key: lease.Key{Stream: long}},
		{Kind: lease.Create, Lease: lease.Lease{Key: lease.Key{Shard: long}}},
		{Kind: lease.Create, Lease: lease.Lease{Parents: []string{"\xff"}}},
		{Kind: lease.EndSession, Session: long},
		{Kind: lease.Delete, Key: lease.Key{Stream: strings.Repeat("/", 255), Shard: long[:255]}},
	} {
		if err := checkAction(a); err == nil {
			t.Errorf("action %.60v", a)
		}
	}
}
