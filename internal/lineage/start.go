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

// This file derives changes of leases from the sink's positions in a shard and its ancestors. A
// sink that was restored from a backup may be behind in a shard that was finished long ago. The
// descendants of that shard must wait until it was read again.

// Sink reads the sink's state of the shards of one stream.
type Sink interface {
	// Position returns the sink's position in a shard of the stream.
	Position(ctx context.Context, id string) (shard.Position, error)
	// Unread reports whether a finished shard has records after the sink's position that the sink
	// should have.
	Unread(ctx context.Context, of lease.Lease, id string, at shard.Position) (bool, error)
}

// Start describes how a shard begins.
type Start struct {
	At shard.Position // the sink's position; zero means the lease's checkpoint
	// Behind is set if the shard must wait because the sink is behind in an ancestor.
	Behind bool
	Moves  []lease.Action // moves of leases that must be read again first
}

// answer is the sink's state in a shard.
type answer struct {
	at shard.Position // zero if the sink has no position in the shard
	// unread is set if the shard has records after at. If the position at is zero, unread is set if
	// the shard has any records and the sink has a position in an ancestor.
	unread bool
}

// begun reports whether the sink has records of the shard. In that case it has all records of the
// shard's ancestors.
func (a answer) begun() bool { return a.at.Kind() == shard.Sequence || a.at.IsEnd() }

// oldest returns the position from which the shard must be read again.
func (a answer) oldest() shard.Position {
	if a.at.IsZero() {
		return shard.Oldest
	}
	return a.at
}

// Start returns how a shard begins according to the sink. began is the start of the attempt to open
// the shard.
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

// ofThisStream returns an error if the sink's position is before the beginning of the shard. Such a
// position belongs to an earlier stream with the same name.
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

// askAncestors asks the sink about the parents of the shard. If the sink has no records of a
// parent, it also asks about that parent's own parents, and so on.
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
	// Check shards in which the sink has no position, although it has one in an ancestor.
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

// knownAbove reports whether the sink has a position in an ancestor of the shard id. In that case a
// sink without a position in the shard has none of its records. A sink without a position in any
// ancestor is either new, or removes the positions of shards that have ended.
func knownAbove(leases map[string]lease.Lease, id string, answers map[string]answer) bool {
	seen := map[string]bool{}
	var known func(id string) bool
	known = func(id string) bool {
		if seen[id] { // a lineage has no cycles, but this function does not rely on that
			return false
		}
		seen[id] = true
		return slices.ContainsFunc(leases[id].Parents, func(p string) bool { return !answers[p].at.IsZero() || known(p) })
	}
	return known(id)
}

// setBack returns the moves that are necessary before the shard id may be read. An ancestor in
// which the sink is behind moves back to the sink's position. Shards in between without a position
// in the sink move back to their beginnings. The moves are in the order of the lineage, ancestors
// first. If only the first moves are executed, the descendants of the shards that have not moved
// yet wait as well. behind reports whether the shard must wait, even without a move.
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
		waits[id] = false // a lineage has no cycles, but this function does not rely on that
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
