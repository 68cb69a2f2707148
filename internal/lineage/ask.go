// Package lineage decides where a shard of a sink begins, and which ancestors have to be read again
// before it because the sink is behind in them. For all shards of a worker that begin at the same
// time, it requests the leases, the first sequence numbers and the sink's positions once.
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

// Lineage holds what the shards of a run descend from and where they begin, as far as sinks have to
// be asked about it. The shards of a run share it.
type Lineage struct {
	view  func(ctx context.Context) (lease.View, error)
	first func(ctx context.Context, stream string) (map[string]string, error)

	busy chan struct{} // has one element while nothing is looked up

	// The goroutine that took the element owns these.
	streams map[string]map[string]lease.Lease // by stream and shard
	seen    time.Time                         // when the leases were read
	firsts  map[string]firstNumbers           // by stream

	mu        lock.Mutex[lock.Lineage] // guards the fields below
	inquiries map[inquiry]*answered
	failing   time.Time // since when View fails; zero when its last call did not
}

// New returns a Lineage. view returns the leases of the application, first the first sequence
// numbers of a stream's shards.
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

// LookupError is a failure of the store or of Kinesis to return data that is required before a
// shard is opened.
type LookupError struct{ Err error }

func (e *LookupError) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *LookupError) Unwrap() error { return e.Err }

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

// errUnanswered is the failure of a question whose function ended its goroutine.
var errUnanswered = errors.New("weir: the function ended its goroutine")

// inquired returns an answer that was found out at some time since began, also if another
// descendant of the shard asked and still waits for it. An error goes only to the caller that met
// it; the others ask again.
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

// keptFor is how long answers are kept at least.
const keptFor = time.Minute

// forget drops the answers that are too old for any shard that begins now.
func (n *Lineage) forget(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.inquiries, func(_ inquiry, a *answered) bool { return now.Sub(a.asked) > keptFor })
}

// firstNumbers are the first sequence numbers of a stream's shards.
type firstNumbers struct {
	born    int64 // of the stream
	numbers map[string]string
}

// take waits for lookups of other shards, so that one call serves all shards that begin at a time.
func (n *Lineage) take(ctx context.Context) error {
	select {
	case <-n.busy:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leases returns the leases of a shard's stream by shard, as they were at some time after began: a
// parent that was unfinished before that may be finished. The caller does not change them.
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
		return nil, fmt.Errorf("weir: the lease of %s is not there any more", of)
	}
	return n.streams[of.Stream], nil
}

// look asks the store for the leases. The caller has taken the element.
func (n *Lineage) look(ctx context.Context) error {
	seen := time.Now()
	view, err := n.view(ctx)
	if err != nil && ctx.Err() != nil { // the caller ended the call, which says nothing of the store
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

// Fails reports whether looking up leases has failed for at least that long, and since when. Such a
// worker cannot begin a shard.
func (n *Lineage) Fails(now time.Time, least time.Duration) (since time.Time, fails bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failing, !n.failing.IsZero() && now.Sub(n.failing) >= least
}

// Probe looks for the leases again if that failed the last time.
func (n *Lineage) Probe(ctx context.Context) error {
	if _, fails := n.Fails(time.Now(), 0); !fails {
		return nil
	}
	if err := n.take(ctx); err != nil {
		return err
	}
	defer func() { n.busy <- struct{}{} }()
	if err := n.look(ctx); err != nil {
		return fmt.Errorf("weir: asking the store which leases there are, without which no shard can be begun at the sink's position: %w", err)
	}
	return nil
}

// firstNumber returns the first sequence number of a shard, "" if the stream does not say.
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
