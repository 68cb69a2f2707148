// Package event contains the events of a weir consumer, for metrics, alerts and tests.
//
// weir.Options.OnEvent receives them. A type switch selects the events that a program needs:
//
//	options.OnEvent = func(ctx context.Context, e event.Event) {
//		switch e := e.(type) {
//		case event.LeaseTaken:
//			log.Print("reading ", e.Shard)
//		case event.DeadLettered:
//			alert(e.Stream, e.Records, e.Err)
//		}
//	}
//
// [On] makes a function for events of one type, and [Join] combines several functions. A later
// version of weir may add events, so a type switch should ignore events of other types.
//
// # Order and calls
//
// Each Run of a consumer has one goroutine that calls OnEvent, and the logger, one event after the
// other, in the order in which the events happened. Time is when the event happened, not when
// OnEvent is called. A slow function delays only other events and the log.
//
// If the function does not keep up, events are dropped, except changes of state: events whose
// comments say so, such as [LeaseTaken] and [Stalled]. Of these, the latest of each type and shard
// always arrives, and replaces an earlier one that is still waiting. weir.Consumer.Counts has exact
// numbers, and how many events were dropped or replaced. A log line reports when the dropping
// begins.
//
// Events are values. They contain no pointers to memory of weir, so a function may keep them.
package event

import "context"

// Event is one of the types of this package. Only this package has types that implement it.
type Event interface{ isEvent() }

// Join returns a function that calls all fns in order with each event. It skips functions that are
// nil. If a function panics, Join calls the functions after it, and then the panic continues. Join
// returns nil if all functions are nil, so that weir need not make events that no function gets.
func Join(fns ...func(context.Context, Event)) func(context.Context, Event) {
	var joined func(context.Context, Event)
	for _, next := range fns {
		first := joined
		switch {
		case next == nil:
		case first == nil:
			joined = next
		default:
			joined = func(ctx context.Context, e Event) {
				defer next(ctx, e)
				first(ctx, e)
			}
		}
	}
	return joined
}

// On returns a function that calls fn with the events of type E and ignores all others. It returns
// nil if fn is nil.
func On[E Event](fn func(context.Context, E)) func(context.Context, Event) {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context, e Event) {
		if e, ok := e.(E); ok {
			fn(ctx, e)
		}
	}
}
