package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// books contains the previous state, with which each step is compared.
type books struct {
	home   map[judge.ID]string       // the shard of each record
	kept   map[string][]container    // the containers in each shard, in order
	passed map[string]int            // number of these before the checkpoint
	at     map[epochOf]string        // shard of a lease, by epoch
	last   map[lease.Key]lease.Lease // leases at the last check
	view   leases                    // the same leases, sorted
	of     map[string]*life          // life by session
	// ghosts contains sessions whose worker had ended when a heartbeat arrived, or by the time of
	// the final check.
	ghosts  map[string]bool
	expired map[judge.ID]bool // expired records
	repeats map[judge.ID]bool // records with the number of an earlier record
	early   map[judge.ID]bool // records that were put before the application's start
	pinned  map[int64]bool    // lives of the streams in which the application has started
}

// container is one record of the stream. It may be an aggregate of many records.
type container struct {
	number string
	ids    []judge.ID
	at     int64
}

type epochOf struct {
	shard string
	epoch uint64
}

func newBooks() books {
	return books{
		home: map[judge.ID]string{}, kept: map[string][]container{}, passed: map[string]int{}, at: map[epochOf]string{},
		last: map[lease.Key]lease.Lease{}, of: map[string]*life{}, ghosts: map[string]bool{}, expired: map[judge.ID]bool{}, early: map[judge.ID]bool{}, repeats: map[judge.ID]bool{}, pinned: map[int64]bool{},
	}
}

// nameOf returns a name for a shard. The name distinguishes shards of successive streams with the
// same name.
func nameOf(st *model.Stream, id string) string { return model.NameOf(st.Life, id) }

func (b *books) shardAt(id string, epoch uint64) string { return b.at[epochOf{id, epoch}] }

// trusted contains the leases that are valid for a worker, according to weir's promise. These are
// the leases in the last answer to a heartbeat, minus the leases that the worker has returned. They
// are valid for nine tenths of the failover time, by the worker's clock, from the moment when the
// worker sent the heartbeat.
type trusted struct {
	until int64
	held  map[lease.Key]uint64
	spare map[lease.Key]uint64 // map to reuse for the next answer
}

// is reports whether the valid leases are exactly the given leases.
func (t *trusted) is(held []lease.Lease) bool {
	if len(held) != len(t.held) {
		return false
	}
	for i := range held {
		if epoch, also := t.held[held[i].Key]; !also || epoch != held[i].Epoch {
			return false
		}
	}
	return true
}

// gives notes the leases that a worker returns with a heartbeat. These leases are no longer valid
// for the worker from the moment when it sends the heartbeat.
func (w *world) gives(l *life, r lease.Report) {
	for _, p := range r.Progress {
		if p.Release || p.Position.IsEnd() {
			delete(l.trusted.held, p.Key)
		}
	}
}

// trusts notes the answer to a heartbeat. It checks that the leases in the answer are not valid for
// another worker.
func (w *world) trusts(l *life, sent int64, r *lease.Report, o lease.Orders) {
	l.heard = true
	if l.session != r.Session {
		w.books.of[r.Session] = l
	}
	if w.isLoop() {
		for i := range o.Held {
			l.epochs[o.Held[i].Key] = o.Held[i].Epoch
		}
	}
	limit := int64(float64(w.settings.failover) / l.of.rate * .9)
	now := w.now()
	if sent+limit <= now {
		return
	}
	if l.trusted.until > now && l.trusted.is(o.Held) {
		l.trusted.until = sent + limit
		return
	}
	t := trusted{until: sent + limit, held: l.trusted.spare, spare: l.trusted.held}
	clear(t.held)
	if len(o.Held) > 0 && t.held == nil {
		t.held = make(map[lease.Key]uint64, len(o.Held))
	}
	for _, h := range o.Held {
		t.held[h.Key] = h.Epoch
		if before, held := l.trusted.held[h.Key]; held && before == h.Epoch && l.trusted.until > now {
			continue
		}
		for _, other := range w.lives {
			if epoch, also := other.trusted.held[h.Key]; other != l && also && other.trusted.until > now && !other.dead.Load() {
				w.breaks("%s receives %s (epoch %d) while the lease is valid for %s (epoch %d) for another %.3f s",
					l.who, h.Key, h.Epoch, other.who, epoch, float64(other.trusted.until-now)/1e9)
			}
		}
	}
	l.trusted = t
}

// trusts reports whether the lease of a batch is valid for the life at the time now.
func (l *life) trusts(b *weir.Batch, now int64) bool {
	epoch, held := l.trusted.held[lease.Key{Stream: b.Stream, Shard: b.Shard}]
	return held && epoch == b.Epoch && l.trusted.until > now
}

// look compares the store with its previous state, if a call may have changed it.
func (w *world) look(changed bool) {
	if !changed {
		return
	}
	for _, x := range w.apps {
		if x != w {
			x.unchangedBy(w)
		}
	}
	v, err := w.store.View(context.Background(), w.app, "")
	if err != nil {
		w.breaks("the store cannot be looked at: %v", err)
		return
	}
	here, were := leases(v.Leases), w.books.view
	w.books.view = here
	for i := range v.Leases {
		now := &v.Leases[i]
		for len(were) > 0 && were[0].Key.Compare(now.Key) < 0 {
			were = were[1:] // the lease was removed
		}
		if len(were) > 0 && were[0].Key == now.Key && same(&were[0], now) {
			continue // most leases are unchanged
		}
		before, known := w.books.last[now.Key]
		if !known {
			before = lease.Lease{Key: now.Key, Born: now.Born}
		}
		w.compare(&before, now, here)
		w.books.last[now.Key] = *now
	}
	if len(w.books.last) > len(here) {
		for _, key := range slices.SortedFunc(maps.Keys(w.books.last), lease.Key.Compare) {
			if here.of(key) == nil {
				w.removed(w.books.last[key])
				delete(w.books.last, key)
			}
		}
	}
}

// unchangedBy checks that a call of another application has not changed any lease of this
// application.
func (w *world) unchangedBy(other *world) {
	v, err := w.store.View(context.Background(), w.app, "")
	if err != nil {
		w.breaks("the store cannot be looked at: %v", err)
		return
	}
	if len(v.Leases) != len(w.books.view) {
		w.breaks("a call of %s leaves %s with %d leases of %d", other.app, w.app, len(v.Leases), len(w.books.view))
		return
	}
	for i := range v.Leases {
		if was := &w.books.view[i]; v.Leases[i].Key != was.Key || !same(was, &v.Leases[i]) {
			w.breaks("a call of %s changes the lease %s of %s into %s", other.app, was, w.app, &v.Leases[i])
		}
	}
}

// leases contains the leases of a view, sorted by key.
type leases []lease.Lease

// of returns the lease with this key, or nil if there is none.
func (all leases) of(key lease.Key) *lease.Lease {
	i, found := slices.BinarySearchFunc(all, key, func(l lease.Lease, key lease.Key) int { return l.Key.Compare(key) })
	if !found {
		return nil
	}
	return &all[i]
}

func same(a, b *lease.Lease) bool {
	return a.Epoch == b.Epoch && a.Position == b.Position && a.Owner == b.Owner && a.Revoked == b.Revoked && a.Heir == b.Heir && a.Born == b.Born
}

// streamOf returns the stream of a lease, or nil if the stream was deleted.
func (w *world) streamOf(l *lease.Lease) *model.Stream {
	if st := w.streamNamed(l.Stream); st != nil && st.now != nil && (l.Born == 0 || st.now.Born.UnixMilli() == l.Born) {
		return st.now
	}
	return nil
}

// nameOfLease returns the name of a lease's shard, even if its stream was deleted. It returns "" if
// the shard never existed.
func (w *world) nameOfLease(l *lease.Lease) string {
	if st := w.streamOf(l); st != nil {
		return nameOf(st, l.Shard)
	}
	if st := w.streamNamed(l.Stream); st != nil {
		for _, past := range st.lives {
			if past.Born.UnixMilli() == l.Born {
				return nameOf(past, l.Shard)
			}
		}
	}
	return ""
}

// overran tells the judge that a handler has exceeded the handoff timeout. The records that it is
// handling will be handled again. A separate duty checks whether the handoff was in time.
func (w *world) overran(l *life, about string) {
	if l == nil {
		return
	}
	for _, c := range l.parked {
		if c.isUsers() && (c.about == about || w.isLoop()) && !c.gone.Load() {
			w.judge.Fault(l.who, w.wall())
			return
		}
	}
}

// notTheirs returns the leases in a report that the session did not own at the reported epochs. The
// report must not change these leases.
func (w *world) notTheirs(r lease.Report) (others []lease.Lease) {
	for _, p := range r.Progress {
		if l, ok := w.books.last[p.Key]; ok && (l.Owner != r.Session || l.Epoch != p.Epoch) {
			others = append(others, l)
		}
	}
	return others
}

// untouched checks that a report has not changed leases of other sessions.
func (w *world) untouched(others []lease.Lease) {
	for _, l := range others {
		if now := w.books.last[l.Key]; now.Epoch != l.Epoch || now.Owner != l.Owner || now.Position != l.Position {
			w.breaks("a report of another epoch or owner changes %s into %s", &l, &now)
		}
	}
}

// compare checks how a lease has changed in one step.
func (w *world) compare(before, now *lease.Lease, here leases) {
	switch {
	case now.Epoch < before.Epoch:
		w.breaks("the epoch of %s falls from %d to %d", now.Key, before.Epoch, now.Epoch)
	case now.Owner != before.Owner && now.Epoch == before.Epoch:
		w.breaks("%s changes its owner from %q to %q at the same epoch %d", now.Key, before.Owner, now.Owner, now.Epoch)
	}
	if now.Heir != before.Heir { // also true if a request was withdrawn and made again
		delete(w.duties.leases, now.Key)
	}
	anew := now.Born != before.Born
	if back := !anew && now.Position.Compare(before.Position) < 0; back && w.sink != nil && w.sink.moved[now.Key] {
		w.books.passed[w.nameOfLease(now)] = 0
	} else if back && (w.operator == nil || !w.operator.moved[now.Key]) {
		w.breaks("the checkpoint of %s goes back from %s to %s", now.Key, before.Position, now.Position)
	}
	w.books.at[epochOf{about(now.Stream, now.Shard), now.Epoch}] = w.nameOfLease(now)
	st := w.streamOf(now)
	if st == nil {
		return
	}
	w.judgeChosen(st, now)
	name := nameOf(st, now.Shard)
	if now.Position != before.Position {
		w.passes(name, now.Position)
	}
	if now.Revoked != "" && now.Revoked == before.Owner && before.Heir != "" {
		w.overran(w.books.of[before.Owner], about(now.Stream, now.Shard))
	}
	if now.Owner == "" || now.Owner == before.Owner {
		return
	}
	if before.Revoked != "" && before.Revoked != now.Owner {
		if other := w.books.of[before.Revoked]; other != nil && !other.dead.Load() && other.trusted.until > w.now() {
			if _, still := other.trusted.held[now.Key]; still {
				w.breaks("%s is assigned while the lease is still valid for %s, from which it was revoked", now.Key, other.who)
			}
		}
	}
	if w.amid() { // an operator is moving checkpoints, so the child may be early
		return
	}
	for _, sh := range st.Shards {
		if sh.ID != now.Shard {
			continue
		}
		for _, p := range sh.Parents { // the parents that the service knows, not those in the lease
			parent := here.of(lease.Key{Stream: now.Stream, Shard: p.ID})
			if parent != nil && w.sink != nil && w.sink.reopened[parent.Key] {
				continue // the owner asks the sink and then returns the lease
			}
			if parent == nil && p.GoneAt.IsZero() || parent != nil && !parent.Finished() {
				w.breaks("%s is assigned before its parent %s is finished", now.Key, p.ID)
			}
		}
	}
}

// passes checks that a checkpoint does not pass a record that was not handled.
func (w *world) passes(name string, p shard.Position) {
	kept, n := w.books.kept[name], w.books.passed[name]
	for ; n < len(kept); n++ {
		c := kept[n]
		if !p.IsEnd() {
			if p.Kind() != shard.Sequence {
				break
			}
			switch order := shard.CompareSequence(c.number, p.SequenceNumber()); {
			case order > 0:
				w.books.passed[name] = n
				return
			case order == 0 && p.Done() != shard.Whole:
				w.judge.Passed(name, c.ids[:min(int(p.Done()), len(c.ids))]...)
				w.books.passed[name] = n
				return
			}
		}
		w.judge.Passed(name, c.ids...)
	}
	w.books.passed[name] = n
}

// removed checks that a lease was allowed to be removed.
func (w *world) removed(l lease.Lease) {
	st := w.streamOf(&l)
	if st == nil {
		return
	}
	for _, sh := range st.Shards {
		if sh.ID == l.Shard && sh.GoneAt.IsZero() {
			w.breaks("the lease of %s is removed although its shard is still listed", l.Key)
		}
	}
}

// well describes what is still wrong after the end of the faults. It returns "" if nothing is
// wrong.
func (w *world) well() string {
	if todo := w.unproduced(); todo != "" {
		return todo
	}
	if n := w.judge.Missing(); n > 0 {
		return fmt.Sprintf("%d records are not handled, such as %s", n, w.judge.Lost())
	}
	if id := w.windows.uncounted(); id != (judge.ID{}) {
		return fmt.Sprintf("results do not count the stray %s yet", id)
	}
	if w.operator != nil {
		return "an operator is at work"
	}
	if name := w.unpassed(); name != "" {
		return fmt.Sprintf("the checkpoint of %s is not after its last record", name)
	}
	v, err := w.store.View(context.Background(), w.app, "")
	if err != nil {
		return err.Error()
	}
	shares := map[*life]int{}
	for _, wk := range w.workers {
		if wk.life == nil || wk.life.stopping {
			return wk.name + " does not live, or stops"
		}
		shares[wk.life] = 0
	}
	// A leader of the previous version repeatedly assigns shards to workers that do not read them,
	// and these workers return the shards. So a lease may be free or on its way to a new owner. A
	// dead worker must still have no leases.
	back := w.profile.Apart && w.profile.Older > 0
	have := map[lease.Key]bool{}
	for i := range v.Leases {
		l := &v.Leases[i]
		have[l.Key] = true
		if l.Finished() {
			continue
		}
		if !w.streamNamed(l.Stream).named {
			if _, runs := w.runs(l.Owner); runs {
				return "it is owned, though not named: " + l.String()
			}
			continue
		}
		owner := w.books.of[l.Owner]
		switch {
		case l.Owner == "" && back:
			continue
		case l.Owner == "":
			return "no worker owns " + l.String()
		case back && w.isOver(l.Owner) && !w.said(l.Stream):
			if w.isEnded(v, l.Owner) {
				continue
			}
			return "no live worker owns " + l.String()
		case owner == nil || owner.of.life != owner:
			return "no live worker owns " + l.String()
		case back && w.isOver(l.Heir):
			return "its heir is dead: " + l.String()
		case l.Heir != "" && !back:
			return "it is being handed off: " + l.String()
		}
		shares[owner]++
	}
	for _, st := range w.streams {
		for sh := range st.shards() {
			if st.named && !w.loose(st) && w.chosen.has(sh) && !have[lease.Key{Stream: st.name, Shard: sh.ID}] {
				return "there is no lease of " + about(st.name, sh.ID)
			}
		}
	}
	least, most := 1<<30, 0
	for _, n := range shares {
		least, most = min(least, n), max(most, n)
	}
	// A worker that is cut off gets fewer leases.
	if most-least > 1 && !w.profile.Apart && w.counts[ReaderStuck] == 0 && !w.opensLess() {
		return fmt.Sprintf("one worker has %d leases and another %d", most, least)
	}
	for _, s := range v.Workers {
		l := w.books.of[s.Session]
		if lives := l != nil && l.of.life == l; !lives && !s.Ended {
			return "no worker has noticed that " + s.Name + " is dead"
		}
		// The row of an ended session stays for ten failover times. The simulation does not wait
		// that long here.
	}
	return ""
}

// isOver reports whether a session belongs to a worker that has crashed or stopped.
func (w *world) isOver(session string) bool {
	l := w.books.of[session]
	return l != nil && l.of.life != l
}

// said reports whether a running worker reports that it reads a stream. If no worker reports this,
// and the leader does not read the stream either, the leases of the stream are not assigned. Dead
// workers then keep their leases.
func (w *world) said(name string) bool {
	if leader, leads := w.runs(w.leader); !leads || leader.older {
		return true // a leader of the previous version assigns the leases to any worker
	}
	return slices.ContainsFunc(w.workers, func(of *worker) bool {
		return of.life != nil && !of.life.older && of.life.reads(name)
	})
}

// isEnded reports whether the store has marked a session as ended or has no row for it.
func (w *world) isEnded(v lease.View, session string) bool {
	return !slices.ContainsFunc(v.Workers, func(s lease.Worker) bool { return s.Session == session && !s.Ended })
}
