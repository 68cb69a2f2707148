// Package verdict decides whether a run with faults kept weir's promises, from the producers' lists
// and the handlers' files. It is pure and shares no code with weir: it has its own implementation
// of shards, epochs and checkpoints.
package verdict

import (
	"math/big"
	"time"
)

// Times are nanoseconds on one clock that all processes of the machine share and that is never set.

// Put is one accepted record. Numbers of a key begin with 1 and have no gaps.
type Put struct {
	Key    string
	Number int
	At     int64
}

// Handling is one handled record, written before the handler returned.
type Handling struct {
	Put      // the content of the record: key, number, and time of its put
	Shard    string
	Sequence *big.Int
	Epoch    uint64
	Start    int64 // of the handler's call, shared by many records
	End      int64 // when this record was done
}

// Call is the end of a handler's call.
type Call struct {
	Shard      string
	Epoch      uint64
	Start, End int64
	Failed     bool // it returned an error: its records are handled again
}

// Save is a confirmed checkpoint.
type Save struct {
	Shard      string
	Sequence   *big.Int
	Epoch      uint64
	Start, End int64 // of the call that confirmed it
}

// Journal is the output of one process. A process is one life of a worker; after a restart it is
// another one.
type Journal struct {
	Life      string
	Handlings []Handling
	Calls     []Call
	Saves     []Save
}

// Fault is a fault, or several that belong together.
type Fault struct {
	Kind string
	// Lives are the affected processes, nil for all.
	Lives []string
	// Shards are further affected shards, with any owner. Without lives and shards it affected all.
	Shards []string
	From   int64
	To     int64 // when it ended; From for one without an end
	// Until is the latest time at which every affected shard must be read again, without the
	// machine's allowance.
	Until int64
	// Repeats means that records of the affected processes may be handled again because of it.
	Repeats bool
	// Froze means that the affected processes were suspended from From to To, perhaps in the middle
	// of a handler's call.
	Froze bool
	// Part means that it belongs to the previous fault.
	Part bool
}

// History is the complete input of a verdict.
type History struct {
	Puts      []Put
	Journals  []Journal
	Faults    []Fault
	Allowance time.Duration // the machine's allowance for each limit

	// With dead-lettering: the letters, which records may have one, and whether waiting times are
	// unlimited, because they depend on backoff.
	Letters []Letter
	Poison  func(Put) bool
	AnyWait bool
}

// Verdict is the result.
type Verdict struct {
	Put      int `json:"put"`
	Handled  int `json:"handled"`  // including duplicates
	Repeated int `json:"repeated"` // handlings of a record that was handled before
	Lost     int `json:"lost"`
	Disorder int `json:"order_breaks"`
	Overlaps int `json:"overlaps"`
	// checkpoints that a former owner got confirmed, or that were lost later
	Backwards int `json:"checkpoint_breaks"`
	// in calls that were running when their process was frozen, after another owner had the shard
	Late    int `json:"late_handlings"`
	Saves   int `json:"confirmed_saves"`
	GivenUp int `json:"given_up,omitempty"` // records with a letter
	// Unexplained counts duplicates that no fault explains, Silences records that waited longer
	// than any fault excuses.
	Unexplained int `json:"unexplained_repeats"`
	Silences    int `json:"silences"`

	Kinds []Kind `json:"kinds"` // sorted by name
	// Calm is the longest wait of a record without a fault.
	Calm time.Duration `json:"calm_wait_ns"`

	Violations []string `json:"violations"` // the first few of each kind, one sentence each
}

// Kind summarizes the faults of one kind.
type Kind struct {
	Kind     string        `json:"kind"`
	Times    int           `json:"times"`
	Repeated int           `json:"repeated"` // duplicates that it explains
	Wait     time.Duration `json:"worst_wait_ns"`
	Allowed  time.Duration `json:"allowed_ns"` // for that wait, including the machine's allowance
}

// Clean reports whether every promise was kept.
func (v *Verdict) Clean() bool { return len(v.Violations) == 0 }
