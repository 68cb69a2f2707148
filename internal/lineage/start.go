package lineage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// This file turns the sink's positions in a shard and its ancestors into changes of their leases. A
// sink that was restored from a backup may be behind in a shard that was finished long ago; its
// descendants then have to wait until that shard was read again.

// Sink answers for the sink of a shard.
type Sink interface {
	// Position returns how far the sink has got in a shard of the stream.
	Position(ctx context.Context, id string) (shard.Position, error)
	// Unread reports whether the stream has records of a finished shard after a position of the
	// sink, which the sink should have.
	Unread(ctx context.Context, of lease.Lease, id string, at shard.Position) (bool, error)
}

// Start is how a shard begins.
type Start struct {
	At shard.Position // where the sink is; zero for the lease's checkpoint
	// Behind says that the shard has to wait, because the sink is behind in an ancestor.
	Behind bool
	Moves  []lease.Action // of leases that go back for that
}

// answer is how far the sink is with a shard.
type answer struct {
	at shard.Position // zero: the sink knows nothing of it
	// the stream has records of it after at; if at is zero, any, and the sink knows an ancestor
	unread bool
}

// begun reports whether the sink has something of the shard. Then it had all of the shard's
// ancestors before that.
func (a answer) begun() bool { return a.at.Kind() == shard.Sequence || a.at.IsEnd() }

// oldest is where the shard is to be read again from.
func (a answer) oldest() shard.Position {
	if a.at.IsZero() {
		return shard.Oldest
	}
	return a.at
}

// Start returns how a shard begins by the sink's word, in an attempt to open it that began then.
func (n *Lineage) Start(ctx context.Context, of lease.Key, began time.Time, sink Sink) (Start, error) {
	own, err := sink.Position(ctx, of.Shard)
	if err != nil {
		return Start{}, err
	}
	leases, err := n.leases(ctx, of, began)
	if err != nil {
		return Start{}, err
	}
	if err := n.ofThisStream(ctx, leases[of.Shard], own); err != nil {
		return Start{}, err
	}
	answers, err := n.askAncestors(ctx, of, began, leases, sink)
	if err != nil {
		return Start{}, err
	}
	answers[of.Shard] = answer{at: own}
	moves, behind := setBack(leases, of.Shard, answers)
	if behind {
		return Start{Behind: true, Moves: moves}, nil
	}
	switch {
	case own.IsZero() && knownAbove(leases, of.Shard, answers):
		return Start{At: shard.Oldest}, nil
	case own.IsZero() || own.IsEnd():
		return Start{}, nil
	}
	return Start{At: own}, nil
}

// ofThisStream fails for a position in a shard that is from before the shard began.
func (n *Lineage) ofThisStream(ctx context.Context, of lease.Lease, at shard.Position) error {
	if at.Kind() != shard.Sequence {
		return nil
	}
	first, err := n.firstNumber(ctx, of)
	if err == nil && first != "" && shard.CompareSequence(at.SequenceNumber(), first) < 0 {
		err = fmt.Errorf("weir: the sink's position %s in shard %s is of an earlier stream of this name: "+
			"the shard begins at %s; remove what the sink keeps for the earlier stream", at, of.Shard, first)
	}
	return err
}

// askAncestors asks the sink for the parents of the shard, and further up where it has nothing of
// them.
func (n *Lineage) askAncestors(
	ctx context.Context, of lease.Key, began time.Time, leases map[string]lease.Lease, sink Sink,
) (map[string]answer, error) {
	unread := func(parent lease.Lease, id string, at shard.Position) (bool, error) {
		q := inquiry{"records after " + at.String(), lease.Key{Stream: of.Stream, Shard: id}}
		return inquired(ctx, n, q, began, func() (bool, error) { return sink.Unread(ctx, parent, id, at) })
	}
	answers := map[string]answer{}
	next := leases[of.Shard].Parents
	for len(next) > 0 {
		id := next[0]
		next = next[1:]
		if _, asked := answers[id]; asked {
			continue
		}
		q := inquiry{"position", lease.Key{Stream: of.Stream, Shard: id}}
		at, err := inquired(ctx, n, q, began, func() (shard.Position, error) { return sink.Position(ctx, id) })
		if err != nil {
			return nil, err
		}
		got := answer{at: at}
		parent, here := leases[id]
		if !got.begun() {
			next = append(next[:len(next):len(next)], parent.Parents...)
		}
		switch {
		case at.IsZero(), at.IsEnd(), here && !parent.Finished():
		default:
			if here {
				if err := n.ofThisStream(ctx, parent, at); err != nil {
					return nil, err
				}
			}
			if got.unread, err = unread(parent, id, at); err != nil {
				return nil, err
			}
		}
		answers[id] = got
	}
	// those that the sink has none of, although it knows what came before
	for _, id := range slices.Sorted(maps.Keys(answers)) {
		if parent, here := leases[id]; here && parent.Finished() && answers[id].at.IsZero() && knownAbove(leases, id, answers) {
			some, err := unread(parent, id, shard.Oldest)
			if err != nil {
				return nil, err
			}
			answers[id] = answer{unread: some}
		}
	}
	return answers, nil
}

// knownAbove reports whether the sink knows an ancestor of the shard id. In that case a sink
// without a position in the shard has none of its records. A sink that knows no ancestor is new, or
// removes the positions of shards that have ended.
func knownAbove(leases map[string]lease.Lease, id string, answers map[string]answer) bool {
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

// setBack decides which leases go back before the shard id may be read. Ancestors in which the sink
// is behind go back to the sink's position. Those between that are unknown to the sink go back to
// their beginnings. The moves are in the order of the lineage: if only the first of them is carried
// out, the descendants of the others wait all the same. behind reports whether the shard has to
// wait, even without a move.
func setBack(leases map[string]lease.Lease, id string, answers map[string]answer) (moves []lease.Action, behind bool) {
	waits, moved := map[string]bool{}, map[string]bool{} // by shard
	move := func(l lease.Lease, to shard.Position) {
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
			switch got := answers[p]; {
			case !here: // it has left the stream
			case !parent.Finished():
				waits[id] = true
			case !got.begun() && visit(p):
				waits[id] = true
			case got.unread:
				move(parent, got.oldest())
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
