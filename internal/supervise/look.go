package supervise

import (
	"time"

	"github.com/weir-go/weir/lease"
)

// Look is one evaluation of all shards of a worker. The caller sets the first three fields.
type Look struct {
	Now    time.Time
	Limits Limits
	Stays  bool // shards stay at positions that Kinesis refuses

	Troubles []lease.Trouble // for the next heartbeat
	Changes  []Change        // changes of reading that must be logged
	Evidence Evidence        // whether the worker can read at all
	Shortage Shortage        // the first shard that lacks memory
}

// Shortage identifies a shard that has waited for memory for a long time.
type Shortage struct {
	Key   lease.Key
	Err   error // may be nil
	Since time.Time
}

// Finding is the action that a shard needs.
type Finding struct {
	Verdict Verdict
	Since   time.Time // when the problem began
	// Changed is set if a failure or a recovery of reading is to be recorded; see [Look.Changes].
	Changed, Fails bool
}

// At adds a shard to the look, and returns the action that the shard needs.
func (k *Look) At(key lease.Key, s *Shard) (f Finding) {
	if c, some := s.Change(key, k.Now, k.Stays); some {
		k.Changes = append(k.Changes, c)
		f.Changed, f.Fails = true, c.Err != nil
	}
	if k.Shortage.Err == nil && s.LacksMemory(k.Now) {
		k.Shortage = Shortage{key, s.Lacks, s.LacksSince}
	}
	k.Evidence.Add(s, k.Now, SuspectAfter(k.Limits.Stall))
	if t, some := s.Trouble(k.Now, k.Limits); some {
		t.Key = key
		k.Troubles = append(k.Troubles, t)
	}
	f.Verdict, f.Since = s.Judge(k.Now, k.Limits)
	return f
}
