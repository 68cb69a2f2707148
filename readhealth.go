package weir

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// What is noted, found out and told about reading, besides each failure by itself.

// noteHandled notes that something was handled by now, or that there was nothing.
func (l *shardLoop) noteHandled(bytes int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.well = true
	if bytes > 0 {
		l.rate.Add(bytes, now)
	}
}

// load is what the shard brings.
func (l *shardLoop) load(now time.Time) lease.Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return lease.LoadOf(l.rate.Now(now))
}

const (
	// probeTimeout bounds a probe, which is a few calls for each of probeStreams streams at most.
	probeTimeout = 5 * time.Second
	probeStreams = 3
)

// probe tries to read from some of the streams, and notes what came of it.
func (r *run) probe(ctx context.Context, n int) {
	call, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	names := r.streams.Names()
	var err error
	for i := range min(probeStreams, len(names)) {
		if err = streams.Probe(call, r.client, r.caller, r.streams.Stream(names[(n+i)%len(names)]), n); err == nil {
			break
		}
	}
	if err == nil {
		err = r.lineage.Probe(call)
	}
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	before := r.isolation.Why
	r.isolation.Probed(time.Now(), err)
	after := r.isolation.Why
	r.mu.Unlock()
	switch {
	case before == nil && after != nil:
		r.opts.Logger.Error("this worker can read no shard of any stream; it asks for no more of them until it can", "err", after)
	case before != nil && after == nil:
		r.opts.Logger.Info("this worker can read again")
	}
}

// tellReading tells of shards that are read in vain, or again.
func (r *run) tellReading(changes []supervise.Change, now time.Time) {
	sum := supervise.Summarize(changes)
	for _, c := range sum.Named {
		if c.Err != nil {
			r.opts.Logger.Warn("reading a shard fails again and again; it goes on being tried", "stream", c.Key.Stream, "shard", c.Key.Shard,
				"for", now.Sub(c.Since).Round(time.Second), "err", c.Err)
		} else {
			r.opts.Logger.Info("the shard is read again", "stream", c.Key.Stream, "shard", c.Key.Shard)
		}
	}
	for _, m := range sum.More {
		if m.Fail {
			r.opts.Logger.Warn("reading other shards of the stream fails too; they go on being tried", "stream", m.Stream, "shards", m.Shards)
		} else {
			r.opts.Logger.Info("other shards of the stream are read again", "stream", m.Stream, "shards", m.Shards)
		}
	}
}
