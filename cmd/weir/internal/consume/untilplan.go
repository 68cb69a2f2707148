package consume

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

// clockDifference is the largest difference between the clocks of this machine and of the service
// for which no record is missed. The lags of a shard compare the two clocks.
const clockDifference = 10 * time.Second

// handledSince reports whether all records of a shard that arrived before t are handled and saved.
// t must be before the worker's start, so every answer of the service is later than t.
func handledSince(s *weir.ShardStatus, t, now time.Time) bool {
	if s.Behind < 0 || s.SavedLag < 0 || s.Expired {
		return false // there was no answer yet, or the shard is not read
	}
	atTip := s.Reading == health.AtTip || s.Reading == health.Subscribed
	if atTip && s.Reason == s.Reading && s.Behind == 0 && s.Buffered == 0 && s.Keys == 0 && s.SavedLag == 0 && s.At == s.Saved {
		return true
	}
	return now.Add(-s.SavedLag).After(t.Add(clockDifference))
}

// term identifies one term of a shard.
type term struct {
	lease.Key
	epoch uint64
}

// progress contains the observations of a worker about its application since its start.
type progress struct {
	since   time.Time // the records that arrived before this time must be handled
	now     func() time.Time
	worker  string          // name of this worker
	streams map[string]bool // names of the streams that this worker reads
	listed  []lease.Key     // the shards of the streams, from the last listing

	own   map[term]bool // terms of this worker: whether the shard is handled up to since
	held  bool          // this worker has held a shard
	beats map[string]beat
}

// beat is the last heartbeat of a session that was seen.
type beat struct {
	count uint64
	moved time.Time // zero if only one count was seen
}

// see takes the status of the shards that this worker holds. It returns how many of them still have
// records to handle. Once a shard has none, it does not count again during the same term.
func (p *progress) see(shards []weir.ShardStatus) (behind int) {
	own := make(map[term]bool, len(shards))
	for i := range shards {
		s := &shards[i]
		if s.Reason == health.Abandoned {
			continue // the shard may belong to another worker
		}
		k := term{lease.Key{Stream: s.Stream, Shard: s.Shard}, s.Epoch}
		own[k] = p.own[k] || handledSince(s, p.since, p.now())
		if !own[k] {
			behind++
		}
	}
	p.own, p.held = own, p.held || len(own) > 0
	return behind
}

// decision is the result of a look at the store.
type decision struct {
	wait   string      // why this worker must not end yet; "" if it may
	tell   bool        // an operator should know the reason
	others []lease.Key // unfinished shards that other workers read
}

// decide returns whether this worker may end. All shards of p.own must be handled. Every other
// shard must be finished, belong to another live worker, or descend from such a shard.
func (p *progress) decide(v lease.View) (d decision) {
	p.heartbeats(v.Workers)
	a := assignment{progress: p, rows: make(map[lease.Key]*lease.Lease, len(v.Leases)), workers: map[string]*lease.Worker{}}
	for i := range v.Workers {
		a.workers[v.Workers[i].Session] = &v.Workers[i]
	}
	for i := range v.Leases {
		l := &v.Leases[i]
		a.rows[l.Key] = l
		if _, mine := p.own[term{l.Key, l.Epoch}]; mine {
			a.session = l.Owner
		}
	}
	for _, k := range p.listed {
		if a.rows[k] == nil {
			return decision{wait: fmt.Sprintf("shard %s has no lease yet", k)}
		}
	}
	var waits []lease.Key
	first := ""
	for i := range v.Leases {
		l := &v.Leases[i]
		if !p.streams[l.Stream] {
			continue
		}
		switch by, why := a.of(l); by {
		case owed:
			if slices.Contains(v.Paused, "") || slices.Contains(v.Paused, l.Stream) {
				return decision{wait: fmt.Sprintf("stream %s is paused", l.Stream), tell: true}
			}
			if waits = append(waits, l.Key); len(waits) == 1 {
				first = why
			}
		case others:
			d.others = append(d.others, l.Key)
		case finished, mine:
		}
	}
	if len(waits) > 0 {
		wait, tell := owing(waits, first, v, p.alive)
		return decision{wait: wait, tell: tell}
	}
	if len(d.others) > 0 && !p.held {
		return decision{wait: "other workers have all shards; this worker takes over if one of them ends", tell: true}
	}
	return d
}

// readBy is the worker that reads a shard.
type readBy uint8

const (
	finished readBy = iota // the shard was read to its end
	mine                   // this worker reads it, and has handled enough of it
	others                 // another live worker reads it, or its ancestors
	owed                   // this worker may get it
)

// assignment is one view of the store.
type assignment struct {
	*progress
	session string // of this worker; "" if unknown
	rows    map[lease.Key]*lease.Lease
	workers map[string]*lease.Worker
}

// of returns which worker reads a shard. why is the reason if the result is owed.
func (a *assignment) of(l *lease.Lease) (by readBy, why string) {
	if l.Finished() {
		return finished, ""
	}
	if _, own := a.own[term{l.Key, l.Epoch}]; own {
		return mine, ""
	}
	if l.Owner != "" {
		return a.ofOwner(l)
	}
	waits := false // for ancestors that other workers read
	for _, id := range l.Parents {
		parent := a.rows[lease.Key{Stream: l.Stream, Shard: id}]
		if parent == nil || parent.Finished() {
			continue
		}
		if by, _ := a.of(parent); by != others {
			return owed, "waits for its parent " + id
		}
		waits = true
	}
	if waits {
		return others, ""
	}
	return owed, noOwner
}

const noOwner = "has no owner yet"

// ofOwner does the same for a shard that has an owner.
func (a *assignment) ofOwner(l *lease.Lease) (by readBy, why string) {
	owner := a.workers[l.Owner]
	switch {
	case a.maybeMe(l.Owner), a.maybeMe(l.NextOwner()):
		return owed, "is about to come to this worker"
	case owner == nil, owner.Ended, !a.alive(owner):
		return owed, "has an owner that may be dead"
	case owner.Leaving:
		return owed, "has an owner that stops"
	}
	return others, ""
}

// maybeMe reports whether a session may be that of this worker. Before this worker has held a
// shard, only its name is known.
func (a *assignment) maybeMe(session string) bool {
	if session == "" {
		return false
	}
	if a.session != "" {
		return session == a.session
	}
	w := a.workers[session]
	return w != nil && w.Name == a.worker
}

// alive reports whether a heartbeat of a session was seen within the last three heartbeat
// intervals, or within two looks at the store if that is longer.
func (p *progress) alive(w *lease.Worker) bool {
	moved := p.beats[w.Session].moved
	return !moved.IsZero() && p.now().Sub(moved) <= max(3*w.Times.Or(lease.DefaultTimes).Heartbeat, 2*storeEvery)
}

// heartbeats notes which sessions had a heartbeat since the last view.
func (p *progress) heartbeats(workers []lease.Worker) {
	now, beats := p.now(), map[string]beat{}
	for i := range workers {
		w := &workers[i]
		b, known := p.beats[w.Session]
		if known && b.count != w.Heartbeats {
			b.moved = now
		}
		b.count = w.Heartbeats
		beats[w.Session] = b
	}
	p.beats = beats
}
