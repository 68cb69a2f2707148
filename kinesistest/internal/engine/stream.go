package engine

import (
	"slices"
	"time"
)

// status is the status of a stream or consumer.
type status string

const (
	creating status = "CREATING"
	active   status = "ACTIVE"
	updating status = "UPDATING"
	deleting status = "DELETING"
)

// stream is one stream from its creation to its deletion. A re-created stream is a new value with
// another serial number.
type stream struct {
	name, arn string
	serial    uint64
	created   time.Time // millisecond precision

	status status
	steps  []step // pending changes in order; the status changes with the last one

	shards    []*shard          // sorted by number, without expired shards
	byNumber  map[uint32]*shard // the same shards
	open      []*shard          // sorted by hash range
	nextShard uint32

	onDemand      bool
	auto          bool   // records are spread over the shards, and partition keys are ignored
	rotation      uint64 // counts the records that auto spreads
	retention     time.Duration
	maxRecordKiB  int64
	kms           bool
	keyID         string
	warm          int64 // MiB/s; 0 if not set
	metrics       []string
	tags          map[string]string
	consumers     map[string]*consumer
	queues        map[string]*queue // by name
	scalings      rolling
	modeChanges   rolling
	encryptStarts rolling
	encryptStops  rolling
}

// step is a pending change of a stream.
type step struct {
	at time.Time
	do func(at time.Time)
}

// settle applies all changes of s that are due. It returns false if the stream has been deleted.
// The caller holds e.mu.
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

// change sets the status of s and schedules the changes. It spreads them evenly over StateDelay;
// the last change is applied at the end of the delay. Without a delay, all changes are applied
// before it returns. The caller holds e.mu.
func (e *Engine) change(s *stream, now time.Time, to status, changes ...func(at time.Time)) {
	s.status = to
	if len(changes) == 0 {
		changes = append(changes, func(time.Time) {})
	}
	for i, f := range changes {
		at := now.Add(e.stateDelay * time.Duration(i+1) / time.Duration(len(changes)))
		s.steps = append(s.steps, step{at, f})
	}
	s.wake() // subscriptions have to check when the first step is due
	e.settle(s, now)
}

// remove removes a stream and all data that belongs to it. The caller holds e.mu.
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

// horizon returns the arrival time before which records have expired.
func (s *stream) horizon(now time.Time) time.Time {
	h := now.Add(-s.retention)
	if h.Before(s.created) {
		return s.created
	}
	return h
}

// shard returns the shard with this number, after it removed the shard's expired records. It
// returns nil if the shard itself has expired. The caller holds e.mu.
func (e *Engine) shard(s *stream, number uint32, now time.Time) *shard {
	sh := s.byNumber[number]
	if sh == nil || e.expire(s, sh, now) {
		return nil
	}
	return sh
}

// expire drops the expired records of sh, and reports whether the shard itself has expired. The
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

// expireAll calls expire for all shards of s.
func (e *Engine) expireAll(s *stream, now time.Time) {
	for _, sh := range slices.Clone(s.shards) {
		e.expire(s, sh, now)
	}
}

// newShard adds an open shard with the next number. after is the earliest creation second that the
// shard may have.
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

// route returns the open shard whose hash range contains h.
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

// merge closes two adjacent shards and opens one in their place. a becomes the parent of the child
// shard, and b its adjacent parent.
func (s *stream) merge(a, b *shard, at time.Time) {
	r := hashRange{a.hashes.start, b.hashes.end}
	if a.hashes.start.compare(b.hashes.start) > 0 {
		r = hashRange{b.hashes.start, a.hashes.end}
	}
	a.children = s.reshard(at, []*shard{a, b}, r)
	b.children = a.children
}

// reshard closes the parent shards and opens shards with the given ranges in their place.
func (s *stream) reshard(at time.Time, parents []*shard, ranges ...hashRange) []child {
	// All parents close at the same time, which is not before the arrival of any of their records.
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
		// Sequence numbers of a child shard begin with a later second, so its first number is
		// larger than the parents' last numbers.
		after = max(after, p.second+1, seconds(at)+1)
	}
	opened := make([]child, len(ranges))
	for i, r := range ranges {
		// A child shard is created a millisecond later. Each point in time then belongs either to
		// the parents or to the children.
		sh := s.newShard(r, at.Add(time.Millisecond), after)
		sh.parents = ids
		opened[i] = child{id: sh.id, parents: ids, hashes: r}
	}
	return opened
}
