package supervise

import (
	"time"

	"github.com/weir-go/weir/lease"
)

// Look is one look at all shards of a worker. The caller sets the first three fields.
type Look struct {
	Now    time.Time
	Limits Limits
	Stays  bool // shards stay at positions that the service refuses

	Troubles []lease.Trouble // for the heartbeat
	Changes  []Change        // changes of reading to log
	Evidence Evidence        // whether the worker can read at all
	Shortage Shortage        // of memory, at the first shard that was found to lack it
}

// Shortage is that a shard has waited for memory for long.
type Shortage struct {
	Key   lease.Key
	Err   error // may be nil
	Since time.Time
}

// Finding is an action that a shard needs.
type Finding struct {
	Verdict Verdict
	Since   time.Time // when what is wrong began
	// Changed says that it is to be noted that reading fails, or works again; see [Look.Changes].
	Changed, Fails bool
}

// At takes a shard in.
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
