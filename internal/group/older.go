package group

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/lease"
)

// olderLeader is the state about a leader whose version does not report the streams that it reads.
// Such a leader only lists and assigns its own streams. Other streams wait until another worker
// leads.
type olderLeader struct {
	session string
	askAt   time.Time
	asking  atomic.Bool // a goroutine is looking for waiting streams

	told []string // streams that were logged; owned by that goroutine
}

// watchOlder checks once per ListInterval whether streams wait because of an older leader. It
// queries the store only if this worker reads a stream and holds no lease of that stream.
func (w *worker) watchOlder(leader lease.Leader, now time.Time) {
	if w.names == nil || leader.Session == "" || leader.Session == w.session || leader.Streams.Known() || w.lead != nil || !w.stopping.IsZero() {
		w.older = nil
		return
	}
	if w.older == nil || w.older.session != leader.Session {
		w.older = &olderLeader{session: leader.Session, askAt: now.Add(w.cfg.ListInterval)}
		return
	}
	o := w.older
	if now.Before(o.askAt) {
		return
	}
	o.askAt = now.Add(w.cfg.ListInterval)
	names := slices.DeleteFunc(slices.Clone(w.names), w.holdsSome)
	if len(names) == 0 || !o.asking.CompareAndSwap(false, true) {
		return
	}
	ctx := w.validity.context(nil)
	w.running.Go(func() {
		defer o.asking.Store(false)
		o.look(ctx, names, w.cfg)
	})
}

// holdsSome reports whether the worker holds a lease of the stream.
func (w *worker) holdsSome(stream string) bool {
	for key := range w.terms {
		if key.Stream == stream {
			return true
		}
	}
	return false
}

// look logs each waiting stream among names once.
func (o *olderLeader) look(ctx context.Context, names []string, cfg Config) {
	call, cancel := context.WithTimeout(ctx, cfg.Times.Failover/2)
	defer cancel()
	view, err := cfg.Store.View(call, cfg.App, "")
	if err != nil {
		if ctx.Err() == nil {
			cfg.Host.CallFailed(event.OpView, err, time.Now())
		}
		return
	}
	if view.Leader.Session != o.session {
		return
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !waits(name, view.Leases) || slices.Contains(o.told, name) })
	if len(names) > 0 {
		o.told = append(o.told, names...)
		cfg.Log.Warn("streams are not read yet, because the leader runs an older version, which assigns only shards of its own streams; stop the workers of the older version",
			"streams", names, "leader_session", o.session)
	}
}

// waits reports whether a stream has no lease, or has unfinished shards and no lease with an owner.
func waits(stream string, leases []lease.Lease) bool {
	known, open := false, false
	for i := range leases {
		l := &leases[i]
		if l.Stream != stream {
			continue
		}
		if l.Owner != "" {
			return false
		}
		known, open = true, open || !l.Finished()
	}
	return open || !known
}
