package group

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// alone is a store that can fail for one worker and that may lack abilities.
type alone struct {
	lease.Store
	link *link
	lack lease.Abilities
	op   string
}

var errAlone = errors.New("this call fails for one worker")

func (s *alone) fails(op string) bool {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.op == op || s.op == "all"
}

func (s *alone) set(op string) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	s.op = op
}

func (s *alone) Abilities() lease.Abilities { return s.Store.Abilities() &^ s.lack }

func (s *alone) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if s.lack.Has(lease.ResignByHeartbeat) {
		r.Resigns = 0
	}
	if s.lack.Has(lease.WatchHeartbeats) {
		r.Others = false
	}
	return s.Store.Heartbeat(ctx, app, r)
}

func (s *alone) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	if s.fails("lead") {
		return false, errAlone
	}
	return s.Store.Lead(ctx, app, session, term)
}

func (s *alone) View(ctx context.Context, app, since string) (lease.View, error) {
	if s.fails("view") {
		return lease.View{}, errAlone
	}
	return s.Store.View(ctx, app, since)
}

func (s *alone) Apply(ctx context.Context, app string, a []lease.Action) ([]bool, error) {
	if s.fails("apply") {
		return nil, errAlone
	}
	return s.Store.Apply(ctx, app, a)
}

// This test measures the gap after several workers, including the leader, died at once. It varies
// the phases of their heartbeats.
func TestShardsAreSilentForSevenSecondsAtMostWhoeverDies(t *testing.T) {
	runs := 10
	if testing.Short() {
		runs = 2
	}
	for _, c := range []struct {
		who        string
		dead, last lease.Abilities // abilities that their stores lack
	}{
		{"all watch", 0, 0},
		{"the last one watches, and the others have the earlier version", lease.AllAbilities, 0},
		{"the last one has the earlier version", 0, lease.AllAbilities},
		{"nobody watches", lease.AllAbilities, lease.AllAbilities},
	} {
		var worst time.Duration
		for run := range runs {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 12)
				store := f.store
				f.store = &alone{Store: store, link: &link{}, lack: c.dead}
				f.join("a")
				f.until("a has all", 10*time.Second, func() bool { return f.owners()["a"] == 12 })
				for _, name := range []string{"b", "c", "d"} {
					if name == "d" {
						f.store = &alone{Store: store, link: &link{}, lack: c.last}
					}
					f.join(name)
					time.Sleep(time.Duration(run*97%1000) * time.Millisecond)
				}
				f.until("all have their share", 30*time.Second, func() bool {
					o := f.owners()
					return o["a"] == 3 && o["b"] == 3 && o["c"] == 3 && o["d"] == 3
				})
				time.Sleep(5*time.Second + time.Duration(run)*113*time.Millisecond)
				killed := time.Now()
				for _, m := range f.workers[:3] { // a leads
					m.link.kill()
					m.stop()
				}
				f.until("d has all", 20*time.Second, func() bool { return f.owners()["d"] == 12 })
				time.Sleep(time.Second)
				worst = max(worst, f.silence(killed))
				f.workers[3].stop()
				for _, m := range f.workers {
					if err := <-m.done; err != nil {
						t.Log("a worker ended with", err) // a killed worker, whose error does not matter
					}
				}
			})
		}
		t.Logf("%s: silent for %v at worst", c.who, worst)
		if old := c.last != 0; worst > 7*time.Second && !old || (worst < 9*time.Second || worst > 12*time.Second) && old {
			t.Errorf("%s: silent for %v at worst", c.who, worst)
		}
	}
}

// A leader whose session is alive but whose leader calls fail resigns soon after the failover time.
// It does not lead again while another worker can. It keeps its leases, unless it can resign only
// by ending its session.
func TestALeaderThatCannotDoItsWorkStepsDown(t *testing.T) {
	for _, c := range []struct {
		op   string
		lack lease.Abilities
		ends bool // the leader's session ends, because it cannot resign in another way
	}{
		{op: "view"}, {op: "apply"}, {op: "all"}, {op: "view", lack: lease.ResignByHeartbeat},
		{op: "all", lack: lease.ResignByHeartbeat, ends: true},
	} {
		t.Run(fmt.Sprintf("%s without %v", c.op, c.lack), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 8)
				store := f.store
				a := &alone{Store: store, link: &link{}, lack: c.lack}
				f.store = a
				f.join("a")
				f.until("a has all", 10*time.Second, func() bool { return f.owners()["a"] == 8 })
				f.store = &alone{Store: store, link: &link{}, lack: c.lack}
				f.join("b")
				f.until("both have their share", 20*time.Second, func() bool { return f.owners()["b"] == 4 })
				was := f.session("a")
				if f.view().Leader.Session != was {
					t.Fatal("a does not lead")
				}
				a.set(c.op)
				if c.op == "apply" || c.op == "all" { // some work that b can do
					f.apply(lease.Action{Kind: lease.Drain, Session: f.session("b"), On: true})
				}
				bound := 8 * time.Second
				if c.ends {
					bound = 15 * time.Second
				}
				began := time.Now()
				f.until("b leads", bound, func() bool { return f.view().Leader.Session == f.session("b") })
				t.Logf("b leads after %v", time.Since(began))
				for range 600 {
					time.Sleep(100 * time.Millisecond)
					if f.view().Leader.Session != f.session("b") {
						t.Fatalf("later %v leads", f.view().Leader)
					}
				}
				if c.ends == (f.session("a") == was) {
					t.Errorf("the session was %s and is %s", was, f.session("a"))
				}
				a.set("")
				f.end()
				if d := f.duplicates(); d != 0 || f.reasons["lost"] != 0 {
					t.Errorf("%d records were handled twice, terms ended because %v", d, f.reasons)
				}
			})
		})
	}
}

// If a handler requests the end of Run while a session is ending, Run ends soon after the stop
// timeout, although another handler does not return before that.
func TestAnErrorEndsRunAlsoWhileTheSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorker()
		a := &alone{Store: w.cfg.Store, link: &link{}, lack: lease.ResignByHeartbeat}
		w.cfg.Store, w.cfg.Stop, w.cfg.Times.Handoff = a, 3*time.Second, 30*time.Second
		w.cfg.Streams, w.cfg.Start, w.cfg.ListInterval = []string{"s"}, shard.Oldest, time.Minute
		funcsOf(w.cfg).OnList = func(context.Context, string, shard.Position) (Listing, error) {
			return Listing{Shards: []shard.Shard{{ID: "1"}, {ID: "2"}}}, nil
		}
		funcsOf(w.cfg).OnRead = func(term *Term) error {
			if term.Lease.Shard == "1" {
				<-term.Context().Done()
				return nil
			}
			<-term.Reading().Done()
			return errDown
		}
		time.AfterFunc(5*time.Second, func() { a.set("all") })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		began := time.Now()
		if err := w.run(ctx); !errors.Is(err, errDown) {
			t.Errorf("Run says %v, not what the reader did", err)
		}
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("Run returned after %v", took)
		}
	})
}

// A worker that resigned leads again if no other worker does. An example is a single worker that
// could not read the store for a while.
func TestAWorkerThatIsAloneLeadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4)
		a := &alone{Store: f.store, link: &link{}}
		f.store = a
		f.join("a")
		f.until("a has all", 10*time.Second, func() bool { return f.owners()["a"] == 4 })
		a.set("view")
		f.store = a.Store
		f.until("no worker leads", 8*time.Second, func() bool { return f.view().Leader.Session == "" })
		a.set("")
		f.until("a leads", 5*time.Second, func() bool { return f.view().Leader.Session == f.session("a") })
		f.end()
	})
}

func TestWhichPartAWorkerTakes(t *testing.T) {
	const beat = time.Second
	other := lease.Leader{Session: "b", Epoch: 3, Heartbeats: 9}
	own := lease.Leader{Session: "a", Epoch: 3, Heartbeats: 9}
	none := lease.Leader{Epoch: 3}
	for name, c := range map[string]struct {
		is   candidate
		want part
	}{
		"another leads":                             {candidate{leader: other, leasesValid: true}, follows},
		"no worker leads":                           {candidate{leader: none, leasesValid: true}, campaigns},
		"the leader is dead":                        {candidate{leader: other, dead: true, leasesValid: true}, campaigns},
		"it leads unexpectedly":                     {candidate{leader: own, leasesValid: true}, goesOn},
		"it leads and stops":                        {candidate{leader: own, leasesValid: true, stopping: true}, resigns},
		"it leads though it stepped down":           {candidate{leader: own, leasesValid: true, shy: true}, resigns},
		"there is no leader and it stops":           {candidate{leader: none, leasesValid: true, stopping: true}, follows},
		"there is no leader and no lease is valid":  {candidate{leader: none}, follows},
		"it leads and no lease is valid":            {candidate{leader: own}, follows},
		"it stepped down, and another may lead yet": {candidate{leader: none, leasesValid: true, shy: true, vacant: 2 * beat}, follows},
		"it stepped down, and no other leads":       {candidate{leader: none, leasesValid: true, shy: true, vacant: 3 * beat}, campaigns},
		"it stepped down, and the new leader died":  {candidate{leader: other, dead: true, leasesValid: true, shy: true, vacant: 3 * beat}, campaigns},
	} {
		c.is.session = "a"
		if got := c.is.decide(beat); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
