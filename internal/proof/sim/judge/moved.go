package judge

import "time"

// Doubted notes that the progress of a shard may be lost. The shard may then be handled again at
// any epoch.
func (j *Judge) Doubted(id string) { j.shard(id).doubted = true }

// MayPass notes that a checkpoint may pass a record that was not handled. The position of a sink
// makes weir handle the record later.
func (j *Judge) MayPass(id ID) {
	if r := j.record(id); r != nil {
		r.undone = true
	}
}

// Undone notes that the effect of a record is lost, so it must be handled again.
func (j *Judge) Undone(id ID, now time.Time) {
	r := j.record(id)
	if r == nil || !r.done {
		return
	}
	r.done, r.acked, r.undone = false, false, true
	j.low[id.Key] = min(j.low[id.Key], id.N-1)
	s := j.shard(r.shard)
	s.low = min(s.low, r.place)
	s.over = false
	if r.exempt {
		return
	}
	j.missing++
	if s.left++; s.left == 1 {
		s.since = now
	}
}

// Moved notes that an operator moved the checkpoint of a shard. epoch is the new epoch of its
// lease. The records in after must be handled from now on, even if they were done. The records in
// before need not be handled any more. Further progress of earlier owners does not count, because
// it is not saved.
func (j *Judge) Moved(shard string, epoch uint64, before, after []ID, now time.Time) {
	s := j.shard(shard)
	s.counts = max(s.counts, epoch)
	for _, id := range before {
		j.Exempt(id)
	}
	for _, id := range after {
		r := j.record(id)
		if r.dropped {
			continue
		}
		if r.done || r.exempt {
			j.missing++
			if s.left++; s.left == 1 {
				s.since = now
			}
		}
		r.done, r.exempt, r.acked, r.letter, s.over = false, false, false, false, false
		j.low[id.Key] = min(j.low[id.Key], id.N-1)
		s.low = min(s.low, r.place)
	}
}

// stale reports whether the progress of a batch does not count.
func (j *Judge) stale(b *Batch) bool { return b.Stale || b.Epoch < j.shard(b.Shard).counts }
