package weir

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/source"
)

// How the loop has keys be handled side by side, and what their handlers may ask for.

// takeParallel adds a page to what is handled side by side, and reports whether the shard has
// ended: then all of it is handled. It fails when the term is over or the lease is wanted back, and
// when the handler ends Run.
func (l *shardLoop) takeParallel(page source.Page) (over bool, err error) {
	defer page.Release() // what is added has a share of the memory of its own
	l.tellRead(&page)
	if end, some := l.noteArrival(&page); some {
		if err := l.addParallel(&page, end); err != nil {
			return false, err
		}
	}
	if !page.End {
		l.noteHandled(0, time.Now())
		return false, nil
	}
	if dispatcher := l.dispatcherNow(); dispatcher != nil {
		err := dispatcher.await(func() bool { return dispatcher.span.Len() == 0 })
		if err == nil {
			err = dispatcher.end()
		}
		if err != nil {
			return false, err
		}
	}
	if err := l.deliver(l.delivery(nil, &page, false, true, time.Time{})); err != nil {
		return false, err
	}
	l.enter(ShardEnding, 0, nil)
	return true, l.term.Finish(l.term.Context(), page.Children)
}

// addParallel adds the records of a page up to end, in parts that leave room for others. The last
// part reaches past what is dropped.
func (l *shardLoop) addParallel(page *source.Page, end Position) error {
	dispatcher := l.dispatcher
	if dispatcher == nil {
		dispatcher = l.newDispatcher()
	}
	unpack := newUnpacker(l.in.opts.Aggregates, l.term.Lease.Stream, l.term.Lease.Shard, l.term.Lease.Range, l.start())
	defer unpack.release()
	unpack.filter = l.filtering()
	defer unpack.filter.tell()
	again := unpack.unpacks(page) // the memory of runs is used again
	page.Keep()
	size := min(l.in.opts.Parallel.Span/8, 1000)
	added := false
	for run, isLast := range unpack.runs(page, batchSize{records: size}) {
		if again {
			run = slices.Clone(run)
			unpack.filter.detach(run)
		}
		upTo := Position{}
		if isLast {
			upTo, added = end, true
		}
		if err := dispatcher.add(run, page.Behind, upTo); err != nil {
			return err
		}
	}
	if !added {
		dispatcher.mu.Lock()
		dispatcher.span.Add(nil, 0, end, mono.Now(), nil)
		dispatcher.mu.Unlock()
	}
	if c, some := unpack.counted(); some {
		emit(l.in, l.in.opts.Events.Unpacked, c)
	}
	return nil
}

// leaveDispatcher lets go of the dispatcher when there is nothing to handle, so that an idle shard
// has none. It reports whether the loop may park; then one that is left wakes it when all is done.
func (l *shardLoop) leaveDispatcher() (parks bool, err error) {
	dispatcher := l.dispatcher
	if dispatcher == nil {
		return true, nil
	}
	dispatcher.mu.Lock()
	empty := dispatcher.span.Len() == 0
	dispatcher.parked = !empty && !dispatcher.stops
	stops := dispatcher.stops
	dispatcher.mu.Unlock()
	if empty || stops {
		err = dispatcher.end()
	}
	return err == nil && !stops, err
}

// lookAtDispatch is how what is handled side by side stands.
func (l *shardLoop) lookAtDispatch() (look dispatchLook) {
	if dispatcher := l.dispatcherNow(); dispatcher != nil {
		look = dispatcher.look()
	}
	return look
}

var errNotAllDone = errors.New("weir: the lease is wanted back before all is done that lies before the record")

// save waits until the position is saved, which it is after everything before it is done.
func (s *dispatcher) save(ctx context.Context, b *keyDelivery, use uint64, p Position) error {
	defer s.rest(b, use)()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.stopping, func() {
		if s.Mark().Compare(p) < 0 {
			cancel(errNotAllDone)
		}
	})()
	return s.l.term.AwaitSaved(ctx, p)
}
