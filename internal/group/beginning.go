package group

import (
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// beginning is how far an application has got that has leases in a stream, but has not begun to read it: the leader that first saw the
// stream may have died before it had made them all.
type beginning struct {
	pin  shard.Position // the time that the application's start was pinned to; zero when that is not known
	none bool           // there is not one such time
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
		case l.Finished():
		case l.Position.Kind() != shard.Time || !b.pin.IsZero() && b.pin != l.Position:
			b.none = true
		default:
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

// start is where an application begins in a stream: where an earlier leader has begun to make it begin, if that shows.
func (b *beginning) start(configured shard.Position) shard.Position {
	if b == nil || b.none || b.pin.IsZero() {
		return configured
	}
	return b.pin
}

// agrees reports whether a listing that begins at pin may make the leases that are missing.
func (b *beginning) agrees(pin shard.Position) bool {
	return b == nil || b.none || b.pin.IsZero() || b.pin == pin
}

// pinnedFirst returns of new leases those that show where the application begins, and all when there are none such: what else there is to make comes
// when they are there. Of a leader that dies meanwhile tombstones alone would not say it.
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

// unlisted adds to those that nobody is to hold the streams that have not begun and of which this leader has not listed the shards and seen all of
// their leases: as long as nobody reads them, where they are to begin shows in the leases that there are.
func (s *listings) unlisted(paused []string) []string {
	all := paused
	for name := range s.beginnings {
		if l := s.streams[name]; l != nil && (l.latest == nil || !l.fresh || l.making) {
			all = append(slices.Clip(all), name)
		}
	}
	if len(all) > len(paused) {
		slices.Sort(all)
		all = slices.Compact(all)
	}
	return all
}
