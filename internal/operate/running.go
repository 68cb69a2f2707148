package operate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
)

// ErrPausedEnough is returned if the maximum number of streams of an application is already paused.
var ErrPausedEnough = errors.New("the maximum number of streams is paused already: pause the whole application instead")

// ErrWorkerEnded is returned if a worker ended before it could be drained.
var ErrWorkerEnded = errors.New("the worker has ended, so there is nothing to drain")

// SetPause pauses a stream in the name of by, or ends its pause if on is false. If stream is "",
// this applies to the whole application. It returns false if the view seen already shows that
// state. It returns [ErrPausedEnough] or an error of the store.
func SetPause(ctx context.Context, store lease.Store, app string, seen lease.View, stream string, on bool, by string) (changed bool, err error) {
	if slices.Contains(seen.Paused, stream) == on {
		return false, nil
	}
	a := lease.Action{Kind: lease.Pause, Stream: stream, On: on}
	if on {
		a.Note = lease.PauseNote{By: by, At: time.Now()}.String()
	}
	did, err := store.Apply(ctx, app, []lease.Action{a})
	switch {
	case err != nil:
		return false, err
	case len(did) != 1 || !did[0]:
		return false, ErrPausedEnough
	}
	return true, nil
}

// SetDrain starts or stops draining the workers with these sessions. It returns [ErrWorkerEnded] if
// all of these workers have ended, or an error of the store.
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
