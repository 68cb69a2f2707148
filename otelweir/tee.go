package otelweir

import (
	"context"

	"github.com/weir-go/weir"
)

// both are functions that call those of first, then those of second.
func both(first, second weir.Events) weir.Events {
	return weir.Events{
		LeaseTaken:      then(first.LeaseTaken, second.LeaseTaken),
		LeaseEnded:      then(first.LeaseEnded, second.LeaseEnded),
		Read:            then(first.Read, second.Read),
		BatchBegins:     then(first.BatchBegins, second.BatchBegins),
		BatchHandled:    then(first.BatchHandled, second.BatchHandled),
		CheckpointSaved: then(first.CheckpointSaved, second.CheckpointSaved),
		Unpacked:        then(first.Unpacked, second.Unpacked),
		Filtered:        then(first.Filtered, second.Filtered),
		HandlerFailed:   then(first.HandlerFailed, second.HandlerFailed),
		GivenUp:         then(first.GivenUp, second.GivenUp),
		GiveUpHeld:      then(first.GiveUpHeld, second.GiveUpHeld),
		LettersFailed:   then(first.LettersFailed, second.LettersFailed),
		Suspected:       then(first.Suspected, second.Suspected),
		ReadFailed:      then(first.ReadFailed, second.ReadFailed),
		PositionExpired: then(first.PositionExpired, second.PositionExpired),
		ReadingChanged:  then(first.ReadingChanged, second.ReadingChanged),
		Stalled:         then(first.Stalled, second.Stalled),
		StoreFailed:     then(first.StoreFailed, second.StoreFailed),
		Leading:         then(first.Leading, second.Leading),
	}
}

// then returns a function that calls f and g, of which either may be nil. g is called even if f
// panics: what counts must not depend on what others do.
func then[E any](f, g func(context.Context, E)) func(context.Context, E) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(ctx context.Context, e E) {
		defer g(ctx, e)
		f(ctx, e)
	}
}
