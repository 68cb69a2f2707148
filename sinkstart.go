package weir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/lineage"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// leases returns the leases of the application, for the lineage.
func (r *run) leases(ctx context.Context) (lease.View, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.FailoverAfter)
	defer cancel()
	return r.store.View(ctx, r.opts.App, "")
}

// firstNumbers returns the first sequence numbers of a stream's shards, for the lineage.
func (r *run) firstNumbers(ctx context.Context, stream string) (map[string]string, error) {
	return streams.FirstNumbers(ctx, r.client, r.streams.Stream(stream))
}

// startAtSink returns where reading begins by the sink's word, zero for the lease's checkpoint, in
// a try to open that began then. behind reports that the lease was given back, because the sink is
// behind in an ancestor.
func (l *shardLoop) startAtSink(ctx context.Context, began time.Time) (start Position, behind bool, err error) {
	s, err := l.in.lineage.Start(ctx, l.term.Lease.Key, began, sink{l})
	if err != nil || !s.Behind {
		return s.At, false, err
	}
	return Position{}, true, l.giveBack(ctx, s.Moves)
}

// sink is the sink of a shard, by ShardHandlers.Position.
type sink struct{ l *shardLoop }

// positionTimeout bounds a call of ShardHandlers.Position.
const positionTimeout = 30 * time.Second

// Position implements [lineage.Sink].
func (s sink) Position(ctx context.Context, id string) (p Position, err error) {
	ctx, cancel := context.WithTimeout(ctx, positionTimeout)
	defer cancel()
	err = contained("ShardHandlers.Position", func() (err error) {
		p, err = s.l.in.shards.Position(ctx, s.l.term.Lease.Stream, id)
		return err
	})
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
func (s sink) Unread(ctx context.Context, of lease.Lease, id string, at Position) (bool, error) {
	l := s.l
	bound, wanted := positionTimeout, (func(*source.Page) bool)(nil)
	if l.in.opts.Filter.By != nil { // the sink does not see dropped records
		bound, wanted = filteredTimeout, func(page *source.Page) bool { return l.keepsSome(page, of.Range, at) }
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	setup := l.in.setup(l.term.Lease.Stream)
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
		case left && l.in.opts.Expired == OldestExpired:
			return true, nil // reading the shard again reports it
		default:
			expired = true
		}
	}
	if !expired {
		return false, &lineage.LookupError{Err: err}
	}
	key := lease.Key{Stream: l.term.Lease.Stream, Shard: id}
	if l.in.opts.Expired == FailExpired {
		return false, fmt.Errorf("weir: the sink is at %s in %s, which has left the stream: the records that the sink does not have are lost; "+
			"set Options.Expired to continue", at, key)
	}
	l.Expired(source.Expiry{At: at, Next: shard.End, Err: err})
	return false, nil
}

// giveBack sets leases back and gives the term's own back, to be read after them.
func (l *shardLoop) giveBack(ctx context.Context, moves []lease.Action) error {
	moved := false
	if len(moves) > 0 {
		call, cancel := context.WithTimeout(ctx, l.in.opts.FailoverAfter)
		defer cancel()
		did, err := l.in.store.Apply(call, l.in.opts.App, moves)
		if err != nil {
			return &lineage.LookupError{Err: fmt.Errorf("weir: setting leases back to the position of the sink: %w", err)}
		}
		for i, m := range moves {
			if did[i] {
				moved = true
				l.in.opts.Logger.Warn("the sink is behind in a shard that was read before; the shard is read again, and its descendants wait",
					"stream", m.Key.Stream, "shard", m.Key.Shard, "seq", m.Position)
			}
		}
	}
	l.log().Info("a shard waits for its ancestors; the sink does not have all their records yet")
	if !moved { // so that a lease that comes back at once is not given back at once
		_ = retry.Wait(l.term.Reading(), l.in.opts.BeatInterval)
	}
	l.term.GiveBack()
	return nil
}
