package engine

import (
	"slices"
	"time"
)

// status of a stream or consumer.
type status string

const (
	creating status = "CREATING"
	active   status = "ACTIVE"
	updating status = "UPDATING"
	deleting status = "DELETING"
)

// stream is one stream during one lifetime: a re-created one is another value with another serial
// number.
type stream struct {
	name, arn string
	serial    uint64
	created   time.Time // millisecond precision

	status status
	steps  []step // pending changes, in order; the last one ends the status

	shards    []*shard          // by number, without expired ones
	byNumber  map[uint32]*shard // the same
	open      []*shard          // by hash range
	nextShard uint32

	onDemand      bool
	auto          bool   // records are spread, and partition keys are ignored
	rotation      uint64 // of auto
	retention     time.Duration
	maxRecordKiB  int64
	kms           bool
	keyID         string
	warm          int64 // MiB/s, 0 if not set
	metrics       []string
	tags          map[string]string
	consumers     map[string]*consumer
	scalings      rolling
	modeChanges   rolling
	encryptStarts rolling
	encryptStops  rolling
}

// step is a pending change.
type step struct {
	at time.Time
	do func(at time.Time)
}

// settle applies all due changes of s. It returns false if the stream is gone. The caller holds
// e.mu.
func (e *Engine) settle(s *stream, now time.Time) bool {
	for len(s.steps) > 0 && !s.steps[0].at.After(now) {
		next := s.steps[0]
		s.steps = s.steps[1:]
		next.do(next.at)
		if len(s.steps) == 0 {
			if s.status == deleting {
				e.remove(s)
				return false
			}
			s.status = active
		}
	}
	for name, c := range s.consumers {
		if !c.settle(now) {
			delete(s.consumers, name)
			c.forget(e)
		}
	}
	return true
}

// change sets the status of s and applies the changes, spread evenly over the delay of states, the
// last one at its end. Without a delay all are applied on return. The caller holds e.mu.
func (e *Engine) change(s *stream, now time.Time, to status, changes ...func(at time.Time)) {
	s.status = to
	if len(changes) == 0 {
		changes = append(changes, func(time.Time) {})
	}
	for i, f := range changes {
		at := now.Add(e.stateDelay * time.Duration(i+1) / time.Duration(len(changes)))
		s.steps = append(s.steps, step{at, f})
	}
	s.wake() // to check when the first step is due
	e.settle(s, now)
}

// remove removes a stream and its dependent data. The caller holds e.mu.
func (e *Engine) remove(s *stream) {
	for _, sh := range s.shards {
		e.bytes -= sh.bytes
	}
	for _, c := range s.consumers {
		c.forget(e)
	}
	s.wake()
	delete(e.streams, s.name)
	delete(e.bySerial, s.serial)
	delete(e.policies, s.arn)
	for action, limit := range callLimits {
		if limit.perStream {
			delete(e.calls, action+"/"+s.name)
		}
	}
}

// horizon returns the arrival time of the oldest records that are kept.
func (s *stream) horizon(now time.Time) time.Time {
	h := now.Add(-s.retention)
	if h.Before(s.created) {
		return s.created
	}
	return h
}

// shard returns a shard by number, without expired records, or nil if the shard itself has expired.
// The caller holds e.mu.
func (e *Engine) shard(s *stream, number uint32, now time.Time) *shard {
	sh := s.byNumber[number]
	if sh == nil || e.expire(s, sh, now) {
		return nil
	}
	return sh
}

// expire drops the expired records of sh and reports whether the shard itself has expired. The
// caller holds e.mu.
func (e *Engine) expire(s *stream, sh *shard, now time.Time) bool {
	e.bytes -= sh.trim(now.Add(-s.retention).UnixMilli())
	if sh.isOpen() || now.Sub(sh.closed) <= s.retention {
		return false
	}
	e.bytes -= sh.bytes
	sh.bytes = 0
	delete(s.byNumber, sh.number)
	if i := slices.Index(s.shards, sh); i >= 0 {
		s.shards = slices.Delete(s.shards, i, i+1)
	}
	for _, c := range s.consumers {
		delete(c.holds, sh.number)
	}
	sh.wake()
	return true
}

// expireAll is expire for all shards of s.
func (e *Engine) expireAll(s *stream, now time.Time) {
	for _, sh := range slices.Clone(s.shards) {
		e.expire(s, sh, now)
	}
}

// newShard adds an open shard. Its number and first sequence number are larger than all before;
// after is the latest of its parents' creation seconds.
func (s *stream) newShard(r hashRange, created time.Time, after uint64) *shard {
	sh := &shard{
		number: s.nextShard, id: shardID(s.nextShard), hashes: r,
		created: created, second: max(seconds(created), after), latest: created.UnixMilli(),
		nextIndex: 1, base: 1,
	}
	s.nextShard++
	sh.first = sequence{created: sh.second, shard: sh.number, arrival: sh.second}.String()
	s.shards = append(s.shards, sh)
	s.byNumber[sh.number] = sh
	i, _ := slices.BinarySearchFunc(s.open, r.start, func(o *shard, at hashKey) int { return o.hashes.start.compare(at) })
	s.open = slices.Insert(s.open, i, sh)
	return sh
}

// route returns the open shard whose range contains a hash.
func (s *stream) route(h hashKey) *shard {
	i, exact := slices.BinarySearchFunc(s.open, h, func(o *shard, at hashKey) int { return o.hashes.start.compare(at) })
	if !exact {
		i--
	}
	return s.open[i]
}

// split closes sh and opens two shards in its place.
func (s *stream) split(sh *shard, at time.Time, start hashKey) {
	opened := s.reshard(at, []*shard{sh}, hashRange{sh.hashes.start, start.prev()}, hashRange{start, sh.hashes.end})
	sh.children = opened
}

// merge closes two adjacent shards and opens one in their place. The first argument becomes the
// child's parent, the second the adjacent parent.
func (s *stream) merge(a, b *shard, at time.Time) {
	r := hashRange{a.hashes.start, b.hashes.end}
	if a.hashes.start.compare(b.hashes.start) > 0 {
		r = hashRange{b.hashes.start, a.hashes.end}
	}
	a.children = s.reshard(at, []*shard{a, b}, r)
	b.children = a.children
}

// reshard closes open shards and opens others in their place.
func (s *stream) reshard(at time.Time, parents []*shard, ranges ...hashRange) []child {
	// Not before a record with a later time, and all at once.
	at = at.Truncate(time.Millisecond)
	for _, p := range parents {
		if latest := time.UnixMilli(p.latest); latest.After(at) {
			at = latest
		}
	}
	var after uint64
	ids := make([]string, len(parents))
	for i, p := range parents {
		p.close(at)
		s.open = slices.DeleteFunc(s.open, func(o *shard) bool { return o == p })
		ids[i] = p.id
		// A child is created a second later by the clock of sequence numbers, so that its first
		// number is larger than the last of its parents.
		after = max(after, p.second+1, seconds(at)+1)
	}
	opened := make([]child, len(ranges))
	for i, r := range ranges {
		// A millisecond later, so that each instant belongs to one generation.
		sh := s.newShard(r, at.Add(time.Millisecond), after)
		sh.parents = ids
		opened[i] = child{id: sh.id, parents: ids, hashes: r}
	}
	return opened
}
