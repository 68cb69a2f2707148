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

// Features lists the features that all options use. Currently none is required.
var Features = []Feature{
	{Name: "workers that die together with the leader are found dead at the same time", Needs: lease.WatchHeartbeats},
	{Name: "a leader that cannot do its work resigns without ending its session", Needs: lease.ResignByHeartbeat},
	{Name: "group describe and doctor show the records at which handlers fail, and the records that were dead-lettered", Needs: lease.NoteFailures},
	{Name: "records that kill one worker after the other are detected, and with keys in parallel a handoff includes the finished records after the checkpoint", Needs: lease.NoteDeaths},
	{Name: "the dashboard shows the progress of shards from before its start", Needs: lease.KeepHistory},
	{Name: "workers that read different streams get shards only of the streams that they read", Needs: lease.NoteStreams},
	{Name: "operators see the measured throughput of shards instead of its class", Needs: lease.NoteRates},
	{Name: "operators see who paused a stream, and when", Needs: lease.NotePauses},
}

// DropRepeats is a feature that only some options need.
var DropRepeats = Feature{Name: "Options.DropRepeats", Needs: lease.NoteNumbers, Required: true}

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
