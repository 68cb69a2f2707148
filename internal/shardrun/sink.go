package shardrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/lineage"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/repeats"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// sink gets the positions of the user's sink in a shard and in the shard's ancestors.
type sink struct{ *Loop }

// start returns the position at which reading begins according to the sink. Zero means the lease's
// checkpoint. began is the time at which this attempt began. behind is set if start released the
// lease, because the sink lacks records of an ancestor.
func (l sink) start(ctx context.Context, began time.Time) (start Position, behind bool, err error) {
	s, err := l.in.Lineage.Start(ctx, l.term.Lease.Key, began, l)
	if err != nil || !s.Behind {
		return s.At, false, err
	}
	return Position{}, true, l.giveBack(ctx, s.Moves)
}

// positionTimeout bounds a call of User.Position, and a search for unread records if none are
// dropped.
const positionTimeout = 30 * time.Second

// Position implements [lineage.Sink].
func (l sink) Position(ctx context.Context, id string) (p Position, err error) {
	ctx, cancel := context.WithTimeout(ctx, positionTimeout)
	defer cancel()
	p, err = l.in.User.Position(ctx, l.term.Lease.Stream, id)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx) // a result after the cancellation does not count
	}
	switch p.Kind() {
	case shard.None, shard.First, shard.Time, shard.Sequence, shard.Finished:
	default:
		err = fmt.Errorf("weir: %q is not a position that a sink can have reached", p)
	}
	if err != nil {
		return Position{}, fmt.Errorf("weir: the sink's position in shard %s: %w", id, err)
	}
	return p, nil
}

// Unread implements [lineage.Sink].
func (l sink) Unread(ctx context.Context, of lease.Lease, id string, at Position) (bool, error) {
	bound, wanted := positionTimeout, (func(*source.Page) bool)(nil)
	if l.in.Drops() { // the sink does not see dropped records
		bound = filteredTimeout
		seen, err := l.repeatsAfter(ctx, of, at)
		if err != nil {
			return false, err
		}
		wanted = func(page *source.Page) bool { return filter(l).keepsSome(page, of.Range, at, seen) }
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	setup := l.in.Run.Setup(l.term.Lease.Stream)
	unread, err := polling.Unread(ctx, setup, id, at, wanted)
	if err == nil {
		return unread, nil
	}
	expired := errors.Is(err, streams.ErrNoShard)
	if errors.Is(err, source.ErrNoPosition) {
		left, before, failed := polling.UnreadIfExpired(ctx, setup, id, at, wanted)
		switch {
		case failed != nil:
			err, expired = failed, errors.Is(failed, streams.ErrNoShard)
		case !before: // the sink's mistake
			return false, err
		case left && l.in.Expired == source.OldestExpired:
			return true, nil // reading the shard again reports it
		default:
			expired = true
		}
	}
	if !expired {
		return false, &lineage.LookupError{Err: err}
	}
	key := lease.Key{Stream: l.term.Lease.Stream, Shard: id}
	if l.in.Expired == source.StayExpired {
		return false, fmt.Errorf("weir: the sink is at %s in %s, which has left the stream: the records that the sink does not have are lost; "+
			"set Options.Expired to continue", at, key)
	}
	l.Loop.Expired(source.Expiry{At: at, Next: shard.End, Err: err})
	return false, nil
}

// repeatsAfter returns the numbers of the records before a position of a finished shard that a
// worker would know if it read the shard again from there. It returns nil if repeats are not
// dropped.
func (l sink) repeatsAfter(ctx context.Context, of lease.Lease, at Position) (batch.Repeats, error) {
	if !l.in.DropRepeats {
		return nil, nil
	}
	ended, err := l.in.Lineage.Ended(ctx, of.Key, time.Time{})
	if err != nil {
		return nil, err
	}
	return &numbered{of: repeats.New("", at, numbersOf(ended)...)}, nil
}

// giveBack moves leases of ancestors back to the positions of the sink. It also releases the term's
// own lease, because its shard has to be read after the ancestors.
func (l sink) giveBack(ctx context.Context, moves []lease.Action) error {
	moved := false
	if len(moves) > 0 {
		call, cancel := context.WithTimeout(ctx, l.in.Times.Failover)
		defer cancel()
		did, err := l.in.Store.Apply(call, l.in.App, moves)
		if err != nil {
			return &lineage.LookupError{Err: fmt.Errorf("weir: setting leases back to the position of the sink: %w", err)}
		}
		for i, m := range moves {
			if did[i] {
				moved = true
				l.in.Log.Warn("the sink's position is before the checkpoint of the shard; the shard is read again from the sink's position, and its child shards wait",
					"stream", m.Key.Stream, "shard", m.Key.Shard, "seq", m.Position)
			}
		}
	}
	l.Log().Info("a shard waits for its ancestors; the sink does not have all their records yet")
	if !moved { // so that a lease that comes back at once is not given back at once
		_ = retry.Wait(l.term.Reading(), l.in.Times.Heartbeat)
	}
	l.term.GiveBack()
	return nil
}
