package storetest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/weir-go/weir/internal/filled"
	"github.com/weir-go/weir/lease"
)

var abilityCases = []testCase{
	{"abilities are the same for each client, at any time", func(e *env) {
		want := e.store.Abilities()
		if unknown := want &^ lease.AllAbilities; unknown != 0 {
			e.Errorf("there are no such abilities: %v", unknown)
		}
		equal(e, "of another client", e.other.Abilities(), want)
		e.start("a")
		equal(e, "after a heartbeat", e.store.Abilities(), want)
		var asking sync.WaitGroup
		for range 8 {
			asking.Go(func() {
				for range 100 {
					if got := e.store.Abilities(); got != want {
						e.Errorf("asked by several at once it answers %v, not %v", got, want)
						return
					}
				}
			})
		}
		e.beat("a")
		asking.Wait()
	}},
}

// Wrapper tests a wrapper of a store. wrap returns a wrapper of its argument. In this test, the
// wrapper must not make calls fail. It must pass on all abilities of the store, and every field of
// its arguments and results, including unknown fields.
func Wrapper(t testing.TB, wrap func(lease.Store) lease.Store) {
	t.Helper()
	ctx := t.Context()
	for _, want := range someAbilities() {
		if got := wrap(&inner{abilities: want}).Abilities(); got != want {
			t.Errorf("the abilities are %v in the wrapper and %v in the store", got, want)
		}
	}
	s := &inner{orders: filled.Value[lease.Orders](t), view: filled.Value[lease.View](t)}
	w := wrap(s)
	report, actions := filled.Value[lease.Report](t), []lease.Action{filled.Value[lease.Action](t)}
	same := func(what string, err error, got, want any) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s, %v\n got %+v\nwant %+v", what, err, got, want)
		}
	}
	orders, err := w.Heartbeat(ctx, "app", report)
	same("the report of Heartbeat, as the store gets it", err, s.report, report)
	same("the orders of Heartbeat", err, orders, s.orders)
	view, err := w.View(ctx, "app", "revision")
	same("the view", err, view, s.view)
	same("since, as the store gets it", err, s.since, "revision")
	did, err := w.Apply(ctx, "app", actions)
	same("the actions of Apply, as the store gets them", err, s.actions, actions)
	same("the answer of Apply", err, did, []bool{true})
	won, err := w.Lead(ctx, "app", "session", 7)
	same("the answer of Lead", err, won, true)
	same("the arguments of Lead, as the store gets them", err, s.led, "session 7")
	s.report = lease.Report{}
	err = w.Leave(ctx, "app", report)
	same("the report of Leave, as the store gets it", err, s.report, report)
}

// someAbilities returns the empty set, each single ability, and all abilities, including unknown
// ones.
func someAbilities() []lease.Abilities {
	some := []lease.Abilities{0, lease.AllAbilities, ^lease.Abilities(0)}
	for n := range 64 {
		some = append(some, 1<<n)
	}
	return some
}

// inner is the store inside a wrapper. It records its arguments and returns prepared answers.
type inner struct {
	abilities  lease.Abilities
	orders     lease.Orders
	view       lease.View
	report     lease.Report
	actions    []lease.Action
	since, led string
}

func (s *inner) Abilities() lease.Abilities { return s.abilities }

func (s *inner) Heartbeat(_ context.Context, _ string, r lease.Report) (lease.Orders, error) {
	s.report = r
	return s.orders, nil
}

func (s *inner) View(_ context.Context, _, since string) (lease.View, error) {
	s.since = since
	return s.view, nil
}

func (s *inner) Apply(_ context.Context, _ string, a []lease.Action) ([]bool, error) {
	s.actions = a
	return slices.Repeat([]bool{true}, len(a)), nil
}

func (s *inner) Lead(_ context.Context, _, session string, term uint64) (bool, error) {
	s.led = fmt.Sprint(session, " ", term)
	return true, nil
}

func (s *inner) Leave(_ context.Context, _ string, r lease.Report) error {
	s.report = r
	return nil
}
