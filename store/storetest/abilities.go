package storetest

import (
	"context"
	"math/bits"
	"sync"
	"testing"

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
		equal(e, "after a beat", e.store.Abilities(), want)
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

// Wrapper is the contract of what wraps a store: wrap returns a wrapper of the store that it is given, as it is used where
// nothing goes wrong. The wrapper has to pass on which abilities the store has, whatever they are.
func Wrapper(t *testing.T, wrap func(lease.Store) lease.Store) {
	for _, want := range someAbilities() {
		if got := wrap(inner{abilities: want}).Abilities(); got != want {
			t.Errorf("the wrapper says that the abilities are %v, the store %v", got, want)
		}
	}
}

// someAbilities are none, each one, and all, also those that nobody knows yet.
func someAbilities() []lease.Abilities {
	some := []lease.Abilities{0, lease.AllAbilities, ^lease.Abilities(0)}
	for n := range bits.UintSize {
		some = append(some, 1<<n)
	}
	return some
}

// inner is a store that says what it is told to say, for wrappers.
type inner struct{ abilities lease.Abilities }

func (s inner) Abilities() lease.Abilities { return s.abilities }

func (s inner) Beat(context.Context, string, lease.Report) (lease.Orders, error) {
	return lease.Orders{}, nil
}

func (s inner) View(context.Context, string, string) (lease.View, error) { return lease.View{}, nil }

func (s inner) Apply(_ context.Context, _ string, a []lease.Action) ([]bool, error) {
	return make([]bool, len(a)), nil
}

func (s inner) Lead(context.Context, string, string, uint64) (bool, error) { return false, nil }

func (s inner) Leave(context.Context, string, lease.Report) error { return nil }
