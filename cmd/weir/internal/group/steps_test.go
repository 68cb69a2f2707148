package group

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// flaky is a store whose Apply fails from call number fails on. If after is true, Apply applies the
// actions before it fails.
type flaky struct {
	lease.Store
	calls, fails int
	after        bool
}

func (f *flaky) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	if f.calls++; f.calls < f.fails {
		return f.Store.Apply(ctx, app, actions)
	}
	if f.after {
		if _, err := f.Store.Apply(ctx, app, actions); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the store has had enough")
}

func creations(n int) (steps []change.Step) {
	for i := range n {
		k := lease.Key{Stream: "s", Shard: fmt.Sprint(i)}
		steps = append(steps, change.Step{Key: k, To: shard.Oldest, Actions: []lease.Action{
			{Kind: lease.Create, Lease: lease.Lease{Key: k, Epoch: 1, Position: shard.Oldest, Range: shard.HashRange{End: shard.MaxHashKey}}},
		}})
	}
	return steps
}

// The store fails at each possible point. The outcome must report which steps were done, and a
// second run must do the rest.
func TestCarryOut(t *testing.T) {
	for name, c := range map[string]struct {
		store      flaky
		done, left int
		says       string
	}{
		"nothing if the handler takes longer": {flaky{fails: 99}, 120, 0, ""},
		"the store fails at once":             {flaky{fails: 1}, 0, 120, "0 of 120 leases moved, then: the store has had enough; run the command again"},
		"the store fails in the middle":       {flaky{fails: 3}, 100, 20, "100 of 120 leases moved, then:"},
		"only the answer to it was lost":      {flaky{fails: 3, after: true}, 120, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.store.Store = memstore.New()
			store := stores.Store{Store: &c.store}
			steps := creations(120)
			out := carryOut(t.Context(), cli.Silent, store, "a", steps)
			if out.Done != c.done || out.Left != c.left || len(out.State) != 120 {
				t.Errorf("%d done, %d left, %d in all", out.Done, out.Left, len(out.State))
			}
			err := out.failure("moved")
			if (err == nil) != (c.says == "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			v, err := store.View(t.Context(), "a", "")
			if err != nil || len(v.Leases) != c.done {
				t.Errorf("%v, %d leases", err, len(v.Leases))
			}
			c.store.fails = 99
			if out := carryOut(t.Context(), cli.Silent, store, "a", steps); out.Done+c.done != 120 || out.Left != c.done {
				t.Errorf("again: %d done, %d left", out.Done, out.Left)
			}
		})
	}
}

// carryOut does not change a lease that has changed since the lease was read. The outcome names the
// lease.
func TestCarryOutWhatChangedMeanwhile(t *testing.T) {
	store := stores.Store{Store: memstore.New()}
	if out := carryOut(t.Context(), cli.Silent, store, "a", creations(3)); out.Done != 3 {
		t.Fatalf("%+v", out)
	}
	move := func(id string, epoch uint64) change.Step {
		k := lease.Key{Stream: "s", Shard: id}
		return change.Step{Key: k, To: shard.Latest, Actions: []lease.Action{{Kind: lease.Move, Key: k, Epoch: epoch, Position: shard.Latest}}}
	}
	anew := move("1", 7) // a step of several actions, of which the first fails
	anew.Actions = append(anew.Actions, lease.Action{Kind: lease.Delete, Key: anew.Key, Epoch: 1})
	out := carryOut(t.Context(), cli.Silent, store, "a", []change.Step{move("0", 1), anew, move("2", 7), {Key: lease.Key{Stream: "s", Shard: "9"}}})
	if err := out.failure("moved"); out.Done != 1 || out.Left != 2 || err == nil || !strings.Contains(err.Error(), "1 of 3 leases moved; the others changed") {
		t.Errorf("%+v, %v", out, err)
	}
	for id, want := range map[string]operate.State{"0": operate.Done, "1": operate.Meanwhile, "2": operate.Meanwhile, "9": operate.Unchanged} {
		if got := out.State[lease.Key{Stream: "s", Shard: id}]; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	v, err := store.View(t.Context(), "a", "")
	if err != nil || len(v.Leases) != 3 {
		t.Errorf("%v, %d leases are left of 3", err, len(v.Leases))
	}
}

func TestCarryOutInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(explain.ErrInterrupted)
	out := carryOut(ctx, cli.Silent, stores.Store{Store: memstore.New()}, "a", creations(3))
	if err := out.failure("moved"); out.Done != 0 || out.Left != 3 || err == nil || !strings.Contains(explain.Error(err), "0 of 3 leases moved, then: stopped before it was done") {
		t.Errorf("%+v, %v", out, err)
	}
}
