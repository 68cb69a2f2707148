package weir

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
)

// Reads that fail again and again are told once, when that has lasted, and once when it is over.
// Each failure by itself is worth a debug line and an event only.

const (
	// failingAfter is how long reading has to fail before it is told.
	failingAfter = 5 * time.Second
	// failingNamed is how many shards of a stream are told of by name at a time; the others are
	// counted.
	failingNamed = 5
	// goneAgain is how often it is said that a stream does not exist.
	goneAgain = 10 * time.Minute
)

// readFails reports whether reading has failed for so long that it is to be told. Streams that are
// not there, and positions at which shards stay, are told by themselves, see streamGone and Failed.
func (v *vitals) readFails(now time.Time, stays bool) bool {
	return v.readErr != nil && !v.trying.IsZero() && now.Sub(v.trying) >= failingAfter &&
		(!stays || !v.same || streams.Throttled(v.readErr)) &&
		// it is looked for what is not there
		!errors.As(v.readErr, new(*types.ResourceNotFoundException))
}

// readingChange is that reading a shard has begun to fail for long, or works again.
type readingChange struct {
	key   lease.Key
	err   error // nil when it works again
	since time.Time
}

// change is what is to be told of a shard, false if nothing is. told says whether it was told that
// reading fails, stays whether shards stay at positions that are refused.
func (v *vitals) change(key lease.Key, now time.Time, told, stays bool) (readingChange, bool) {
	switch {
	case !told && v.readFails(now, stays):
		return readingChange{key, v.readErr, v.trying}, true
	case told && v.readErr == nil:
		return readingChange{key: key}, true
	}
	return readingChange{}, false
}

// readingNews are changes as they are told: a few of a stream by name, the others counted.
type readingNews struct {
	named []readingChange
	more  []moreShards
}

// moreShards are so many shards of a stream that are not named.
type moreShards struct {
	stream string
	fail   bool
	shards int
}

// sumUp sorts changes, and names a few of each stream, of failures and of recoveries apart.
func sumUp(changes []readingChange) (n readingNews) {
	slices.SortFunc(changes, func(a, b readingChange) int {
		return cmp.Or(cmp.Compare(a.key.Stream, b.key.Stream), compareBools(a.err != nil, b.err != nil), a.key.Compare(b.key))
	})
	alike := 0
	for i, c := range changes {
		if i > 0 && (c.key.Stream != changes[i-1].key.Stream || (c.err != nil) != (changes[i-1].err != nil)) {
			alike = 0
		}
		switch alike++; {
		case alike <= failingNamed:
			n.named = append(n.named, c)
		case alike == failingNamed+1:
			n.more = append(n.more, moreShards{c.key.Stream, c.err != nil, 1})
		default:
			n.more[len(n.more)-1].shards++
		}
	}
	return n
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// streamGone logs that a stream does not exist: once for all its shards, and then every ten minutes
// until one of them is read again.
func (r *run) streamGone(name string, err error) {
	now := time.Now()
	last, told := r.gone.LoadOrStore(name, now)
	if !told || now.Sub(last.(time.Time)) >= goneAgain && r.gone.CompareAndSwap(name, last, now) {
		r.opts.Logger.Error("the stream does not exist any more; its shards are read again when it does", "stream", name, "err", err)
	}
}

// streamBack logs that a stream is there again.
func (r *run) streamBack(name string) {
	if _, told := r.gone.LoadAndDelete(name); told {
		r.opts.Logger.Info("the stream is there again", "stream", name)
	}
}

// tellReading tells of shards that are read in vain, or again.
func (r *run) tellReading(changes []readingChange, now time.Time) {
	news := sumUp(changes)
	for _, c := range news.named {
		if c.err != nil {
			r.opts.Logger.Warn("reading a shard fails again and again; it goes on being tried", "stream", c.key.Stream, "shard", c.key.Shard,
				"for", now.Sub(c.since).Round(time.Second), "err", c.err)
		} else {
			r.opts.Logger.Info("the shard is read again", "stream", c.key.Stream, "shard", c.key.Shard)
		}
	}
	for _, m := range news.more {
		if m.fail {
			r.opts.Logger.Warn("reading other shards of the stream fails too", "stream", m.stream, "shards", m.shards)
		} else {
			r.opts.Logger.Info("other shards of the stream are read again", "stream", m.stream, "shards", m.shards)
		}
	}
}
