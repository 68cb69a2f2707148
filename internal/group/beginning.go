package group

import (
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// beginning describes a stream that has leases, but that the application has not begun to read. If
// the leader that first saw the stream died, some of its leases may be missing.
type beginning struct {
	// pin is the pinned start of the application: the earliest time among the positions of the
	// stream's leases. It is zero if no position is a time.
	pin shard.Position
}

// beginnings returns a beginning for each stream whose leases never had an owner.
func beginnings(leases []lease.Lease) map[string]*beginning {
	all := map[string]*beginning{}
	for _, l := range leases {
		b, seen := all[l.Stream]
		if !seen {
			b = &beginning{}
			all[l.Stream] = b
		}
		switch {
		case b == nil:
		case l.Epoch != 1 || l.Owner != "" || l.Last != "" || l.Revoked != "":
			all[l.Stream] = nil
		case l.Position.Kind() == shard.Time && (b.pin.IsZero() || l.Position.Compare(b.pin) < 0):
			b.pin = l.Position
		}
	}
	for stream, b := range all {
		if b == nil {
			delete(all, stream)
		}
	}
	return all
}

// start returns the position where the application begins to read a stream. The pinned start of an
// earlier leader has priority over the configured start.
func (b *beginning) start(configured shard.Position) shard.Position {
	if b == nil || b.pin.IsZero() {
		return configured
	}
	return b.pin
}

// agrees reports whether a listing that starts at the time pin fits the existing leases. Only such
// a listing may create the missing leases.
func (b *beginning) agrees(pin shard.Position) bool {
	return b == nil || b.pin.IsZero() || b.pin == pin
}

// first returns the missing leases to create now. The other missing leases are created once these
// exist. existing reports whether the stream has any leases. pin is the start time of the listing.
//
// The leader claims a start time before it creates other leases. Several workers may lead at the
// same time, without knowing of each other. Each of them tries to create the lease of the stream's
// oldest shard at its own start time, and only one succeeds. A leader that sees this lease creates
// all other leases at its start time. All leases of a stream therefore begin at the same time, even
// if calls reach the store late or in another order.
func (b *beginning) first(missing []lease.Lease, pin shard.Position, existing bool) []lease.Lease {
	begun, shows := b == nil && existing, b != nil && !b.pin.IsZero()
	if !begun && !shows && !pin.IsZero() {
		return claim(missing, pin)
	}
	return pinnedFirst(missing)
}

// claim returns the first lease of missing that can be claimed, with pin as its position. It
// returns all of missing if no lease can be claimed. missing is sorted by lineage, ancestors first.
//
// The first lease may belong to a shard that ended before pin. Leaders that list at different times
// see different shards as ended, but they agree on the oldest shard. A descendant of a shard that
// is being read cannot be claimed.
func claim(missing []lease.Lease, pin shard.Position) []lease.Lease {
	for _, l := range missing {
		if l.Position.Kind() == shard.Time || l.Position.IsEnd() {
			l.Position = pin
			return []lease.Lease{l}
		}
	}
	return missing
}

// pinnedFirst returns the new leases whose position is a time. If there is no such lease, it
// returns all new leases. The caller creates the other leases later. If the leader created the
// other leases first and then died, no lease would show where the stream begins. The next leader
// would treat the missing shards as new ones.
func pinnedFirst(made []lease.Lease) []lease.Lease {
	shows := func(l lease.Lease) bool { return l.Position.Kind() == shard.Time }
	if slices.ContainsFunc(made, shows) {
		return slices.DeleteFunc(made, func(l lease.Lease) bool { return !shows(l) })
	}
	return made
}

// pinned reports whether reading of a new stream begins at one point in time: at the configured
// time, or with [shard.Latest] at the time when the application first sees the stream.
func pinned(start shard.Position) bool {
	return start.Kind() == shard.Tip || start.Kind() == shard.Time
}

// begins returns the beginnings of streams that begin at one point in time, see pinned. It includes
// streams that only other workers list, because this worker does not know their start.
func (s *listings) begins(leases []lease.Lease, start shard.Position) map[string]*beginning {
	others := false
	for name := range s.known {
		others = others || s.streams[name] == nil
	}
	if !pinned(start) && !others {
		return nil
	}
	all := beginnings(leases)
	for name := range all {
		if !pinned(start) && s.streams[name] != nil {
			delete(all, name)
		}
	}
	return all
}

// unlisted returns the paused streams, and the streams that the application has not begun to read
// and that may still lack leases. Sessions must not read such a stream yet. The leases of a stream
// show where it begins only until the first session reads it. A stream is complete when a worker
// that reads it, or this leader, has listed its shards and seen all of their leases.
func (s *listings) unlisted(paused []string, workers []lease.Worker) []string {
	all := paused
	for name := range s.beginnings {
		l := s.streams[name]
		own := l != nil && l.latest != nil && l.fresh && !l.making
		if !own && !slices.ContainsFunc(workers, func(w lease.Worker) bool { return !w.Ended && w.Streams.Listed(name) }) {
			all = append(slices.Clip(all), name)
		}
	}
	if len(all) > len(paused) {
		slices.Sort(all)
		all = slices.Compact(all)
	}
	return all
}
