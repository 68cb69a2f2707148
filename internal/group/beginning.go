package group

import (
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// beginning is the state of a stream that has leases but that the application has not begun to
// read. The leader that first saw the stream may have died before it had made all leases.
type beginning struct {
	// the earliest time at which a lease begins, which is the pinned start of the application; zero
	// if no lease shows it
	pin shard.Position
}

// beginnings returns the beginnings of the streams whose leases never had an owner.
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

// start returns where the application begins in a stream. It is the pinned start of an earlier
// leader if the leases show it.
func (b *beginning) start(configured shard.Position) shard.Position {
	if b == nil || b.pin.IsZero() {
		return configured
	}
	return b.pin
}

// agrees reports whether a listing of a stream as of the time pin may make the missing leases.
func (b *beginning) agrees(pin shard.Position) bool {
	return b == nil || b.pin.IsZero() || b.pin == pin
}

// first returns the missing leases to create now. The other missing leases follow when these exist.
// existing is true if the stream has leases. pin is the start of the listing.
//
// A start is claimed before other leases are created. Leaders that do not know of each other all
// try to make the lease of the stream's oldest shard, each at its own time, and only one of them
// succeeds. A leader that sees that lease makes all others at its time. All leases of a stream
// therefore begin at the same time, even if the leaders' calls reach the store late or in another
// order.
func (b *beginning) first(missing []lease.Lease, pin shard.Position, existing bool) []lease.Lease {
	begun, shows := b == nil && existing, b != nil && !b.pin.IsZero()
	if !begun && !shows && !pin.IsZero() {
		return claim(missing, pin)
	}
	return pinnedFirst(missing)
}

// claim returns the first of missing, moved to pin. missing is in the order of the shards' lineage.
// Also a shard that ended before pin can be the first. Leaders that list at different times see
// different shards as ended, but they agree on the oldest shard. A descendant of a shard that is
// being read cannot be claimed. If no lease can, claim returns all of missing.
func claim(missing []lease.Lease, pin shard.Position) []lease.Lease {
	for _, l := range missing {
		if l.Position.Kind() == shard.Time || l.Position.IsEnd() {
			l.Position = pin
			return []lease.Lease{l}
		}
	}
	return missing
}

// pinnedFirst returns the new leases that begin at a time, or all new leases if none does. The
// other leases follow once these exist. If the others were created first, no lease would show where
// the stream begins, and the next leader would treat its missing shards as new ones.
func pinnedFirst(made []lease.Lease) []lease.Lease {
	shows := func(l lease.Lease) bool { return l.Position.Kind() == shard.Time }
	if slices.ContainsFunc(made, shows) {
		return slices.DeleteFunc(made, func(l lease.Lease) bool { return !shows(l) })
	}
	return made
}

// pinned reports whether the start becomes a fixed time when the application first sees a stream.
func pinned(start shard.Position) bool {
	return start.Kind() == shard.Tip || start.Kind() == shard.Time
}

// begins returns the beginnings of the streams whose start depends on the time of the first
// listing. That includes streams listed by other workers, because this worker does not know whether
// theirs do.
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

// unlisted adds to the paused streams those that have not begun and may still lack leases. They
// must not begin: only as long as no session reads a stream do its leases show where it begins. A
// stream is complete when this leader, or another worker that reads it, has listed its shards and
// seen all of their leases.
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
