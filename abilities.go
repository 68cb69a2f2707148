package weir

import (
	"fmt"

	"github.com/weir-go/weir/lease"
)

// feature is a part of weir that asks more of a store than what every store does.
type feature struct {
	name  string // what is off without it, in the words of the log
	needs lease.Abilities
	// required says whether the options cannot be kept without it; nil stands for never.
	required func(Options) bool
}

// features are all that there are.
var features = []feature{
	{name: "those that die together with the leader are found with it", needs: lease.WatchBeats},
	{name: "a leader that cannot do its work leaves it to others without ending its session", needs: lease.ResignByBeat},
	{name: "group describe and doctor say at which records handlers fail, and what was given up", needs: lease.NoteFailures},
	{name: "records that kill one worker after the other are noticed, and what is done beyond the checkpoint with keys in parallel goes along in a hand-off", needs: lease.NoteDeaths},
	{name: "the page shows how shards stood before it was started", needs: lease.KeepHistory},
	{name: "workers that read different streams get shards of their own streams only, and list them", needs: lease.NoteStreams},
}

// judgeAbilities says what a store of these abilities cannot do that the options ask for, and which
// features are off with it.
func judgeAbilities(has lease.Abilities, o Options, all []feature) (missing []error, off []feature) {
	for _, f := range all {
		switch {
		case has.Has(f.needs):
		case f.required != nil && f.required(o):
			missing = append(missing, fmt.Errorf("weir: the store lacks an ability: %v, which is needed for %s", has.Missing(f.needs), f.name))
		default:
			off = append(off, f)
		}
	}
	return missing, off
}

// logAbilities says which features are off.
func (r *run) logAbilities() {
	for _, f := range r.off {
		r.opts.Logger.Info("a feature is off, because the store lacks an ability", "feature", f.name, "missing", r.store.Abilities().Missing(f.needs).String())
	}
	if r.store.Abilities().Has(lease.KeepHistory) && !r.store.keepsHistory() && !r.opts.NoHistory {
		r.opts.Logger.Info("the page shows nothing of before it was started: what wraps the store does not pass lease.Historian on")
	}
}
