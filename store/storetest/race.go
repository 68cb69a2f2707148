package storetest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/lease"
)

var raceCases = []testCase{
	{"of racing creates and assigns exactly one wins", func(e *env) {
		const writers, rounds = 8, 10
		for i := range writers {
			e.start(fmt.Sprint(i))
		}
		for round := range rounds {
			id := fmt.Sprint(round)
			wins := [3]atomic.Int32{}
			e.together(writers, func(i int, s lease.Store) error {
				for n, a := range []lease.Action{create(id), assign(id, 1, fmt.Sprint(i)), revoke(id, 2)} {
					done, err := s.Apply(e.ctx, e.app, []lease.Action{a})
					if err != nil {
						return err
					}
					if done[0] {
						wins[n].Add(1)
					}
				}
				return nil
			})
			for n := range wins {
				if wins[n].Load() != 1 {
					e.Fatalf("%d writers won step %d", wins[n].Load(), n)
				}
			}
		}
	}},
	{"of many sessions that start at once each gets its row", func(e *env) {
		const sessions = 16
		e.together(sessions, func(i int, s lease.Store) error {
			_, err := s.Heartbeat(e.ctx, e.app, lease.Report{Session: fmt.Sprint(i), First: true})
			return err
		})
		equal(e, "sessions", len(e.view().Workers), sessions)
	}},
	{"the checkpoint of racing heartbeats of one session is the furthest", func(e *env) {
		const beats = 8
		e.start("a")
		e.owned("a", "1")
		before, _ := e.worker("a")
		e.together(beats, func(i int, s lease.Store) error {
			for n := range 5 {
				_, err := s.Heartbeat(e.ctx, e.app, lease.Report{Session: "a", Progress: []lease.Progress{at("1", 2, seq(uint64(n*beats+i)))}})
				if err != nil {
					return err
				}
			}
			return nil
		})
		l, _ := e.find(k("1"))
		equal(e, "position", l.Position, seq(5*beats-1))
		if after, _ := e.worker("a"); after.Heartbeats == before.Heartbeats {
			e.Error("the heartbeat count stands still")
		}
	}},
	{"of a racing end of session and heartbeats either comes first", func(e *env) {
		for round := range 10 {
			session := fmt.Sprint("s", round)
			e.start(session)
			seen, _ := e.worker(session)
			var ended bool
			var beatErr error
			e.together(2, func(i int, s lease.Store) error {
				if i == 0 {
					_, beatErr = s.Heartbeat(e.ctx, e.app, lease.Report{Session: session})
					return nil
				}
				done, err := s.Apply(e.ctx, e.app, []lease.Action{{Kind: lease.EndSession, Session: session, Heartbeats: seen.Heartbeats}})
				ended = err == nil && done[0]
				return err
			})
			w, _ := e.worker(session)
			if ended != w.Ended || ended != (beatErr != nil) || ended != (w.Heartbeats == seen.Heartbeats) {
				e.Fatalf("ended=%t, heartbeat: %v, worker before %+v, now %+v", ended, beatErr, seen, w)
			}
		}
	}},
	{"a view never misses the session that its leases name", func(e *env) {
		const writers, rounds = 4, 15
		for i := range writers {
			e.must(create(fmt.Sprint(i)))
		}
		var busy atomic.Int32
		busy.Store(writers)
		e.together(writers+2, func(i int, s lease.Store) error {
			if i < writers {
				defer busy.Add(-1)
				for n := range uint64(rounds) {
					session := fmt.Sprintf("%d-%d", i, n)
					if _, err := s.Heartbeat(e.ctx, e.app, lease.Report{Session: session, First: true}); err != nil {
						return err
					}
					if _, err := s.Apply(e.ctx, e.app, []lease.Action{assign(fmt.Sprint(i), n+1, session)}); err != nil {
						return err
					}
				}
				return nil
			}
			for busy.Load() > 0 {
				v, err := s.View(e.ctx, e.app, "")
				if err != nil {
					return err
				}
				for _, l := range v.Leases {
					if l.Owner != "" && !slices.ContainsFunc(v.Workers, func(w lease.Worker) bool { return w.Session == l.Owner }) {
						return fmt.Errorf("%s, but its owner is not in the view", l)
					}
				}
			}
			return nil
		})
	}},
	{"views that build on earlier ones settle on the truth", func(e *env) {
		const writers, readers, rounds = 3, 3, 30
		for i := range writers {
			e.start(fmt.Sprint(i))
			e.must(create(fmt.Sprint(i)))
		}
		var cached [readers]lease.View
		see := func(i int, s lease.Store) error {
			v, err := s.View(e.ctx, e.app, cached[i].Revision)
			if err != nil {
				return err
			}
			if v.Same {
				v.Leases = cached[i].Leases
			}
			for _, old := range cached[i].Leases {
				for _, l := range v.Leases {
					if l.Key == old.Key && l.Epoch < old.Epoch {
						return fmt.Errorf("the view went back from %s to %s", old, l)
					}
				}
			}
			cached[i] = v
			return nil
		}
		for range 5 {
			var busy atomic.Int32
			busy.Store(writers)
			e.together(writers+readers, func(i int, s lease.Store) error {
				if i < writers {
					defer busy.Add(-1)
					session := fmt.Sprint(i)
					for range rounds / 5 {
						l, err := e.read(s, k(session))
						if err != nil {
							return err
						}
						if _, err = s.Apply(e.ctx, e.app, []lease.Action{assign(session, l.Epoch, session)}); err != nil {
							return err
						}
						r := lease.Report{Session: session, Progress: []lease.Progress{release(session, l.Epoch+1)}}
						if _, err = s.Heartbeat(e.ctx, e.app, r); err != nil {
							return err
						}
					}
					return nil
				}
				for busy.Load() > 0 {
					if err := see(i-writers, s); err != nil {
						return err
					}
				}
				return nil
			})
			want := ownership(e.view().Leases)
			for i := range readers {
				if err := see(i, e.store); err != nil {
					e.Fatal(err)
				}
				if got := ownership(cached[i].Leases); got != want {
					e.Fatalf("reader %d\n got %s\nwant %s", i, got, want)
				}
			}
		}
	}},
	{"racing workers and leaders keep one owner for each epoch and lose no checkpoint", func(e *env) { contest(e) }},
}

// together runs n goroutines, half of them with the other client, and waits for them. It fails if
// one of them returns an error.
func (e *env) together(n int, do func(i int, s lease.Store) error) {
	e.Helper()
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		s := e.store
		if i%2 == 1 {
			s = e.other
		}
		wg.Go(func() { errs[i] = do(i, s) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			e.Fatalf("goroutine %d: %v", i, err)
		}
	}
}

// read returns a lease through s.
func (e *env) read(s lease.Store, key lease.Key) (lease.Lease, error) {
	v, err := s.View(e.ctx, e.app, "")
	if err != nil {
		return lease.Lease{}, err
	}
	for _, l := range v.Leases {
		if l.Key == key {
			return l, nil
		}
	}
	return lease.Lease{}, fmt.Errorf("lease %s is not there", key)
}
