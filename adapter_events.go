package weir

import (
	"context"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
)

// stateKey identifies a state. If the queue is full, a change replaces a waiting change with the
// same stateKey.
type stateKey struct{ kind, stream, shard string }

// event is a pointer to the argument of a hook of [Events].
type event[E any] interface {
	*E
	// stamp sets the time of the event. It returns the stateKey of a change of state, and the zero
	// stateKey for other events.
	stamp(at time.Time) stateKey
}

// emit puts a call of a hook into the queue of the run. It does nothing if the hook is nil.
func emit[E any, P event[E]](a *adapter, hook func(context.Context, E), e E) {
	if hook == nil {
		return
	}
	told, ctx := e, a.run.Hooked() // a copy on the heap, which an event without a hook must not cost
	var state any
	if key := P(&told).stamp(time.Now()); key != (stateKey{}) {
		state = key
	}
	a.run.Emit(state, func() { hook(ctx, told) })
}

// The adapter is the engine's [run.User]: each method makes one event.

func (a *adapter) LeaseTaken(t *group.Term) {
	of := &t.Lease
	emit(a, a.opts.Events.LeaseTaken, LeaseTaken{Stream: of.Stream, Shard: of.Shard, Epoch: of.Epoch, From: of.Position})
}

func (a *adapter) LeaseEnded(t *group.Term, why group.EndReason) {
	of := &t.Lease
	emit(a, a.opts.Events.LeaseEnded, LeaseEnded{Stream: of.Stream, Shard: of.Shard, Epoch: of.Epoch, At: t.At(), Reason: EndReason(why)})
}

func (a *adapter) CheckpointSaved(t *group.Term, at Position, took time.Duration) {
	of := &t.Lease
	emit(a, a.opts.Events.CheckpointSaved, CheckpointSaved{Stream: of.Stream, Shard: of.Shard, Epoch: of.Epoch, At: at, Took: took})
}

func (a *adapter) StoreFailed(op string, err error, since time.Time) {
	emit(a, a.opts.Events.StoreFailed, StoreFailed{Op: StoreOp(op), Err: err, Since: since})
}

func (a *adapter) Leading(leads bool, term uint64) {
	emit(a, a.opts.Events.Leading, Leading{Leads: leads, Term: term})
}

func (a *adapter) Read(of lease.Key, page *source.Page) {
	emit(a, a.opts.Events.Read, Read{
		Stream: of.Stream, Shard: of.Shard, Records: len(page.Records), Bytes: page.Bytes, Took: page.Took, Behind: page.Behind, End: page.End,
	})
}

func (a *adapter) Unpacked(of lease.Key, c batch.Unpacked) {
	emit(a, a.opts.Events.Unpacked, Unpacked{
		Stream: of.Stream, Shard: of.Shard, Aggregates: c.Aggregates, Records: c.Records, Dropped: c.Dropped, Damaged: c.Damaged,
	})
}

func (a *adapter) Filtered(of lease.Key, dropped, notJSON int) {
	emit(a, a.opts.Events.Filtered, Filtered{Stream: of.Stream, Shard: of.Shard, Dropped: dropped, NotJSON: notJSON})
}

func (a *adapter) BatchBegins(of lease.Key, records, attempt int) {
	emit(a, a.opts.Events.BatchBegins, BatchBegins{Stream: of.Stream, Shard: of.Shard, Records: records, Attempt: attempt})
}

func (a *adapter) BatchHandled(of lease.Key, e shardrun.Handled) {
	emit(a, a.opts.Events.BatchHandled, BatchHandled{
		Stream: of.Stream, Shard: of.Shard, Records: e.Records, Bytes: e.Bytes, Behind: e.Behind, Took: e.Took, Attempts: e.Calls,
	})
}

func (a *adapter) HandlerFailed(of lease.Key, e shardrun.Failed) {
	emit(a, a.opts.Events.HandlerFailed, HandlerFailed{
		Stream: of.Stream, Shard: of.Shard, At: e.At, Records: e.Records, First: e.First, Last: e.Last, Err: e.Err, Attempt: e.Attempt, Next: e.Next,
	})
}

func (a *adapter) GivenUp(of lease.Key, e shardrun.GivenUp) {
	emit(a, a.opts.Events.GivenUp, GivenUp{
		Stream: of.Stream, Shard: of.Shard, Records: e.Records, First: e.First, Reason: e.Reason, Attempts: e.Attempts, Err: e.Err,
	})
}

func (a *adapter) GiveUpHeld(of lease.Key, records int, reason deadletter.Reason, why string) {
	emit(a, a.opts.Events.GiveUpHeld, GiveUpHeld{Stream: of.Stream, Shard: of.Shard, Records: records, Reason: reason, Why: why})
}

func (a *adapter) LettersFailed(of lease.Key, records int, e shardrun.Failed) {
	emit(a, a.opts.Events.LettersFailed, LettersFailed{
		Stream: of.Stream, Shard: of.Shard, Records: records, Err: e.Err, Attempt: e.Attempt, Next: e.Next,
	})
}

func (a *adapter) Suspected(of group.Held, d lease.Deaths, record string, next time.Duration) {
	emit(a, a.opts.Events.Suspected, Suspected{
		Stream: of.Stream, Shard: of.Shard, Epoch: of.Epoch, At: d.At, Record: record, Died: d.Count, Alone: d.Tried, Next: next,
	})
}

func (a *adapter) ReadFailed(of lease.Key, err error, throttled bool, next time.Duration) {
	emit(a, a.opts.Events.ReadFailed, ReadFailed{Stream: of.Stream, Shard: of.Shard, Err: err, Throttled: throttled, Next: next})
}

func (a *adapter) PositionExpired(of lease.Key, e source.Expiry) {
	emit(a, a.opts.Events.PositionExpired, PositionExpired{
		Stream: of.Stream, Shard: of.Shard, Position: e.At, Next: e.Next, From: e.From, To: e.To, Err: e.Err,
	})
}

func (a *adapter) ReadingChanged(of lease.Key, why error) {
	e := ReadingChanged{Stream: of.Stream, Shard: of.Shard, Active: why == nil, Err: why}
	emit(a, a.opts.Events.ReadingChanged, e)
}

func (a *adapter) Stalled(of group.Held, e shardrun.Stalled) {
	emit(a, a.opts.Events.Stalled, Stalled{
		Stream: of.Stream, Shard: of.Shard, Epoch: of.Epoch, Stage: ShardState(e.Stage), Since: e.Since, Err: e.Err, Abandoned: e.Abandoned,
	})
}

// Changes of state.

func (e *LeaseTaken) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"taken", e.Stream, e.Shard}
}
func (e *LeaseEnded) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"ended", e.Stream, e.Shard}
}
func (e *PositionExpired) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"expired", e.Stream, e.Shard}
}
func (e *ReadingChanged) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"reading", e.Stream, e.Shard}
}
func (e *Stalled) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"stalled", e.Stream, e.Shard}
}
func (e *Suspected) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"suspected", e.Stream, e.Shard}
}
func (e *StoreFailed) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"store", string(e.Op), ""}
}
func (e *Leading) stamp(t time.Time) stateKey { e.Time = t; return stateKey{kind: "leading"} }

// Events of detail.

func (e *Read) stamp(t time.Time) stateKey            { e.Time = t; return stateKey{} }
func (e *BatchBegins) stamp(t time.Time) stateKey     { e.Time = t; return stateKey{} }
func (e *BatchHandled) stamp(t time.Time) stateKey    { e.Time = t; return stateKey{} }
func (e *CheckpointSaved) stamp(t time.Time) stateKey { e.Time = t; return stateKey{} }
func (e *Unpacked) stamp(t time.Time) stateKey        { e.Time = t; return stateKey{} }
func (e *Filtered) stamp(t time.Time) stateKey        { e.Time = t; return stateKey{} }
func (e *HandlerFailed) stamp(t time.Time) stateKey   { e.Time = t; return stateKey{} }
func (e *GivenUp) stamp(t time.Time) stateKey         { e.Time = t; return stateKey{} }
func (e *GiveUpHeld) stamp(t time.Time) stateKey      { e.Time = t; return stateKey{} }
func (e *LettersFailed) stamp(t time.Time) stateKey   { e.Time = t; return stateKey{} }
func (e *ReadFailed) stamp(t time.Time) stateKey      { e.Time = t; return stateKey{} }
