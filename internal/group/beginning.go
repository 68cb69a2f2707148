package group

import (
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// beginning is how far an application has got that has leases in a stream, but has not begun to
// read it: the leader that first saw the stream may have died before it had made them all.
type beginning struct {
	// the earliest time that a lease begins at, which the application's start was pinned to; zero
	// when none shows it
	pin shard.Position
}

// beginnings are those of the streams of which no lease ever had an owner.
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

// start is where an application begins in a stream: where an earlier leader has begun to make it
// begin, if that shows.
func (b *beginning) start(configured shard.Position) shard.Position {
	if b == nil || b.pin.IsZero() {
		return configured
	}
	return b.pin
}

// agrees reports whether a listing of a stream as of the time pin may make the leases that are
// missing.
func (b *beginning) agrees(pin shard.Position) bool {
	return b == nil || b.pin.IsZero() || b.pin == pin
}

// first returns, of the leases that a stream lacks, those that are made now; the others follow when
// they are there. existing says that it has some, pin where the listing begins.
//
// A start is claimed before anything else is made: leaders that do not know of each other all try
// to make the lease of the stream's oldest shard, each at its own time, and only one can be made.
// Whoever sees it makes all others at its time, so no two leases of a stream begin at different
// times, however late and in whatever order the leaders' calls reach the store.
func (b *beginning) first(missing []lease.Lease, pin shard.Position, existing bool) []lease.Lease {
	begun, shows := b == nil && existing, b != nil && !b.pin.IsZero()
	if !begun && !shows && !pin.IsZero() {
		return claim(missing, pin)
	}
	return pinnedFirst(missing)
}

// claim returns the first of missing, which are in the order of the shards' lineage, at pin, also
// if its shard ended before: that depends on when a leader has listed, and which is the oldest
// shard does not. What descends from a shard that is read claims nothing. All are returned when
// there is none to claim with.
func claim(missing []lease.Lease, pin shard.Position) []lease.Lease {
	for _, l := range missing {
		if l.Position.Kind() == shard.Time || l.Position.IsEnd() {
			l.Position = pin
			return []lease.Lease{l}
		}
	}
	return missing
}

// pinnedFirst returns of new leases those that begin at a time, and all when there are none such:
// what else there is to make comes when they are there. Where only leases were made that do not say
// where a stream begins, its other shards would be taken for new ones.
func pinnedFirst(made []lease.Lease) []lease.Lease {
	shows := func(l lease.Lease) bool { return l.Position.Kind() == shard.Time }
	if slices.ContainsFunc(made, shows) {
		return slices.DeleteFunc(made, func(l lease.Lease) bool { return !shows(l) })
	}
	return made
}

// pinned reports whether a start becomes a time when the application first sees a stream.
func pinned(start shard.Position) bool {
	return start.Kind() == shard.Tip || start.Kind() == shard.Time
}

// begins returns the beginnings of the streams whose start depends on the time of the first
// listing. That includes streams that others list, because this worker does not know it for them.
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

// unlisted adds to the paused streams those that have not begun and may still lack leases. Until a
// session reads such a stream, its existing leases show where it begins. A stream is complete when
// this leader, or another worker that reads it, has listed its shards and seen all of their leases.
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
