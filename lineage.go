package weir

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
)

// lineage is what shards descend from and where they begin, as far as sinks have to be asked about
// it.
type lineage struct {
	busy chan struct{} // has one element while nobody looks

	// Of whoever took the element.
	streams map[string]map[string]lease.Lease // by stream and shard
	seen    time.Time                         // when the leases were read
	firsts  map[lease.Key]firstNumbers        // by stream

	mu        lock.Mutex[lock.Lineage]
	inquiries map[inquiry]*answered
	failing   time.Time // since when the store does not say which leases there are; zero when it did the last time
}

// inquiry names a question about a shard that its descendants ask when they begin.
type inquiry struct {
	what string
	of   lease.Key
}

// answered is an inquiry, and what came of it once done is closed.
type answered struct {
	asked time.Time
	done  chan struct{}
	value any
	err   error
}

// inquired answers an inquiry with what was found out at some time since began, be it for another
// descendant of the shard, which may still be about it. Failures are whoever's met them: the others
// ask themselves.
func inquired[T any](ctx context.Context, n *lineage, q inquiry, began time.Time, ask func() (T, error)) (T, error) {
	for {
		n.mu.Lock()
		known := n.inquiries[q]
		if known == nil || known.asked.Before(began) {
			break
		}
		n.mu.Unlock()
		select {
		case <-known.done:
		case <-ctx.Done():
			return *new(T), context.Cause(ctx)
		}
		if v, ok := known.value.(T); ok && known.err == nil {
			return v, nil
		}
	}
	mine := &answered{asked: time.Now(), done: make(chan struct{}), err: errGoexit}
	n.inquiries[q] = mine
	n.mu.Unlock()
	defer func() {
		if mine.err != nil {
			n.mu.Lock()
			if n.inquiries[q] == mine {
				delete(n.inquiries, q)
			}
			n.mu.Unlock()
		}
		close(mine.done)
	}()
	v, err := ask()
	mine.value, mine.err = v, err
	return v, err
}

// keptFor is how long answers are kept at least.
const keptFor = time.Minute

// forget forgets answers that nobody who begins now could use.
func (n *lineage) forget(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.inquiries, func(_ inquiry, a *answered) bool { return now.Sub(a.asked) > keptFor })
}

// firstNumbers are the first sequence numbers of a stream's shards.
type firstNumbers struct {
	born    int64 // of the stream
	numbers map[string]string
}

func newLineage() *lineage {
	n := &lineage{busy: make(chan struct{}, 1), inquiries: map[inquiry]*answered{}}
	n.busy <- struct{}{}
	return n
}

// take waits for the others who look, so that one call serves all shards that begin at a time.
func (n *lineage) take(ctx context.Context) error {
	select {
	case <-n.busy:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leases returns the leases of a shard's stream by shard, as they were at some time after began: a
// parent that was unfinished before that may be finished. The caller does not change them.
func (n *lineage) leases(ctx context.Context, r *run, of lease.Key, began time.Time) (map[string]lease.Lease, error) {
	if err := n.take(ctx); err != nil {
		return nil, err
	}
	defer func() { n.busy <- struct{}{} }()
	if !n.seen.After(began) {
		if err := n.look(ctx, r); err != nil {
			return nil, &lookupError{fmt.Errorf("weir: looking for the ancestors of %s: %w", of, err)}
		}
	}
	if _, known := n.streams[of.Stream][of.Shard]; !known {
		return nil, fmt.Errorf("weir: the lease of %s is not there any more", of)
	}
	return n.streams[of.Stream], nil
}

// look asks the store which leases there are. It is for who took the element.
func (n *lineage) look(ctx context.Context, r *run) error {
	call, cancel := context.WithTimeout(ctx, r.opts.FailoverAfter)
	defer cancel()
	seen := time.Now()
	view, err := r.store.View(call, r.opts.App, "")
	if err != nil && ctx.Err() != nil { // nobody wants to know any more
		return err
	}
	n.mu.Lock()
	switch {
	case err == nil:
		n.failing = time.Time{}
	case n.failing.IsZero():
		n.failing = seen
	}
	n.mu.Unlock()
	if err != nil {
		return err
	}
	n.forget(seen)
	n.seen, n.streams = seen, map[string]map[string]lease.Lease{}
	for _, l := range view.Leases {
		if n.streams[l.Stream] == nil {
			n.streams[l.Stream] = map[string]lease.Lease{}
		}
		n.streams[l.Stream][l.Shard] = l
	}
	return nil
}

// inVain reports whether looking has failed for so long, and since when. A worker of which that is
// true can begin no shard.
func (n *lineage) inVain(now time.Time, least time.Duration) (since time.Time, some bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failing, !n.failing.IsZero() && now.Sub(n.failing) >= least
}

// probe looks again where that failed.
func (n *lineage) probe(ctx context.Context, r *run) error {
	if _, some := n.inVain(time.Now(), 0); !some {
		return nil
	}
	if err := n.take(ctx); err != nil {
		return err
	}
	defer func() { n.busy <- struct{}{} }()
	if err := n.look(ctx, r); err != nil {
		return fmt.Errorf("weir: asking the store which leases there are, without which no shard can be begun at the sink's position: %w", err)
	}
	return nil
}

// firstNumber returns the first sequence number of a shard, "" if the stream does not say.
func (n *lineage) firstNumber(ctx context.Context, r *run, of lease.Lease) (string, error) {
	if err := n.take(ctx); err != nil {
		return "", err
	}
	defer func() { n.busy <- struct{}{} }()
	stream := lease.Key{Stream: of.Stream}
	known := n.firsts[stream]
	if first, here := known.numbers[of.Shard]; here && known.born == of.Born {
		return first, nil
	}
	numbers, err := streams.FirstNumbers(ctx, r.client, r.streams.Stream(of.Stream))
	if err != nil {
		return "", &lookupError{fmt.Errorf("weir: looking for the beginning of %s: %w", of.Key, err)}
	}
	if n.firsts == nil {
		n.firsts = map[lease.Key]firstNumbers{}
	}
	n.firsts[stream] = firstNumbers{of.Born, numbers}
	return numbers[of.Shard], nil
}
