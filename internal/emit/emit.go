// Package emit passes the events of a run to Options.OnEvent, through the queue of package notify.
package emit

import (
	"context"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/notify"
)

// Events passes events to one function. A nil *Events has no function. The methods may be called
// concurrently, and never wait for the function.
//
// Callers call [Events.On] first, so that they create no event that no function gets:
//
//	if ev := l.in.Events; ev.On() {
//		ev.Emit(event.Read{Time: time.Now(), ...})
//	}
type Events struct {
	pass    func(any) // calls the function with an event
	queue   *notify.Queue
	dropped func() // called when an event was dropped
}

// New returns Events that call to with ctx, through a queue. The queue's goroutine makes the calls.
// New returns nil if to is nil.
func New(ctx context.Context, to func(context.Context, event.Event), queue *notify.Queue, dropped func()) *Events {
	if to == nil {
		return nil
	}
	pass := func(e any) { to(ctx, e.(event.Event)) }
	return &Events{pass: pass, queue: queue, dropped: dropped}
}

// On reports whether a function gets the events.
func (e *Events) On() bool { return e != nil }

// Emit adds an event to the queue. If the queue is full, a change of state replaces a waiting
// change of the same state, and other events are dropped.
func (e *Events) Emit(ev event.Event) {
	if key, ok := stateOf(ev); ok {
		e.queue.Pass(notify.State, key, e.pass, ev)
	} else if !e.queue.Pass(notify.Detail, nil, e.pass, ev) {
		e.dropped()
	}
}

// state identifies a state of the worker or of a shard that events report.
type state struct{ kind, stream, shard string }

// stateOf returns the state that an event changes. It returns false for other events, which may be
// dropped. The comments of the events say which of them are changes of state.
func stateOf(e event.Event) (state, bool) {
	switch e := e.(type) {
	case event.LeaseTaken:
		return state{"lease taken", e.Stream, e.Shard}, true
	case event.LeaseEnded:
		return state{"lease ended", e.Stream, e.Shard}, true
	case event.Leading:
		return state{kind: "leading"}, true
	case event.FanOutChanged:
		return state{"fan-out", e.Stream, e.Shard}, true
	case event.Stalled:
		return state{"stalled", e.Stream, e.Shard}, true
	case event.Suspected:
		return state{"suspected", e.Stream, e.Shard}, true
	case event.StoreFailed:
		return state{kind: "store " + string(e.Op)}, true
	case event.PositionExpired:
		return state{"expired", e.Stream, e.Shard}, true
	}
	return state{}, false
}
