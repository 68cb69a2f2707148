package operate

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/lease"
)

// Outcome is the result of executing steps.
type Outcome struct {
	State map[lease.Key]State
	Done  int
	Left  int // not done: changed by others, or not reached
	Err   error
}

// State is the result of a step.
type State string

// These are the results of steps.
const (
	Done      State = "done"
	Unchanged State = "unchanged"
	Meanwhile State = "changed meanwhile"
	Left      State = "not done"
)

const (
	together   = 50               // number of steps per call of the store
	applyBound = 30 * time.Second // timeout of each call
	lookBound  = 8 * time.Second  // timeout of the check which steps were done
)

// CarryOut executes steps in order, several per call of the store. If progress is not nil, it calls
// progress with the number of further processed steps. Even if it is interrupted, the outcome
// contains the result of each step.
func CarryOut(ctx context.Context, store lease.Store, app string, steps []change.Step, progress func(steps int)) Outcome {
	out := Outcome{State: make(map[lease.Key]State, len(steps))}
	var doubt []change.Step
	for len(steps) > 0 {
		some := steps[:min(together, len(steps))]
		if out.Err = ctx.Err(); out.Err != nil {
			break
		}
		if out.Err = out.apply(ctx, store, app, some); out.Err != nil {
			doubt, steps = some, steps[len(some):]
			break
		}
		steps = steps[len(some):]
		if progress != nil {
			progress(len(some))
		}
	}
	if len(doubt) > 0 { // a store that does not answer may have executed them
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookBound)
		defer cancel()
		view, err := store.View(look, app, "")
		for _, s := range doubt {
			if out.State[s.Key] == "" {
				out.note(s, err == nil && s.Happened(view), Left)
			}
		}
	}
	for _, s := range steps {
		out.note(s, false, Left)
	}
	return out
}

func (o *Outcome) apply(ctx context.Context, store lease.Store, app string, steps []change.Step) error {
	ctx, cancel := context.WithTimeout(ctx, applyBound)
	defer cancel()
	var single []lease.Action
	var whose []change.Step
	for _, s := range steps {
		if len(s.Actions) == 1 {
			single, whose = append(single, s.Actions...), append(whose, s)
		}
	}
	if len(single) > 0 {
		did, err := store.Apply(ctx, app, single)
		if err != nil {
			return err
		}
		for i, s := range whose {
			o.note(s, did[i], Meanwhile)
		}
	}
	for _, s := range steps {
		happened := true
		// Each action needs the effect of the previous one.
		for i := 0; i < len(s.Actions) && len(s.Actions) > 1 && happened; i++ {
			did, err := store.Apply(ctx, app, s.Actions[i:i+1])
			if err != nil {
				return err
			}
			happened = did[0]
		}
		if len(s.Actions) != 1 {
			o.note(s, happened, Meanwhile)
		}
	}
	return nil
}

func (o *Outcome) note(s change.Step, happened bool, otherwise State) {
	switch {
	case len(s.Actions) == 0:
		o.State[s.Key] = Unchanged
	case happened:
		o.State[s.Key] = Done
		o.Done++
	default:
		o.State[s.Key] = otherwise
		o.Left++
	}
}
