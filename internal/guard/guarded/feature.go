package guarded

import (
	"fmt"

	"github.com/weir-go/weir/lease"
)

// Feature is a part of weir that needs abilities that some stores lack.
type Feature struct {
	Name  string // the log reports this text if the feature is off
	Needs lease.Abilities
	// Required is set if the options cannot work without the feature.
	Required bool
}

// Features lists all features. Currently none is required.
var Features = []Feature{
	{Name: "those that die together with the leader are found with it", Needs: lease.WatchHeartbeats},
	{Name: "a leader that cannot do its work leaves it to others without ending its session", Needs: lease.ResignByHeartbeat},
	{Name: "group describe and doctor say at which records handlers fail, and what was dead-lettered", Needs: lease.NoteFailures},
	{Name: "records that kill one worker after the other are noticed, and with keys in parallel a handoff includes the records that are done beyond the checkpoint", Needs: lease.NoteDeaths},
	{Name: "the page shows how shards stood before it was started", Needs: lease.KeepHistory},
	{Name: "workers that read different streams get shards only of the streams that they read", Needs: lease.NoteStreams},
}

// Judge returns the features that are off with a store of these abilities. It also returns an error
// for each required feature that is off.
func Judge(has lease.Abilities, all []Feature) (missing []error, off []Feature) {
	for _, f := range all {
		switch {
		case has.Has(f.Needs):
		case f.Required:
			missing = append(missing, fmt.Errorf("weir: the store lacks an ability: %v, which is needed for %s", has.Missing(f.Needs), f.Name))
		default:
			off = append(off, f)
		}
	}
	return missing, off
}
