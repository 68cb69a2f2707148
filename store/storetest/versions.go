package storetest

import (
	"time"

	"github.com/weir-go/weir/internal/previous"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// versionCases run with e.other as a client of the previous version.
var versionCases = []testCase{
	{"each of two versions continues from the other's writes", func(e *env) {
		now, before := e, e.through(e.other)
		// One side leads and assigns leases, and the other side works. Then they change roles.
		for i, side := range []struct{ leads, works *env }{{before, now}, {now, before}} {
			session, heir := "worker-"+string(rune('a'+i)), "heir-"+string(rune('a'+i))
			id, child := "shard-"+string(rune('a'+i)), "child-"+string(rune('a'+i))
			side.works.report(lease.Report{
				Session: session, Name: "worker", First: true, Weight: 2, MaxLeases: 7, Holds: 5, Times: lease.DefaultTimes,
				Troubles: []lease.Trouble{{Key: k(id), State: "stalled", For: time.Second, Why: "it is slow"}},
			})
			side.leads.start(heir)
			created := create(id)
			created.Lease.Parents, created.Lease.Born = []string{"p1", "p2"}, 17
			side.leads.must(created, assign(id, 1, session))
			e.agree()
			held := side.works.beat(session).Held
			want := created.Lease
			want.Epoch, want.Owner, want.Last = 2, session, session
			if len(held) != 1 || describe(held[0]) != describe(want) {
				e.Fatalf("the worker holds %v, want %s", held, describe(want))
			}

			side.leads.must(handoff(id, 2, heir))
			moved := at(id, 2, seq(8))
			moved.Load, moved.Release = 3, true
			side.works.beat(session, moved)
			e.agree()
			side.leads.held(side.leads.beat(heir), k(id))
			ended := at(id, 3, shard.End)
			ended.Children = []shard.Shard{{ID: child, Parents: []string{id}, Range: upper}}
			side.leads.beat(heir, ended)
			e.agree()

			side.leads.must(assign(child, 1, session))
			side.works.held(side.works.beat(session), k(child))
			side.leads.must(revoke(child, 2), drain(session, true), suspend("orders", true))
			side.works.held(side.works.beat(session))
			e.agree()
			side.works.beat(session, release(child, 2)) // this acknowledges the revocation
			side.leads.must(move(child, 3, seq(3)), suspend("orders", false), assign(child, 4, session))
			e.agree()
			side.works.leave(session)
			e.agree()
			for _, l := range side.leads.view().Leases {
				if l.Key == k(child) && (l.Owner != "" || l.Epoch != 6 || l.Position != seq(3)) {
					e.Errorf("after all the lease is %s", describe(l))
				}
			}
		}
	}},
}

// through returns e with another client.
func (e *env) through(s lease.Store) *env {
	c := *e
	c.store, c.other = s, e.store
	return &c
}

// agree checks that both clients see the same data, in the fields that the previous version knows.
func (e *env) agree() {
	e.Helper()
	old := e.through(e.other)
	equal(e, "the view of the previous version", canon(old.view()), canon(previous.View(e.view())))
}
