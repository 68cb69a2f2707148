package judge

import "time"

// explained checks that there is a reason for handling a record again.
func (j *Judge) explained(b *Batch, id ID, r *record) {
	j.Again++
	if b.Repeats[id] {
		return
	}
	since := r.at.Add(-j.Grace)
	explained := j.faulty(r.by, since)
	if s := j.shard(b.Shard); j.Span > 0 && !explained && r.epoch != b.Epoch {
		r.acked = false // the reason counts once, no matter how often the handler fails now
		if s.again++; s.again > j.Span {
			j.breaks("%s is handed more than %d records of %s again at epoch %d, such as %s", b.Worker, j.Span, b.Shard, b.Epoch, id)
		}
		return
	}
	switch {
	case r.by == b.Worker && r.epoch == b.Epoch && !j.shard(b.Shard).doubted && (j.Span == 0 && (r.acked || !b.Unsure) || !explained):
		j.breaks("%s is handed %s in %s again at the same epoch %d", b.Worker, id, b.Shard, b.Epoch)
	case !explained:
		j.breaks("%s is handed %s in %s (epoch %d), which %s had handled (epoch %d) %v before, and nothing had happened to that",
			b.Worker, id, b.Shard, b.Epoch, r.by, r.epoch, j.now.Sub(r.at))
	}
}

// faulty reports whether a fault has affected the worker, or all workers, since a time.
func (j *Judge) faulty(w Worker, since time.Time) bool {
	return j.faults[w].After(since) || j.general.After(since)
}
