package protocol

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

const app = "model"

// pair makes the same calls on the model's store and on the reference store.
type pair struct {
	t     *testing.T
	m     *Model
	s     state
	store *memstore.Store
	saved int // increases with every checkpoint that is sent
	// resigned counts the resignations of a leader with its heartbeat.
	resigned int
}

func (p *pair) session(ref uint8) string {
	if ref == nobody {
		return ""
	}
	return fmt.Sprintf("s%d", ref)
}

func key(l int) lease.Key { return lease.Key{Stream: "stream", Shard: fmt.Sprintf("shard-%d", l)} }

func (p *pair) view() lease.View {
	p.t.Helper()
	v, err := p.store.View(context.Background(), app, "")
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// TestModelAgreesWithMemstore checks that the model's store carries out and refuses the same calls
// as the reference store.
func TestModelAgreesWithMemstore(t *testing.T) {
	runs := 400
	if testing.Short() {
		runs = 60
	}
	took, refused, resigned := map[string]int{}, map[string]int{}, 0
	for n := range runs {
		m := New(Model{Workers: 4, Sessions: 4, Leases: 2, Failover: 3, Validity: 1})
		p := &pair{t: t, m: m, store: memstore.New()}
		for l := range m.Leases {
			p.s.leases[l].epoch = 9
			create := lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: key(l), Epoch: 9, Position: shard.Oldest}}
			if _, err := p.store.Apply(t.Context(), app, []lease.Action{create}); err != nil {
				t.Fatal(err)
			}
		}
		r := rand.New(rand.NewPCG(uint64(n), 7))
		for at := range 300 {
			what, model, store := p.step(r)
			if model != store {
				t.Fatalf("run %d, step %d, %s: the model says %t, memstore %t", n, at, what, model, store)
			}
			if diff := p.differ(); diff != "" {
				t.Fatalf("run %d, step %d, after %s: %s", n, at, what, diff)
			}
			if model {
				took[what]++
			} else {
				refused[what]++
			}
		}
		resigned += p.resigned
	}
	if t.Logf("%d resignations", resigned); resigned == 0 {
		t.Error("nobody ever resigned")
	}
	for what := range took {
		t.Logf("%-12s took effect %6d times, was refused %6d times", what, took[what], refused[what])
		if took[what] == 0 || refused[what] == 0 && what != "leave" {
			t.Errorf("%s was never refused, or never took effect", what)
		}
	}
}

// step makes a random call on both stores. It returns whether each of them applied the call.
func (p *pair) step(r *rand.Rand) (what string, model, store bool) {
	who := uint8(1 + r.IntN(p.m.places))
	at := uint8(r.IntN(p.m.Leases))
	if n := r.IntN(10); n < 4 {
		return p.report(r, who, n == 0 && r.IntN(4) == 0)
	}
	v := p.view()
	back := uint64(0)
	if r.IntN(3) == 0 {
		back = uint64(1 + r.IntN(2))
	}
	c := call{lease: at, to: who, stale: back > 0}
	a := lease.Action{Key: key(int(at)), Epoch: v.Leases[at].Epoch - back, Session: p.session(who)}
	switch r.IntN(7) {
	case 0:
		if r.IntN(3) == 0 {
			c.to, a.Session = nobody, "" // withdraws the request
		}
		c.kind = callHandoff
	case 1:
		c.kind, c.to, a.Session = callRevoke, nobody, ""
	case 2:
		c.kind, c.stale = callForget, false
	case 3:
		c.kind, c.stale, c.moved = callEndSession, false, back > 0
		for _, w := range v.Workers {
			if w.Session == a.Session {
				a.Heartbeats = w.Heartbeats + back // any other count works
			}
		}
	case 4:
		c.kind = callLead
		model = p.m.apply(&p.s, c)
		if v.Leader.Epoch < back {
			// There is no term that old. Use a future term instead, which must be refused as well.
			back = v.Leader.Epoch + 1
		}
		store, err := p.store.Lead(context.Background(), app, a.Session, v.Leader.Epoch-back)
		if err != nil {
			p.t.Fatal(err)
		}
		return "lead", model, store
	default:
		c.kind = callAssign
	}
	a.Kind = kindOf[c.kind]
	did, err := p.store.Apply(context.Background(), app, []lease.Action{a})
	if err != nil {
		p.t.Fatal(err)
	}
	return a.Kind.String(), p.m.apply(&p.s, c), did[0]
}

// report sends a heartbeat, or a leave, that saves and releases leases at any epochs.
func (p *pair) report(r *rand.Rand, who uint8, leaves bool) (what string, model, store bool) {
	v := p.view()
	b := call{kind: callBeat, from: who, first: r.IntN(2) == 0}
	say := lease.Report{Session: p.session(who), Name: "worker", First: b.first}
	for l := range p.m.Leases {
		back := r.IntN(3)
		progress := lease.Progress{Key: key(l), Epoch: v.Leases[l].Epoch - uint64(back)}
		if r.IntN(2) == 0 {
			b.release[l], progress.Release = uint8(1+back), true
		}
		if !leaves && r.IntN(2) == 0 {
			p.saved++
			b.save[l] = uint8(1 + back)
			progress.Position = position(p.t, p.saved)
		}
		say.Progress = append(say.Progress, progress)
	}
	if term := v.Leader.Epoch; !leaves && term > 0 && r.IntN(4) == 0 {
		back := uint64(r.IntN(2))
		say.Resigns, b.resigns = term-back, back == 0
	}
	before := p.s
	if leaves {
		p.m.leave(&p.s, int(who)-1, &b)
		if err := p.store.Leave(context.Background(), app, say); err != nil {
			p.t.Fatal(err)
		}
		return "leave", true, true
	}
	model = p.m.beat(&p.s, int(who)-1, &b)
	orders, err := p.store.Heartbeat(context.Background(), app, say)
	if err != nil && !errors.Is(err, lease.ErrSessionOver) {
		p.t.Fatal(err)
	}
	if err != nil {
		return "beat", model, false
	}
	held := map[lease.Key]bool{}
	for _, l := range orders.Held {
		held[l.Key] = true
	}
	after := p.view()
	if after.Leader.Epoch != v.Leader.Epoch {
		p.t.Fatalf("a heartbeat of s%d moves the term from %d to %d", who, v.Leader.Epoch, after.Leader.Epoch)
	}
	if before.leader == who && p.s.leader == nobody {
		p.resigned++
	}
	for l := range p.m.Leases {
		if got, want := held[key(l)], p.s.leases[l].owner == who; got != want {
			p.t.Fatalf("after a heartbeat of s%d: its orders hold lease %d: %t, the model says %t", who, l, got, want)
		}
		accepted := p.m.save(&before, int(who)-1, l, b.save[l])
		if moved := after.Leases[l].Position != v.Leases[l].Position; moved != accepted {
			p.t.Fatalf("a heartbeat of s%d saves lease %d at epoch -%d: accepted %t, the model says %t", who, l, b.save[l]-1, moved, accepted)
		}
	}
	return "beat", model, true
}

func position(t *testing.T, n int) shard.Position {
	t.Helper()
	at, err := shard.After(strconv.Itoa(n))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// differ describes the differences between the two stores.
func (p *pair) differ() string {
	v := p.view()
	rows := map[string]rowState{}
	for _, w := range v.Workers {
		rows[w.Session] = alive
		if w.Ended {
			rows[w.Session] = ended
		}
	}
	for i := range p.m.places {
		if got, want := rows[p.session(ref(i))], p.s.sessions[i].row; got != want {
			return fmt.Sprintf("the row of s%d is %d, the model says %d", i+1, got, want)
		}
	}
	if got, want := v.Leader.Session, p.session(p.s.leads()); got != want {
		return fmt.Sprintf("%q leads, the model says %q", got, want)
	}
	for l := range p.m.Leases {
		got, w := v.Leases[l], &p.s.leases[l]
		if want := (lease.Lease{Owner: p.session(w.owner), Heir: p.session(w.heir), Revoked: p.session(w.revoked)}); got.Owner != want.Owner ||
			got.Heir != want.Heir || got.Revoked != want.Revoked || uint8(got.Epoch) != w.epoch {
			return fmt.Sprintf("the lease is %s, the model says %s at epoch %d", got, want, w.epoch)
		}
	}
	return ""
}
