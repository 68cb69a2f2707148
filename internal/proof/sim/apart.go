package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
)

// reads reports whether a life reads the named stream. All workers read the first stream, and the
// first worker reads all streams. A life of the previous version also reads all streams, because it
// handles shards of any stream.
func (l *life) reads(name string) bool {
	if !l.w.profile.Apart || name == firstStream || l.older || l.of == l.w.workers[0] {
		return true
	}
	d := roll(l.w.seed, "reads "+l.of.name+" "+name)
	return d.chance(.5)
}

// loose reports whether a stream may stay unread without a time limit. A leader of the previous
// version assigns shards to workers that do not read the stream, and these workers return the
// shards.
func (w *world) loose(st *stream) bool {
	return w.profile.Apart && w.profile.Older > 0 && st != w.streams[0]
}

// apart reports whether some workers do not read a stream.
func (w *world) apart(st *stream) bool {
	return slices.ContainsFunc(w.workers, func(of *worker) bool { return of.life != nil && !of.life.reads(st.name) })
}

// overdueApart checks for overdue duties about a stream that some workers do not read. The workers
// that read the stream must get its shards in time, unless the leader has the previous version.
// Such a leader does not know which workers read which streams.
func (w *world) overdueApart(st *stream, leader *life, led int64) {
	if leader == nil || leader.older {
		maps.DeleteFunc(w.duties.leases, func(of lease.Key, _ *duty) bool { return of.Stream == st.name })
		for sh := range st.shards() {
			delete(w.duties.missing, sh)
		}
		return
	}
	w.overdueOf(st, led, w.readyOf(false, func(l *life) bool { return w.getsOf(l, leader, st) }))
}

// getsOf reports whether a leader assigns shards of a stream to a life. A life of the previous
// version does not report its streams, so the leader assigns it shards of the streams that the
// leader itself reads.
func (w *world) getsOf(l, leader *life, st *stream) bool {
	return l.reads(st.name) && (!l.older || leader.reads(st.name))
}

// lists returns the time since which some worker could list a stream that the leader does not read.
func (w *world) lists(st *stream) int64 {
	since := w.readyOf(false, func(l *life) bool { return !l.older && l.reads(st.name) })
	for _, wk := range w.workers {
		if l := wk.life; l != nil && !l.older && l.reads(st.name) {
			since = max(since, l.unread, l.hindered.reads[st.name])
		}
	}
	return since
}

// listedWithin returns the time that the leader may take to list new shards, if no end of a parent
// shard announced them.
func (s *settings) listedWithin() time.Duration {
	return s.list + min(32*s.beat, s.list) + 4*s.beat
}

// listedApart is like listedWithin, for a stream that the leader does not read. A worker that reads
// the stream lists it at its start. Later it checks, every third of the listing interval, whether a
// listing is due.
func (s *settings) listedApart() time.Duration { return s.list*4/3 + 4*s.beat }
