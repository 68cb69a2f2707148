package operate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

func view(t *testing.T, store lease.Store) lease.View {
	t.Helper()
	v, err := store.View(t.Context(), "a", "")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAPauseIsAChangeOnce(t *testing.T) {
	store := memstore.New()
	for i, c := range []struct {
		stream      string
		on, changes bool
	}{{"", true, true}, {"", true, false}, {"s", true, true}, {"", false, true}, {"", false, false}} {
		changed, err := operate.SetPause(t.Context(), store, "a", view(t, store), c.stream, c.on, "ada")
		if err != nil || changed != c.changes {
			t.Errorf("%d: %v, %v", i, changed, err)
		}
	}
	if p := view(t, store).Paused; len(p) != 1 || p[0] != "s" {
		t.Errorf("paused is %q", p)
	}
	for i := range lease.MaxPaused {
		if _, err := operate.SetPause(t.Context(), store, "a", view(t, store), fmt.Sprint(i), true, "ada"); err != nil {
			if i != lease.MaxPaused-1 || !errors.Is(err, operate.ErrPausedEnough) {
				t.Fatalf("%d: %v", i, err)
			}
			return
		}
	}
	t.Error("more streams are paused than can be")
}

func TestADrainIsOfALivingWorker(t *testing.T) {
	store := memstore.New()
	if err := operate.SetDrain(t.Context(), store, "a", []string{"w1"}, true); !errors.Is(err, operate.ErrWorkerEnded) {
		t.Errorf("of nobody: %v", err)
	}
	if _, err := store.Heartbeat(t.Context(), "a", lease.Report{Session: "w1", First: true}); err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{true, false} {
		if err := operate.SetDrain(t.Context(), store, "a", []string{"gone", "w1"}, on); err != nil || view(t, store).Workers[0].Drain != on {
			t.Errorf("%v: %v", on, err)
		}
	}
}

// flaky is a store whose Apply fails from call number fails on. If after is true, Apply applies the
// actions before it fails.
type flaky struct {
	lease.Store
	calls, fails int
	after        bool
}

func (f *flaky) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	f.calls++
	if f.calls < f.fails || f.after {
		if did, err := f.Store.Apply(ctx, app, actions); err != nil || f.calls < f.fails {
			return did, err
		}
	}
	return nil, errors.New("the store has had enough")
}

// However CarryOut is interrupted, the outcome shows for each step whether it is done.
func TestTheOutcomeSaysWhatWasDone(t *testing.T) {
	var steps []change.Step
	for i := range 120 {
		k := lease.Key{Stream: "s", Shard: fmt.Sprint(i)}
		steps = append(steps, change.Step{Key: k, To: shard.Oldest, Actions: []lease.Action{
			{Kind: lease.Create, Lease: lease.Lease{Key: k, Epoch: 1, Position: shard.Oldest, Range: shard.HashRange{End: shard.MaxHashKey}}},
		}})
	}
	for name, c := range map[string]struct {
		store      flaky
		done, left int
	}{
		"all is well":                    {flaky{fails: 99}, 120, 0},
		"the store fails in the middle":  {flaky{fails: 3}, 100, 20},
		"only the answer to it was lost": {flaky{fails: 3, after: true}, 120, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.store.Store = memstore.New()
			through := 0
			out := operate.CarryOut(t.Context(), &c.store, "a", steps, func(n int) { through += n })
			if out.Done != c.done || out.Left != c.left || len(out.State) != 120 || len(view(t, c.store.Store).Leases) != c.done {
				t.Errorf("%d done, %d left, %d in all", out.Done, out.Left, len(out.State))
			}
			if (out.Err == nil) != (c.store.fails == 99) || through > c.done {
				t.Errorf("%v after %d", out.Err, through)
			}
		})
	}
}
