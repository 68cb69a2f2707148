package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// killers contains the data about records that end the process that handles them.
type killers struct {
	after  int                 // value of Options.OnFailure.SuspectAfter
	inHand map[hand][]judge.ID // records in running handlers
	// alone counts, for each record, the workers that crashed while it was the only record of its
	// shard in a handler.
	alone  map[judge.ID]int
	only   judge.ID                    // the only record that kills; set only with a sink
	killed map[judge.ID]int            // number of killed workers, by the first killing record in the handler
	ended  map[string]bool             // ended sessions
	at     map[judge.ID]shard.Position // the checkpoint when a record last killed a worker
	moved  map[judge.ID]int            // number of deaths of a record before which the checkpoint had moved
	// tried contains the announcements of lives that they will handle a record alone.
	tried map[trial]bool
}

// trial is an announcement of a life that it will handle a record alone.
type trial struct {
	life    *life
	session string
	about   string
	record  shard.Position
}

// hand identifies a call of a handler in one life: by its shard, and by its key if it has one.
type hand struct {
	life  *life
	about string
	key   string
}

func (w *world) makeKillers() {
	if !w.profile.Killers {
		return
	}
	d := roll(w.seed, "killers")
	w.killers = &killers{after: 1 + d.below(3), inHand: map[hand][]judge.ID{}, alone: map[judge.ID]int{}, tried: map[trial]bool{}, ended: map[string]bool{}, killed: map[judge.ID]int{}, at: map[judge.ID]shard.Position{}, moved: map[judge.ID]int{}}
}

// suspectAfter returns Options.OnFailure.SuspectAfter. In profiles without killers it is off,
// because handling records one by one is slow.
func (w *world) suspectAfter() int {
	if w.killers == nil {
		return -1
	}
	return w.killers.after
}

// kills reports whether a record ends the process that handles it.
func (w *world) kills(id judge.ID) bool {
	if w.killers == nil {
		return false
	}
	// Without dead letters, the record would kill workers forever, so it stops killing them after
	// some deaths.
	if w.letters == nil && w.killers.killed[id] >= w.killers.after {
		return false
	}
	d := roll(w.seed, "kills "+id.String())
	if !d.chance(.01) {
		return false
	}
	// Let several records kill only if there are dead letters and no sink. With a sink,
	// dead-lettered records are read again, and weir does not remember two killing records in a row
	// for long enough. Without dead letters, the pauses get longer with each killing record.
	if w.sink == nil && w.letters != nil {
		return true
	}
	if w.killers.only == (judge.ID{}) {
		w.killers.only = id
	}
	return w.killers.only == id
}

// hasInHand notes the current records of a handler, or nil when the handler returns. It reports
// whether one of the records ends the process.
func (w *world) hasInHand(l *life, of hand, ids []judge.ID) (kills bool) {
	if w.killers == nil {
		return false
	}
	of.life = l
	delete(w.killers.inHand, of)
	if len(ids) > 0 {
		w.killers.inHand[of] = ids
	}
	for _, id := range ids {
		kills = kills || w.kills(id)
	}
	return kills
}

// killsOneMore notes that a record kills a worker. It checks that the record has not killed too
// many workers.
func (w *world) killsOneMore(h *handling) {
	ids := h.judge.IDs
	i := slices.IndexFunc(ids, w.kills)
	if i < 0 {
		return
	}
	k := w.killers
	if w.stage == settling {
		w.meanwhile.killed++
	}
	// More workers than intended may die in some cases. The position may not have been saved when
	// they died. Other records may have been tried in the same process. The announcement may have
	// been lost. With parallel keys, records of other keys may move the checkpoint between two
	// deaths, and weir counts deaths at one position.
	l := w.books.last[lease.Key{Stream: h.batch.Stream, Shard: h.batch.Shard}]
	if at, some := k.at[ids[i]]; some && at != l.Position {
		k.moved[ids[i]]++
	}
	k.at[ids[i]] = l.Position
	if k.killed[ids[i]]++; k.killed[ids[i]]-k.moved[ids[i]] > k.after+1+mostMore {
		w.breaks("%s has killed %d workers, and is handed over still (%d in a batch): %s is noted of %s", ids[i], k.killed[ids[i]], len(ids), l.Deaths, &l)
	}
}

// mostMore is the number of additional workers that a record may kill because of faults.
const mostMore = 8

// mourn notes which records a life was handling when it crashed.
func (w *world) mourn(l *life) {
	k := w.killers
	if k == nil {
		return
	}
	others := map[string]int{} // current records by shard
	for h, ids := range k.inHand {
		if h.life == l {
			others[h.about] += len(ids)
		}
	}
	for h, ids := range k.inHand {
		if h.life == l {
			if others[h.about] == 1 {
				k.alone[ids[0]]++
			}
			delete(k.inHand, h)
		}
	}
}

// countsAsDead notes that a session was ended.
func (w *world) countsAsDead(session string) {
	if w.killers != nil {
		w.killers.ended[session] = true // set once; the reason for the end does not matter
	}
}

// trials notes which records a worker has announced to handle alone. The worker may crash before it
// handles them.
func (w *world) trials(l *life, session string, progress []lease.Progress) {
	if w.killers == nil {
		return
	}
	for _, p := range progress {
		if d := lease.ParseDeaths(p.Deaths); d.Trial != 0 {
			w.killers.tried[trial{l, session, about(p.Stream, p.Shard), d.Record}] = true
		}
	}
}

// diedTrying reports whether a worker that was about to handle a record alone has crashed. It also
// reports true if the worker was declared dead because its heartbeats were lost.
func (w *world) diedTrying(shardOf, position string) bool {
	v, err := w.store.View(context.Background(), w.app, "")
	if err != nil {
		w.breaks("%v", err)
	}
	for t := range w.killers.tried {
		lives := slices.ContainsFunc(v.Workers, func(s lease.Worker) bool { return s.Session == t.session && !s.Ended })
		if (!lives || t.life.dead.Load()) && t.about == shardOf && sameRecord(t.record, position) {
			return true
		}
	}
	return false
}

// sameRecord reports whether a position is directly after a record. letter is the position or the
// sequence number in the dead letter of that record.
func sameRecord(after shard.Position, letter string) bool {
	return after.String() == letter || after.SequenceNumber() == letter
}

// checkKilled compares the dead letter of a record that killed workers with what was observed.
func (w *world) checkKilled(letter deadletter.Letter, id judge.ID, together int) string {
	k := w.killers
	switch {
	case k == nil:
		return fmt.Sprintf("%s is dead-lettered as one that kills, where none is looked for", id)
	case together != 1:
		return fmt.Sprintf("%s is dead-lettered as one that kills, with %d others", id, together-1)
	case k.alone[id] == 0 && !w.diedTrying(about(letter.Stream, letter.Shard), letter.Position):
		return fmt.Sprintf("%s is dead-lettered as one that kills, but no worker died while it handled only this record", id)
	case letter.Attempts < k.after:
		return fmt.Sprintf("%s is dead-lettered after %d workers died, not %d", id, letter.Attempts, k.after)
	case letter.Attempts > len(k.ended):
		return fmt.Sprintf("%s is dead-lettered after %d deaths of workers according to its dead letter, but %d died", id, letter.Attempts, len(k.ended))
	}
	return ""
}
