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

// killers are what is known of records that end the process that handles them.
type killers struct {
	after  int                         // Options.SuspectAfter
	inHand map[hand][]judge.ID         // what handlers are at work with
	alone  map[judge.ID]int            // workers that crashed with it alone in hand, of its shard
	only   judge.ID                    // the one record that kills; only with a sink
	killed map[judge.ID]int            // workers, by the first record of those in hand that kills
	ended  map[string]bool             // sessions
	at     map[judge.ID]shard.Position // the checkpoint when a record last killed
	moved  map[judge.ID]int            // deaths of a record between which the checkpoint had moved
	// what workers said that they would try, a record by itself
	tried map[trial]bool
}

// trial is a record that a life has said it would try.
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

// suspectAfter is Options.SuspectAfter: elsewhere nothing is handled one by one, which takes its
// time.
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
	if w.letters == nil && w.killers.killed[id] >= w.killers.after { // or it would kill for ever
		return false
	}
	d := roll(w.seed, "kills "+id.String())
	if !d.chance(.01) {
		return false
	}
	// With a sink, records that were given up are read again, and two of them in a row are not
	// remembered for long enough. Without GiveUp, the pauses grow with each record that kills.
	if w.sink == nil && w.letters != nil {
		return true
	}
	if w.killers.only == (judge.ID{}) {
		w.killers.only = id
	}
	return w.killers.only == id
}

// hasInHand notes what a handler has in hand, nil when it returns, and reports whether one of these
// records is to end it.
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

// killsOneMore notes that a worker dies of a record, and that it must not be one too many.
func (w *world) killsOneMore(h *handling) {
	ids := h.judge.IDs
	i := slices.IndexFunc(ids, w.kills)
	if i < 0 {
		return
	}
	k := w.killers
	// Beside those that are to die: each time that the position had not been saved when they did,
	// others were tried in the same process, or what was noted did not come through.
	// With keys in parallel the checkpoint may also move between two deaths, by the other keys'
	// records, and deaths count at one position.
	l := w.books.last[lease.Key{Stream: h.batch.Stream, Shard: h.batch.Shard}]
	if at, some := k.at[ids[i]]; some && at != l.Position {
		k.moved[ids[i]]++
	}
	k.at[ids[i]] = l.Position
	if k.killed[ids[i]]++; k.killed[ids[i]]-k.moved[ids[i]] > k.after+1+mostMore {
		w.breaks("%s has killed %d workers, and is handed over still (%d in a batch): %s is noted of %s", ids[i], k.killed[ids[i]], len(ids), l.Deaths, &l)
	}
}

// mostMore is how many workers more than without faults a record may kill.
const mostMore = 8

// mourn notes what a life had when it crashed.
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

// countsAsDead notes that a session was ended.
func (w *world) countsAsDead(session string) {
	if w.killers != nil {
		w.killers.ended[session] = true // once, whoever ends it again
	}
}

// trials notes which records a worker says that it is about to try. It may crash before it does.
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

// diedTrying reports whether a worker crashed that was about to try a record, or was taken for dead
// because its beats did not come through.
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

// checkKilled holds the letter of a record that killed its workers to what was seen of them.
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
