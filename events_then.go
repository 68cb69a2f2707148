package weir

import "context"

// Then returns functions that call those of e, then those of second, also if one of e panics: so
// several that count and the program's own can see the same consumer.
func (e Events) Then(second Events) Events {
	return Events{
		LeaseTaken:      then(e.LeaseTaken, second.LeaseTaken),
		LeaseEnded:      then(e.LeaseEnded, second.LeaseEnded),
		Read:            then(e.Read, second.Read),
		BatchBegins:     then(e.BatchBegins, second.BatchBegins),
		BatchHandled:    then(e.BatchHandled, second.BatchHandled),
		CheckpointSaved: then(e.CheckpointSaved, second.CheckpointSaved),
		Unpacked:        then(e.Unpacked, second.Unpacked),
		Filtered:        then(e.Filtered, second.Filtered),
		HandlerFailed:   then(e.HandlerFailed, second.HandlerFailed),
		GivenUp:         then(e.GivenUp, second.GivenUp),
		GiveUpHeld:      then(e.GiveUpHeld, second.GiveUpHeld),
		LettersFailed:   then(e.LettersFailed, second.LettersFailed),
		Suspected:       then(e.Suspected, second.Suspected),
		ReadFailed:      then(e.ReadFailed, second.ReadFailed),
		PositionExpired: then(e.PositionExpired, second.PositionExpired),
		ReadingChanged:  then(e.ReadingChanged, second.ReadingChanged),
		Stalled:         then(e.Stalled, second.Stalled),
		StoreFailed:     then(e.StoreFailed, second.StoreFailed),
		Leading:         then(e.Leading, second.Leading),
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
	return func(ctx context.Context, event E) {
		defer g(ctx, event)
		f(ctx, event)
	}
}
