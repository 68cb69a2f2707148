package operate

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-go/weir/lease"
)

// ErrPausedEnough says that as many streams of an application are paused as can be.
var ErrPausedEnough = errors.New("as many streams are paused as can be: pause the whole application instead")

// ErrWorkerEnded says that a worker ended before it could be drained.
var ErrWorkerEnded = errors.New("the worker ended meanwhile: there is nothing to drain")

// SetPause pauses a stream, "" for the whole application, or ends that. It reports whether that was
// a change from what was seen, and fails with [ErrPausedEnough] or as the store does.
func SetPause(ctx context.Context, store lease.Store, app string, seen lease.View, stream string, on bool) (changed bool, err error) {
	if slices.Contains(seen.Paused, stream) == on {
		return false, nil
	}
	did, err := store.Apply(ctx, app, []lease.Action{{Kind: lease.Pause, Stream: stream, On: on}})
	switch {
	case err != nil:
		return false, err
	case len(did) != 1 || !did[0]:
		return false, ErrPausedEnough
	}
	return true, nil
}

// SetDrain has workers, by their sessions, hand their leases to others, or ends that. It fails with
// [ErrWorkerEnded] when none of them is there any more, or as the store does.
func SetDrain(ctx context.Context, store lease.Store, app string, sessions []string, on bool) error {
	var actions []lease.Action
	for _, s := range sessions {
		actions = append(actions, lease.Action{Kind: lease.Drain, Session: s, On: on})
	}
	did, err := store.Apply(ctx, app, actions)
	switch {
	case err != nil:
		return err
	case !slices.Contains(did, true):
		return ErrWorkerEnded
	}
	return nil
}
