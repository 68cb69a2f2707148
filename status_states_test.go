package weir

import (
	"testing"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/supervise"
)

// The supervisor and the readers use the state names of status.go.
func TestStatesHaveOneNameEach(t *testing.T) {
	for state, name := range map[ShardState]supervise.State{
		ShardAtTip: supervise.AtTip, ShardPacing: supervise.Pacing, ShardAwaitingHandler: supervise.AwaitingHandler,
		ShardAwaitingMemory: supervise.AwaitingMemory, ShardSubscribed: supervise.Subscribed, ShardHandling: supervise.Handling,
		ShardRetrying: supervise.Retrying, ShardOpening: supervise.Opening, ShardClosing: supervise.Closing, ShardBlocked: supervise.Blocked, ShardAbandoned: supervise.Abandoned,
		ShardGathering: supervise.Gathering, ShardSuspected: supervise.Suspected, ShardEnding: supervise.Ending, ShardGivingUp: supervise.GivingUp,
	} {
		if string(state) != string(name) {
			t.Errorf("%q is %q where it is decided", state, name)
		}
	}
	for state, doing := range map[ShardState]source.Doing{
		ShardStarting: source.Starting, ShardAtTip: source.AtTip, ShardPacing: source.Pacing, ShardPositioning: source.Positioning,
		ShardReading: source.Reading, ShardAwaitingHandler: source.AwaitingHandler, ShardAwaitingMemory: source.AwaitingMemory,
		ShardBackingOff: source.BackingOff, ShardSubscribing: source.Subscribing, ShardSubscribed: source.Subscribed, ShardEnding: source.Ended,
	} {
		if string(state) != doing.String() {
			t.Errorf("%q is %q where it is read", state, doing)
		}
	}
}
