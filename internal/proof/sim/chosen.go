package sim

import (
	"slices"

	"github.com/weir-go/weir/internal/proof/sim/model"
	"github.com/weir-go/weir/lease"
)

// chosen is the Options.Shards of all workers of an application. Shards that an application does
// not read belong to no worker: their leases never have an owner, and their records must not be
// handled.
type chosen struct {
	ids   []string
	reads map[string]bool // whether the application reads a shard, by the shard's name
}

// makeChosen chooses some of the first shards of the stream. A second application gets the others,
// so each of the first shards has one application. The child of a merge may have both.
func (w *world) makeChosen() {
	if !w.profile.Chosen {
		return
	}
	w.chosen = &chosen{reads: map[string]bool{}}
	first := w.streams[0].now.Shards
	if !w.isFirst() {
		for _, sh := range first {
			if !slices.Contains(w.apps[0].chosen.ids, sh.ID) {
				w.chosen.ids = append(w.chosen.ids, sh.ID)
			}
		}
		return
	}
	d := roll(w.seed, "chosen")
	for _, i := range d.order(len(first))[:1+d.below(len(first)-1)] {
		w.chosen.ids = append(w.chosen.ids, first[i].ID)
	}
}

// shardIDs returns the value of Options.Shards.
func (c *chosen) shardIDs() []string {
	if c == nil {
		return nil
	}
	return c.ids
}

// has reports whether the application has to read a shard: a chosen one, or a descendant of one.
func (c *chosen) has(sh *model.Shard) bool {
	if c == nil {
		return true
	}
	is, known := c.reads[sh.Name]
	if !known {
		is = slices.Contains(c.ids, sh.ID) || slices.ContainsFunc(sh.Parents, c.has)
		c.reads[sh.Name] = is
	}
	return is
}

// judgeChosen checks a lease that has changed. The lease of a shard that the application does not
// read must be finished and have no owner.
func (w *world) judgeChosen(st *model.Stream, l *lease.Lease) {
	if w.chosen == nil {
		return
	}
	i := slices.IndexFunc(st.Shards, func(sh *model.Shard) bool { return sh.ID == l.Shard })
	if i < 0 {
		return
	}
	sh, apart := st.Shards[i], l.Finished() && l.Epoch == 1
	switch has := w.chosen.has(sh); {
	case !has && !apart:
		w.breaks("%s is to be read, and %v are the shards in Options.Shards", l, w.chosen.ids)
	case has && apart && w.untraced(sh):
		w.chosen.reads[sh.Name] = false
		for _, c := range w.books.kept[sh.Name] {
			for _, id := range c.ids {
				w.judge.Exempt(id)
			}
		}
	}
}

// untraced reports whether the workers cannot know that a shard descends from a chosen one. Its
// parents have left the stream before a worker has seen them, or are untraced themselves, and it
// has no keys of a shard that the application has begun.
func (w *world) untraced(sh *model.Shard) bool {
	if slices.Contains(w.chosen.ids, sh.ID) {
		return false
	}
	for _, p := range sh.Parents {
		if _, seen := w.books.last[lease.Key{Stream: firstStream, Shard: p.ID}]; w.chosen.has(p) && (seen || p.GoneAt.IsZero()) {
			return false
		}
	}
	return !slices.ContainsFunc(w.streams[0].now.Shards, func(of *model.Shard) bool {
		l, begun := w.books.last[lease.Key{Stream: firstStream, Shard: of.ID}]
		return begun && l.Epoch > 1 && of.ID < sh.ID && of.Lo <= sh.Hi && sh.Lo <= of.Hi
	})
}
