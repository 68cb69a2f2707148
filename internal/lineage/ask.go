// Package lineage decides at which position reading of a shard begins if the application has a
// sink. It also finds ancestors that must be read again first, because the sink is behind in them.
// It looks up leases, first sequence numbers and the sink's positions in ancestors once for all
// shards of a worker that begin at the same time.
package lineage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/lease"
)

// Lineage caches leases, first sequence numbers and the sink's answers about ancestors. All shards
// of a run share one Lineage.
type Lineage struct {
	view  func(ctx context.Context) (lease.View, error)
	first func(ctx context.Context, stream string) (map[string]string, error)

	busy chan struct{} // contains an element while no lookup is running

	// The goroutine that took the element from busy owns the following fields.
	streams map[string]map[string]lease.Lease // by stream and shard
	seen    time.Time                         // when the leases were read
	firsts  map[string]firstNumbers           // by stream

	mu        lock.Mutex[lock.Lineage] // guards the fields below
	inquiries map[inquiry]*answered
	failing   time.Time // when View began to fail; zero if its last call succeeded
}

// New returns a Lineage. view returns the leases of the application. first returns the first
// sequence numbers of a stream's shards.
func New(
	view func(context.Context) (lease.View, error), first func(context.Context, string) (map[string]string, error),
) *Lineage {
	n := &Lineage{
		view: view, first: first, busy: make(chan struct{}, 1),
		inquiries: map[inquiry]*answered{}, firsts: map[string]firstNumbers{},
	}
	n.busy <- struct{}{}
	return n
}

// LookupError is returned if the store or Kinesis did not return data that is required before a
// shard is opened.
type LookupError struct{ Err error }

func (e *LookupError) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *LookupError) Unwrap() error { return e.Err }

// inquiry identifies a question about a shard. The descendants of the shard need the answer when
// they begin.
type inquiry struct {
	what string
	of   lease.Key
}

// answered is an inquiry and its result. The result is set when done is closed.
type answered struct {
	asked time.Time
	done  chan struct{}
	value any
	err   error
}

// errUnanswered is the result of an inquiry whose function ended its goroutine.
var errUnanswered = errors.New("weir: the function ended its goroutine")

// inquired returns an answer that is not older than began. It uses the answer to the same inquiry
// of another descendant, and waits for that answer if necessary. If there is no such answer, it
// calls ask. An error is only returned to the caller whose own call failed; other callers ask
// again.
func inquired[T any](ctx context.Context, n *Lineage, q inquiry, began time.Time, ask func() (T, error)) (T, error) {
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
	mine := &answered{asked: time.Now(), done: make(chan struct{}), err: errUnanswered}
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

// keptFor is the minimum time for which answers are kept.
const keptFor = time.Minute

// forget drops the answers that are too old for any shard that begins now.
func (n *Lineage) forget(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.inquiries, func(_ inquiry, a *answered) bool { return now.Sub(a.asked) > keptFor })
}

// firstNumbers contains the first sequence numbers of a stream's shards.
type firstNumbers struct {
	born    int64 // creation time of the stream
	numbers map[string]string
}

// take takes the element from busy. It waits while the lookup of another shard runs, so that one
// call serves all shards that begin at the same time.
func (n *Lineage) take(ctx context.Context) error {
	select {
	case <-n.busy:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leases returns the leases of a shard's stream by shard. If the cached leases are older than
// began, it reads them again, because a parent may have been finished just before began. The caller
// must not change the map.
func (n *Lineage) leases(ctx context.Context, of lease.Key, began time.Time) (map[string]lease.Lease, error) {
	if err := n.take(ctx); err != nil {
		return nil, err
	}
	defer func() { n.busy <- struct{}{} }()
	if !n.seen.After(began) {
		if err := n.look(ctx); err != nil {
			return nil, &LookupError{fmt.Errorf("weir: looking for the ancestors of %s: %w", of, err)}
		}
	}
	if _, known := n.streams[of.Stream][of.Shard]; !known {
		return nil, fmt.Errorf("weir: the lease of %s no longer exists", of)
	}
	return n.streams[of.Stream], nil
}

// Ended returns the finished leases of a shard's parents. They are not older than began.
func (n *Lineage) Ended(ctx context.Context, of lease.Key, began time.Time) (ended []lease.Lease, err error) {
	leases, err := n.leases(ctx, of, began)
	if err != nil {
		return nil, err
	}
	for _, id := range leases[of.Shard].Parents {
		if parent, here := leases[id]; here && parent.Finished() {
			ended = append(ended, parent)
		}
	}
	return ended, nil
}

// look reads the leases from the store. The caller must have taken the element of busy.
func (n *Lineage) look(ctx context.Context) error {
	seen := time.Now()
	view, err := n.view(ctx)
	if err != nil && ctx.Err() != nil { // the caller ended the call; the store has not failed
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

// Fails reports whether reading leases has failed for at least the given time, and since when. A
// worker in this state cannot begin a shard.
func (n *Lineage) Fails(now time.Time, least time.Duration) (since time.Time, fails bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failing, !n.failing.IsZero() && now.Sub(n.failing) >= least
}

// Probe reads the leases again if the last read failed.
func (n *Lineage) Probe(ctx context.Context) error {
	if _, fails := n.Fails(time.Now(), 0); !fails {
		return nil
	}
	if err := n.take(ctx); err != nil {
		return err
	}
	defer func() { n.busy <- struct{}{} }()
	if err := n.look(ctx); err != nil {
		return fmt.Errorf("weir: reading the leases from the store, which is needed before a shard can begin at the sink's position: %w", err)
	}
	return nil
}

// firstNumber returns the first sequence number of a shard, or "" if it is unknown.
func (n *Lineage) firstNumber(ctx context.Context, of lease.Lease) (string, error) {
	if err := n.take(ctx); err != nil {
		return "", err
	}
	defer func() { n.busy <- struct{}{} }()
	known := n.firsts[of.Stream]
	if first, here := known.numbers[of.Shard]; here && known.born == of.Born {
		return first, nil
	}
	numbers, err := n.first(ctx, of.Stream)
	if err != nil {
		return "", &LookupError{fmt.Errorf("weir: looking for the beginning of %s: %w", of.Key, err)}
	}
	n.firsts[of.Stream] = firstNumbers{of.Born, numbers}
	return numbers[of.Shard], nil
}
