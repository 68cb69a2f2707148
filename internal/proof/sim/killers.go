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

// killers contains the data about records that end their process.
type killers struct {
	after  int                 // Options.SuspectAfter
	inHand map[hand][]judge.ID // records in running handlers
	// workers that crashed while it was the only one in hand, of its shard
	alone  map[judge.ID]int
	only   judge.ID                    // the only record that kills; only with a sink
	killed map[judge.ID]int            // killed workers, by the first killing record in hand
	ended  map[string]bool             // sessions
	at     map[judge.ID]shard.Position // the checkpoint when a record last killed
	moved  map[judge.ID]int            // deaths of a record before which the checkpoint had moved
	// records that workers announced to try alone
	tried map[trial]bool
}

// trial is a record that a life announced to try alone.
type trial struct {
	life    *life
	session string
	about   string
	record  shard.Position
}

// hand identifies a call of a handler in one life: by its shard, and by its key if there is one.
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

// suspectAfter returns Options.SuspectAfter: in other profiles nothing is handled one by one,
// because that is slow.
func (w *world) suspectAfter() int {
	if w.killers == nil {
		return -1
	}
	return w.killers.after
}

// kills decides whether a record ends the process that handles it.
func (w *world) kills(id judge.ID) bool {
	if w.killers == nil {
		return false
	}
	// otherwise it would kill forever
	if w.letters == nil && w.killers.killed[id] >= w.killers.after {
		return false
	}
	d := roll(w.seed, "kills "+id.String())
	if !d.chance(.01) {
		return false
	}
	// With a sink, dead-lettered records are read again, and two of them in a row are not
	// remembered for long enough. Without GiveUp, the pauses grow with each record that kills.
	if w.sink == nil && w.letters != nil {
		return true
	}
	if w.killers.only == (judge.ID{}) {
		w.killers.only = id
	}
	return w.killers.only == id
}

// hasInHand records a handler's current records, nil when it returns, and reports whether one of
// them ends it.
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

// killsOneMore records that a worker dies of a record, and checks the maximum.
func (w *world) killsOneMore(h *handling) {
	ids := h.judge.IDs
	i := slices.IndexFunc(ids, w.kills)
	if i < 0 {
		return
	}
	k := w.killers
	// More workers than intended may die: if the position had not been saved when they died, others
	// were tried in the same process, or the announcement was lost. With keys in parallel, records
	// of other keys may move the checkpoint between two deaths, and deaths count at one position.
	l := w.books.last[lease.Key{Stream: h.batch.Stream, Shard: h.batch.Shard}]
	if at, some := k.at[ids[i]]; some && at != l.Position {
		k.moved[ids[i]]++
	}
	k.at[ids[i]] = l.Position
	if k.killed[ids[i]]++; k.killed[ids[i]]-k.moved[ids[i]] > k.after+1+mostMore {
		w.breaks("%s has killed %d workers, and is handed over still (%d in a batch): %s is noted of %s", ids[i], k.killed[ids[i]], len(ids), l.Deaths, &l)
	}
}

// mostMore is how many more workers than without faults a record may kill.
const mostMore = 8

// mourn records what a life had in hand when it crashed.
func (w *world) mourn(l *life) {
	k := w.killers
	if k == nil {
		return
	}
	others := map[string]int{} // records in hand by shard
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

// countsAsDead records that a session was ended.
func (w *world) countsAsDead(session string) {
	if w.killers != nil {
		w.killers.ended[session] = true // once, for any later end
	}
}

// trials records which records a worker announces to try. It may crash before it does.
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

// diedTrying reports whether a worker crashed that was about to try a record, or was declared dead
// because its heartbeats were lost.
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

// sameRecord reports whether a position is the one after the record of a letter.
func sameRecord(after shard.Position, letter string) bool {
	return after.String() == letter || after.SequenceNumber() == letter
}

// checkKilled compares the letter of a record that killed its workers with the observations.
func (w *world) checkKilled(letter deadletter.Letter, id judge.ID, together int) string {
	k := w.killers
	switch {
	case k == nil:
		return fmt.Sprintf("%s is given up as one that kills, where none is looked for", id)
	case together != 1:
		return fmt.Sprintf("%s is given up as one that kills, with %d others", id, together-1)
	case k.alone[id] == 0 && !w.diedTrying(about(letter.Stream, letter.Shard), letter.Position):
		return fmt.Sprintf("%s is given up as one that kills, and nobody died with it alone", id)
	case letter.Attempts < k.after:
		return fmt.Sprintf("%s is given up after %d workers died, not %d", id, letter.Attempts, k.after)
	case letter.Attempts > len(k.ended):
		return fmt.Sprintf("%s is given up after %d workers died, it says; %d did", id, letter.Attempts, len(k.ended))
	}
	return ""
}
