package sim

import (
	"strings"

	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
	"github.com/weir-go/weir/lease"
)

// This file decides what counts as progress while an owner reads records that a filter drops. An
// owner may read for long before it finds a record for its handler. Kinesis allows 5 reads per
// second from a shard, and a read returns at most Options.Batching.MaxRecords records. With a batch
// of 3, reading 1,200 dropped records takes 80 s. If these records lie before the checkpoint, the
// checkpoint does not show this work. That happens after a sink was restored from a backup. So the
// waiting time of a shard starts again with each answer that has only dropped or handled records
// and that takes the reader farther than all earlier answers.
//
// Three rules keep this strict. First, if a record is for the handler, later records do not count
// until that record is handled. Second, an answer without new records does not
// count. Third, a lease that moves after the end of the faults counts only once for each life of a
// worker. Otherwise leases could move forever, because each new owner reads the same records again.

// reading is the progress of a reader in a shard, according to the answers of Kinesis.
type reading struct {
	reached uint64 // sequence number of the last record
	passed  int    // number of leading containers without a record that must be handled
}

// reached returns the sequence number of the last record in an answer of Kinesis. It returns 0 if
// there is no record.
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

// noteRead notes an answer about a shard whose records are filtered.
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

// advances notes the last record of an answer. It reports whether the answer is progress: it
// reaches farther than all earlier answers, and no record up to there is wanted by a handler.
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

// noteFinished notes that a life has handled or dead-lettered records. The previous owner of the
// shard may have dead-lettered records that this life has to handle again. Each bad record may take
// as long as the first time. So, since the end of the faults, each record counts as progress once
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

// leaseAbout returns the key of the lease that a call is about.
func leaseAbout(about string) lease.Key {
	if stream, shard, other := strings.Cut(about, "/"); other {
		return lease.Key{Stream: stream, Shard: shard}
	}
	return lease.Key{Stream: firstStream, Shard: about}
}
