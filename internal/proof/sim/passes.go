package sim

import (
	"strings"

	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
	"github.com/weir-go/weir/lease"
)

// If a filter drops records, an owner may read for long before it finds a record for its handler.
// Kinesis allows 5 reads/s of a shard, and a read has at most Options.Batch records: with a batch
// of 3, a backlog of 1,200 dropped records takes 80 s. The checkpoint does not show this work if
// the records lie before it, which happens after a sink was restored from a backup. So the waiting
// time of a shard restarts with each answer that has only dropped or handled records, and takes the
// reader farther than any answer before it.
//
// Three rules keep that strict. A record that its handler should get ends it: later records do not
// count until it is handled. An answer without new records does not count. And a lease that moves
// after the faults have ended counts once for each life of a worker, so that leases that move
// forever do not hide behind the records that each owner reads again.

// reading is how far a shard's answers have taken a reader.
type reading struct {
	reached uint64 // the sequence number of the last record
	passed  int    // the number of leading containers without a record to handle
}

// reached returns the sequence number of the last record in an answer of Kinesis, 0 if there is no
// record.
func (r reply) reached() uint64 {
	switch got := r.value.(type) {
	case httpAnswer:
		if !got.broken {
			return got.Reached
		}
	case sent:
		return got.reached
	}
	return 0
}

// noteRead records an answer about a shard whose records are filtered.
func (w *world) noteRead(c *call, r reply) {
	reached := r.reached()
	if w.filters == nil || reached == 0 {
		return
	}
	key := leaseAbout(c.about)
	d, st := w.duties.leases[key], w.streamNamed(key.Stream)
	if d == nil || d.by != c.life || st == nil || st.now == nil {
		return
	}
	kept := w.books.kept[nameOf(st.now, key.Shard)]
	if d.reading.advances(kept, reached, w.judge.Wants) {
		d.read = w.now()
	}
	if w.stage != settling {
		return
	}
	of := c.life.settling[key]
	if of.advances(kept, reached, w.judge.Wants) {
		w.duties.late = w.now()
	}
	if c.life.settling == nil {
		c.life.settling = map[lease.Key]reading{}
	}
	c.life.settling[key] = of
}

// advances records that an answer ends with a record, and reports whether that is progress: the
// answer ends farther than any before, and no record up to there is wanted by a handler.
func (r *reading) advances(kept []container, reached uint64, wants func(judge.ID) bool) bool {
	if reached <= r.reached {
		return false
	}
	r.reached = reached
	number := model.Number(reached)
	for ; r.passed < len(kept) && kept[r.passed].number <= number; r.passed++ {
		for _, id := range kept[r.passed].ids {
			if wants(id) {
				return false
			}
		}
	}
	return true
}

// noteFinished notes records that a life has handled or given up. If their shard's former owner
// had given up records, the life may have to handle all of these again, and each bad one may take
// as long as the first time. So since the end of the faults each record counts as progress, once
// for each life.
func (w *world) noteFinished(l *life, ids []judge.ID) {
	if w.stage != settling || w.letters == nil && w.killers == nil {
		return
	}
	if l.finished == nil {
		l.finished = map[judge.ID]bool{}
	}
	for _, id := range ids {
		if !l.finished[id] {
			l.finished[id] = true
			w.duties.late = w.now()
		}
	}
}

// leaseAbout returns the key of the lease in a call's subject.
func leaseAbout(about string) lease.Key {
	if stream, shard, other := strings.Cut(about, "/"); other {
		return lease.Key{Stream: stream, Shard: shard}
	}
	return lease.Key{Stream: firstStream, Shard: about}
}
