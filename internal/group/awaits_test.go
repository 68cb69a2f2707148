package group

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
)

// beaten is a store that records the time of each heartbeat of each session.
type beaten struct {
	lease.Store
	mu sync.Mutex
	at map[string][]time.Time
}

func (s *beaten) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	s.mu.Lock()
	s.at[r.Session] = append(s.at[r.Session], time.Now())
	s.mu.Unlock()
	return s.Store.Heartbeat(ctx, app, r)
}

// of returns the heartbeats of a session in a period.
func (s *beaten) of(session string, from, to time.Time) (some []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.at[session] {
		if !at.Before(from) && at.Before(to) {
			some = append(some, at)
		}
	}
	return some
}

// After a change of leader, workers send heartbeats more often for a while, because a heartbeat
// returns the leases that the new leader has assigned. All workers do this at the same time, so the
// period is short and the rate is limited.
func TestWhoSurvivesALeaderBeatsMoreOftenForAWhile(t *testing.T) {
	const beat = time.Second
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10)
		store := &beaten{Store: f.store, at: map[string][]time.Time{}}
		f.store = store
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			f.join(name)
			time.Sleep(1370 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		first := f.view().Leader.Session
		if first != f.session("a") {
			t.Fatal("a does not lead")
		}
		calm := time.Now()
		time.Sleep(10 * time.Second)
		names := []string{"b", "c", "d"}
		for _, name := range names {
			if n := len(store.of(f.session(name), calm, time.Now())); n > 12 {
				t.Errorf("%s sends %d heartbeats in ten quiet seconds", name, n)
			}
		}
		for _, m := range []*member{f.workers[0], f.workers[4]} {
			m.link.kill()
			m.stop()
		}
		f.until("another leads", 7*time.Second, func() bool { return f.view().Leader.Session != first })
		began := time.Now()
		time.Sleep(10 * time.Second)
		for _, name := range names {
			session := f.session(name)
			if session == f.view().Leader.Session {
				continue
			}
			heard := store.of(session, began, time.Now())
			soon := store.of(session, heard[0], heard[0].Add(2*beat))
			for i := 1; i < len(soon); i++ {
				if pause := soon[i].Sub(soon[i-1]); pause > beat/3 {
					t.Errorf("%s lets %v pass between two heartbeats right after the leader's death", name, pause)
				}
			}
			if later := heard[0].Add(3 * beat); len(store.of(session, later, later.Add(5*beat))) > 6 {
				t.Errorf("%s sends heartbeats quickly for longer than it is good for", name)
			}
		}
		f.end()
	})
}

// funcsOf returns the Host of a configuration as HostFuncs.
func funcsOf(cfg Config) *HostFuncs { return cfg.Host.(*HostFuncs) }
