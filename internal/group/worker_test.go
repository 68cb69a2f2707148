package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// quietWorker returns a worker that has its own store and is not running.
func quietWorker() *worker {
	return newWorker(Config{
		Host:  new(HostFuncs),
		Store: memstore.New(), App: "app", Worker: "w", Times: lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

func TestBeatsSayTheWorkersTimes(t *testing.T) {
	w := quietWorker()
	if r, _ := w.report(); r.Times != w.cfg.Times || r.Times == (lease.Times{}) || !r.First {
		t.Errorf("the first heartbeat says %v, the worker has %v", r.Times, w.cfg.Times)
	}
}

// A reader may return its error right after the loop checked for errors. The same heartbeat then
// releases the lease, and the term is dropped. Run must still end with the error.
func TestAnErrorOfATermThatIsDroppedIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorker()
		defer w.running.Wait()
		defer w.validity.end(ErrLeaseLost)
		asked := errors.New("the handler asked to stop")
		l := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Owner: w.session, Position: shard.Oldest}
		w.validity.extend(time.Now())
		funcsOf(w.cfg).OnRead = func(*Term) error { return asked }
		w.startTerm(l)
		synctest.Wait() // the reader has returned
		_, sent := w.report()
		w.take(lease.Orders{}, sent, 0) // released, so the orders lack it
		if len(w.terms) != 0 {
			t.Fatal("the term is still there")
		}
		if err := w.findFatal(); !errors.Is(err, asked) {
			t.Errorf("what ends Run is %v, want what the reader returned", err)
		}
	})
}

// If a reader gave up its shard just as its lease expired, it is not started again.
func TestAShardThatWasGivenUpIsNotBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorker()
		defer w.running.Wait()
		defer w.validity.end(ErrLeaseLost)
		l := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Owner: w.session, Position: shard.Oldest}
		w.validity.extend(time.Now())
		funcsOf(w.cfg).OnRead = func(t *Term) error {
			t.validity.end(ErrLeaseLost)
			t.GiveUp(nil)
			return nil
		}
		w.startTerm(l)
		_, sent := w.report() // the reader has not returned yet
		term := w.terms[l.Key]
		synctest.Wait()
		w.take(lease.Orders{Held: []lease.Lease{l}}, sent, 0)
		if w.terms[l.Key] != term {
			t.Error("it was begun again")
		}
		r, _ := w.report()
		if len(r.Progress) != 1 || !r.Progress[0].Release || !r.Progress[0].Stalled {
			t.Errorf("the next heartbeat says %+v", r.Progress)
		}
	})
}

// After an outage in which leases expired, the first orders may request a lease back. The lease's
// reader has returned and is not started again. The next heartbeat releases the lease at the
// handler's position, without waiting for the handoff timeout.
func TestALeaseThatIsWishedAwayAfterAnOutageGoesBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorker()
		defer w.running.Wait()
		defer w.validity.end(ErrLeaseLost)
		l := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Owner: w.session, Position: shard.Oldest}
		at, err := shard.After("7")
		if err != nil {
			t.Fatal(err)
		}
		w.validity.extend(time.Now())
		funcsOf(w.cfg).OnRead = func(t *Term) error {
			t.Advance(at)
			<-t.Context().Done()
			return nil
		}
		w.startTerm(l)
		time.Sleep(6 * time.Second) // no heartbeat succeeds
		_, sent := w.report()
		w.validity.extend(time.Now())
		for len(w.poked) > 0 {
			<-w.poked
		}
		l.Heir = "other"
		w.take(lease.Orders{Held: []lease.Lease{l}}, sent, 0)
		if len(w.poked) == 0 {
			t.Error("no heartbeat is due")
		}
		r, _ := w.report()
		if len(r.Progress) != 1 || !r.Progress[0].Release || r.Progress[0].Stalled {
			t.Errorf("the next heartbeat says %+v, want the lease to go back", r.Progress)
		}
		if p := sent[w.terms[l.Key]]; p.Position != at || p.Release {
			t.Errorf("the heartbeat before says %+v, want the position %s", p, at)
		}
	})
}

// A leader that could not reach the store because of an outage does not resign.
func TestAnOutageIsNoReasonToStepDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorker()
		defer w.validity.end(ErrLeaseLost)
		w.beat(t.Context())
		w.endLeadership()
		synctest.Wait()
		lead := &leadership{cfg: w.cfg, cancel: func() {}, done: make(chan struct{}), lastOK: time.Now()}
		w.lead = lead
		time.Sleep(6 * time.Second)
		w.outage = time.Now().Add(-4 * time.Second)
		if w.beat(t.Context()); w.lead != lead {
			t.Error("it stepped down after an outage")
		}
		time.Sleep(6 * time.Second)
		if w.beat(t.Context()); w.lead == lead {
			t.Error("it did not step down though the store answered")
		}
		w.endLeadership()
	})
}

// A store that returns unsorted orders violates the contract. The worker still must not treat its
// leases as lost.
func TestOrdersThatAreNotSortedLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(Config{
			Store: memstore.New(), App: "app", Worker: "w", Times: lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second},
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Host: &HostFuncs{OnRead: func(t *Term) error { <-t.Reading().Done(); return nil }},
		})
		defer w.running.Wait()
		defer w.validity.end(ErrLeaseLost)
		w.validity.extend(time.Now())
		for range 2 {
			var held []lease.Lease
			for _, id := range []string{"3", "1", "4", "2"} {
				held = append(held, lease.Lease{Key: lease.Key{Stream: "s", Shard: id}, Epoch: 2, Owner: w.session, Position: shard.Oldest})
			}
			w.take(lease.Orders{Held: held}, nil, 0)
		}
		for key, term := range w.terms {
			if term.state().lost || term.Context().Err() != nil {
				t.Errorf("%s is lost", key)
			}
		}
		if len(w.terms) != 4 {
			t.Errorf("%d terms of 4", len(w.terms))
		}
	})
}

// unprepared is a store whose tables are missing for a while.
type unprepared struct {
	lease.Store
	from, until time.Time
}

func (s *unprepared) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if now := time.Now(); !now.Before(s.from) && now.Before(s.until) {
		return lease.Orders{}, fmt.Errorf("%w: there are no tables", lease.ErrSetup)
	}
	return s.Store.Heartbeat(ctx, app, r)
}

// If tables are missing from the start, Run ends with an error. If they disappear later, it is an
// outage.
func TestMissingTablesAreNoOutage(t *testing.T) {
	for after, want := range map[time.Duration]struct {
		setup bool
		log   string
	}{0: {true, ""}, 10 * time.Second: {false, "the store does not answer"}} {
		synctest.Test(t, func(t *testing.T) {
			var said strings.Builder
			failed := 0
			w := newWorker(Config{
				Store: &unprepared{memstore.New(), time.Now().Add(after), time.Now().Add(20 * time.Second)}, App: "app", Worker: "w",
				Times: lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second, Handoff: time.Second},
				Log:   slog.New(slog.NewTextHandler(&said, nil)), Host: &HostFuncs{OnFailed: func(event.StoreOp, error, time.Time) { failed++ }},
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := w.run(ctx)
			if errors.Is(err, lease.ErrSetup) != want.setup || (failed == 0) != want.setup || !strings.Contains(said.String(), want.log) || (want.log == "" && said.Len() > 0) {
				t.Errorf("missing after %v: Run ended with %v, %d failures were told, and the log says %q", after, err, failed, &said)
			}
		})
	}
}

// silentUntil is a store whose heartbeats fail for a while.
type silentUntil struct {
	lease.Store
	until time.Time
}

var errSilent = errors.New("no route to the store")

func (s *silentUntil) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if time.Now().Before(s.until) {
		return lease.Orders{}, errSilent
	}
	return s.Store.Heartbeat(ctx, app, r)
}

// If Run is stopped before the store has answered any heartbeat, Run returns the error of the
// heartbeats that failed. It returns nil if no heartbeat was sent.
func TestARunThatNeverBeganSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		silent, runs time.Duration
		want         error
	}{
		"stopped before the store answered":              {time.Hour, 3 * time.Second, errSilent},
		"stopped before it was asked":                    {time.Hour, 0, nil},
		"stopped when it had answered after some errors": {2 * time.Second, 10 * time.Second, nil},
		"stopped when it had answered at once":           {0, 3 * time.Second, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.runs)
			defer cancel()
			err := newWorker(Config{
				Host:  new(HostFuncs),
				Store: &silentUntil{memstore.New(), time.Now().Add(c.silent)}, App: "app", Worker: "w",
				Times: lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second, Handoff: time.Second},
				Log:   slog.New(slog.DiscardHandler),
			}).run(ctx)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: Run ended with %v, want %v", name, err, c.want)
			}
		})
	}
}

func TestBeatsThatFailAreRepeatedSooner(t *testing.T) {
	for _, c := range []struct {
		failures    int
		leasesValid bool
		want        time.Duration
	}{{1, true, 250}, {2, true, 500}, {3, true, 500}, {99, true, 500}, {1, false, 250}, {2, false, 500}, {3, false, 1000}, {99, false, 1000}} {
		if got := retryAfter(time.Second, c.failures, c.leasesValid); got != c.want*time.Millisecond {
			t.Errorf("%d failures, leases valid: %t: %v, want %v ms", c.failures, c.leasesValid, got, int(c.want))
		}
	}
}

// Operations on many terms happen in the order of their shards. The same events therefore have the
// same history for any order of a map.
func TestTermsAreInTheOrderOfTheirShards(t *testing.T) {
	terms := map[lease.Key]*Term{}
	var want []lease.Key
	for _, stream := range []string{"a", "b"} {
		for i := range 20 {
			key := lease.Key{Stream: stream, Shard: fmt.Sprintf("%02d", i)}
			want = append(want, key)
			terms[key] = &Term{Lease: Held{Key: key}}
		}
	}
	var got []lease.Key
	for _, term := range (&worker{terms: terms}).sorted() {
		got = append(got, term.Lease.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v", got)
	}
}
