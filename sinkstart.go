package weir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// What the sink says of a shard or of its ancestors, and what follows for their leases. A sink that
// was restored from a backup may be behind in a shard that was finished long ago; its descendants
// then have to wait until that shard was read again.

// sinkAnswer is how far the sink is with a shard.
type sinkAnswer struct {
	at Position // zero: the sink knows nothing of it
	// the stream has records of it after at; if at is zero, any, and the sink knows an ancestor
	unread bool
}

// begun reports whether the sink has something of the shard. Then it had all of the shard's
// ancestors before that.
func (a sinkAnswer) begun() bool { return a.at.Kind() == shard.Sequence || a.at.IsEnd() }

// oldest is where the shard is to be read again from.
func (a sinkAnswer) oldest() Position {
	if a.at.IsZero() {
		return shard.Oldest
	}
	return a.at
}

// startAtSink returns where reading begins by the sink's word, zero for the lease's checkpoint, in
// a try to open that began then. behind reports that the lease was given back, because the sink is
// behind in an ancestor.
func (l *shardLoop) startAtSink(ctx context.Context, began time.Time) (start Position, behind bool, err error) {
	key := l.term.Lease.Key
	own, err := l.askSink(ctx, key.Shard)
	if err != nil {
		return Position{}, false, err
	}
	leases, err := l.in.lineage.leases(ctx, l.in, key, began)
	if err != nil {
		return Position{}, false, err
	}
	if err := l.ofThisStream(ctx, leases[key.Shard], own); err != nil {
		return Position{}, false, err
	}
	answers, err := l.askAncestors(ctx, began, leases)
	if err != nil {
		return Position{}, false, err
	}
	answers[key.Shard] = sinkAnswer{at: own}
	moves, behind := setBack(leases, key.Shard, answers)
	if behind {
		return Position{}, true, l.giveBack(ctx, moves)
	}
	switch {
	case own.IsZero() && knownAbove(leases, key.Shard, answers):
		return shard.Oldest, false, nil
	case own.IsZero() || own.IsEnd():
		return Position{}, false, nil
	}
	return own, false, nil
}

// ofThisStream fails for a position in a shard that is from before the shard began.
func (l *shardLoop) ofThisStream(ctx context.Context, of lease.Lease, at Position) error {
	if at.Kind() != shard.Sequence {
		return nil
	}
	first, err := l.in.lineage.firstNumber(ctx, l.in, of)
	if err == nil && first != "" && shard.CompareSequence(at.SequenceNumber(), first) < 0 {
		err = fmt.Errorf("weir: the sink's position %s in shard %s is of an earlier stream of this name: "+
			"the shard begins at %s; remove what the sink keeps for the earlier stream", at, of.Shard, first)
	}
	return err
}

// askAncestors asks the sink for the parents of the shard, and further up where it has nothing of
// them.
func (l *shardLoop) askAncestors(ctx context.Context, began time.Time, leases map[string]lease.Lease) (map[string]sinkAnswer, error) {
	answers := map[string]sinkAnswer{}
	next := leases[l.term.Lease.Shard].Parents
	for len(next) > 0 {
		id := next[0]
		next = next[1:]
		if _, asked := answers[id]; asked {
			continue
		}
		at, err := inquired(ctx, l.in.lineage, l.ancestor("position", id), began, func() (Position, error) { return l.askSink(ctx, id) })
		if err != nil {
			return nil, err
		}
		answer := sinkAnswer{at: at}
		parent, here := leases[id]
		if !answer.begun() {
			next = append(next[:len(next):len(next)], parent.Parents...)
		}
		switch {
		case at.IsZero(), at.IsEnd(), here && !parent.Finished():
		default:
			if here {
				if err := l.ofThisStream(ctx, parent, at); err != nil {
					return nil, err
				}
			}
			if answer.unread, err = l.unread(ctx, began, parent, id, at); err != nil {
				return nil, err
			}
		}
		answers[id] = answer
	}
	// those that the sink has none of, although it knows what came before
	for _, id := range slices.Sorted(maps.Keys(answers)) {
		answer := answers[id]
		if parent, here := leases[id]; here && parent.Finished() && answer.at.IsZero() && knownAbove(leases, id, answers) {
			unread, err := l.unread(ctx, began, parent, id, shard.Oldest)
			if err != nil {
				return nil, err
			}
			answers[id] = sinkAnswer{unread: unread}
		}
	}
	return answers, nil
}

// knownAbove reports whether the sink knows an ancestor of the shard id: then its knowing nothing
// of the shard means that it has none of it. A sink that knows none of them is new, or removes what
// it knew of shards that have ended.
func knownAbove(leases map[string]lease.Lease, id string, answers map[string]sinkAnswer) bool {
	seen := map[string]bool{}
	var known func(id string) bool
	known = func(id string) bool {
		if seen[id] { // a lineage has no circles, but nothing here relies on that
			return false
		}
		seen[id] = true
		return slices.ContainsFunc(leases[id].Parents, func(p string) bool { return !answers[p].at.IsZero() || known(p) })
	}
	return known(id)
}

// ancestor names an inquiry about an ancestor.
func (l *shardLoop) ancestor(what, id string) inquiry {
	return inquiry{what, lease.Key{Stream: l.term.Lease.Stream, Shard: id}}
}

// unread reports whether the stream has records of a finished shard after a position of the sink
// that the sink should have.
func (l *shardLoop) unread(ctx context.Context, began time.Time, of lease.Lease, id string, at Position) (bool, error) {
	return inquired(ctx, l.in.lineage, l.ancestor("records after "+at.String(), id), began, func() (bool, error) { return l.lookUnread(ctx, of, id, at) })
}

func (l *shardLoop) lookUnread(ctx context.Context, of lease.Lease, id string, at Position) (bool, error) {
	bound, wanted := positionTimeout, (func(*source.Page) bool)(nil)
	if l.in.opts.Filter.By != nil { // what is dropped the sink has not to know
		bound, wanted = filteredTimeout, func(page *source.Page) bool { return l.keepsSome(page, of.Range, at) }
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	unread, err := polling.Unread(ctx, l.in.setup(l.term.Lease.Stream), id, at, wanted)
	switch {
	case err == nil:
		return unread, nil
	case errors.Is(err, source.ErrNoPosition): // the sink's mistake
		return false, err
	case !errors.Is(err, streams.ErrNoShard):
		return false, &lookupError{err}
	}
	key := lease.Key{Stream: l.term.Lease.Stream, Shard: id}
	if l.in.opts.Expired == FailExpired {
		return false, fmt.Errorf("weir: the sink is at %s in %s, which has left the stream: what the sink misses of it is lost; "+
			"Options.Expired says whether to go on", at, key)
	}
	l.Expired(source.Expiry{At: at, Next: shard.End, Err: err})
	return false, nil
}

// setBack decides which leases go back before the shard id may be read: ancestors in which the sink
// is behind, to where it is, and those between that it knows nothing of, to their beginnings. They
// come in the order of the lineage: should only the first of them be carried out, what descends
// from one that was not waits all the same. behind reports whether the shard has to wait, also
// without a move.
func setBack(leases map[string]lease.Lease, id string, answers map[string]sinkAnswer) (moves []lease.Action, behind bool) {
	waits, moved := map[string]bool{}, map[string]bool{} // by shard
	move := func(l lease.Lease, to Position) {
		if !moved[l.Shard] && l.Position != to {
			moved[l.Shard] = true
			moves = append(moves, lease.Action{Kind: lease.Move, Key: l.Key, Epoch: l.Epoch, Position: to})
		}
	}
	var visit func(id string) bool
	visit = func(id string) bool {
		if wait, visited := waits[id]; visited {
			return wait
		}
		waits[id] = false // a lineage has no circles, but nothing here relies on that
		for _, p := range leases[id].Parents {
			parent, here := leases[p]
			switch answer := answers[p]; {
			case !here: // it has left the stream
			case !parent.Finished():
				waits[id] = true
			case !answer.begun() && visit(p):
				waits[id] = true
			case answer.unread:
				move(parent, answer.oldest())
				waits[id] = true
			}
		}
		if waits[id] && !answers[id].begun() {
			move(leases[id], answers[id].oldest())
		}
		return waits[id]
	}
	behind = visit(id)
	return moves, behind
}

// giveBack sets leases back and gives the term's own back, to be read after them.
func (l *shardLoop) giveBack(ctx context.Context, moves []lease.Action) error {
	moved := false
	if len(moves) > 0 {
		call, cancel := context.WithTimeout(ctx, l.in.opts.FailoverAfter)
		defer cancel()
		did, err := l.in.store.Apply(call, l.in.opts.App, moves)
		if err != nil {
			return &lookupError{fmt.Errorf("weir: setting leases back to where the sink is: %w", err)}
		}
		for i, m := range moves {
			if did[i] {
				moved = true
				l.in.opts.Logger.Warn("the sink is behind in a shard that was read before: it is read again, and what descends from it waits",
					"stream", m.Key.Stream, "shard", m.Key.Shard, "seq", m.Position)
			}
		}
	}
	l.log().Info("a shard waits for its ancestors, which the sink has not read to their ends")
	if !moved { // so that a lease that comes back at once is not given back at once
		_ = retry.Wait(l.term.Reading(), l.in.opts.BeatInterval)
	}
	l.term.GiveBack()
	return nil
}
