package group

import (
	"slices"

	"github.com/weir-go/weir/lease"
)

// refresh updates the list of streams that the worker reads. If a stream was removed from the list,
// the terms of its shards drain, and the worker releases their leases.
func (w *worker) refresh() {
	names := w.cfg.streams()
	if w.names != nil && slices.Equal(names, w.names) {
		return
	}
	w.names, w.said, w.leaderLists = names, "", ""
	for _, t := range w.sorted() {
		if !w.reads(t.Lease.Stream) {
			t.drain()
		}
	}
}

// reads reports whether the worker reads a stream. A worker without a list of streams reads all
// streams.
func (w *worker) reads(stream string) bool { return w.names == nil || slices.Contains(w.names, stream) }

// streams returns the streams that the worker reads, in the form that heartbeats report.
func (w *worker) streams() lease.Streams {
	if w.names == nil {
		return ""
	}
	if changes := w.listed.changes.Load(); w.said == "" || changes != w.saidAt {
		w.said, w.saidAt = lease.StreamsOf(w.names, w.listed.has), changes
	}
	return w.said
}

// giveBack triggers a heartbeat that returns a lease, because the worker does not read its stream.
// Either the worker has just stopped reading the stream, or the leader's version assumes that all
// workers read the same streams.
func (w *worker) giveBack(l lease.Lease) {
	w.foreign = append(w.foreign, lease.Progress{Key: l.Key, Epoch: l.Epoch, Release: true, Stalled: true})
	w.poke()
	if !w.toldForeign[l.Stream] {
		if w.toldForeign == nil {
			w.toldForeign = map[string]bool{}
		}
		w.toldForeign[l.Stream] = true
		w.cfg.Log.Warn("this worker was assigned shards of a stream that it does not read; it returns them", "stream", l.Stream, "reads", w.names)
	}
}

// compareStreams logs a warning when the leader's streams start to differ from this worker's. It
// does not repeat the warning as long as they differ.
func (w *worker) compareStreams(leader lease.Leader) {
	if leader.Session == "" || w.names == nil {
		return
	}
	differ := !w.streams().Same(leader.Streams)
	if differ && !w.differ {
		theirs, _ := leader.Streams.Names()
		w.cfg.Log.Warn("workers of this application read different streams: each gets only shards of the streams that it reads; use a separate application for programs with other streams",
			"streams", w.names, "leader_session", leader.Session, "leader_streams", theirs)
	}
	w.differ = differ
}

// compareStreams logs three conditions, each once when it begins. Live workers read different
// streams. Some leases belong to streams that no live worker reads. Shards wait because workers of
// an older version do not report their streams.
func (l *leadership) compareStreams(v lease.View) {
	if differ := lease.StreamsDiffer(v); differ != l.differ {
		if l.differ = differ; differ {
			other, theirs := l.readsOthers(v)
			l.cfg.Log.Warn("live workers of this application read different streams: each gets only shards of the streams that it reads; use a separate application for programs with other streams",
				"streams", l.cfg.streams(), "other_worker", other.Name, "other_session", other.Session, "other_streams", theirs)
		}
	}
	unread := lease.Unread(v)
	for _, name := range unread {
		if !slices.Contains(l.unread, name) {
			l.cfg.Log.Warn("no live worker reads a stream although the application has leases for it; the leases stay unchanged until a worker reads it", "stream", name)
		}
	}
	l.unread = unread
	withheld := lease.Withheld(v)
	for _, name := range withheld {
		if !slices.Contains(l.withheld, name) {
			l.cfg.Log.Warn("shards of a stream may stay unassigned, because workers of an older version do not report which streams they read; replace them with workers of this version", "stream", name)
		}
	}
	l.withheld = withheld
}

// readsOthers returns the first live worker whose streams differ from this worker's, and its
// streams. It returns zero values if there is none.
func (l *leadership) readsOthers(v lease.View) (w lease.Worker, streams []string) {
	own := lease.StreamsOf(l.cfg.streams(), nil)
	for _, w := range v.Workers {
		if !w.Ended && !w.Leaving && w.Streams.Known() && !w.Streams.Same(own) {
			streams, _ = w.Streams.Names()
			return w, streams
		}
	}
	return lease.Worker{}, nil
}
