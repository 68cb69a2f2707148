// Package verdict decides whether weir kept its promises in a run with faults. Its input is the
// list of records that were put, and the files of the handlers. Its result depends only on them. It
// shares no code with weir: it has its own implementation of shards, epochs and checkpoints.
package verdict

import (
	"math/big"
	"time"
)

// All times are in nanoseconds. They come from a clock that all processes of the machine share and
// that is never set.

// Put is one record that the stream accepted. The numbers of a key begin with 1 and have no gaps.
type Put struct {
	Key    string
	Number int
	At     int64
}

// Handling is one handled record. It was written before the handler returned.
type Handling struct {
	Put      // content of the record: key, number, and time of its put
	Shard    string
	Sequence *big.Int
	Epoch    uint64
	Start    int64 // start of the handler's call, which many records share
	End      int64 // when this record was done
}

// Call is the end of a handler's call.
type Call struct {
	Shard      string
	Epoch      uint64
	Start, End int64
	Failed     bool // the call returned an error, so its records are handled again
}

// Save is a confirmed checkpoint.
type Save struct {
	Shard      string
	Sequence   *big.Int
	Epoch      uint64
	Start, End int64 // start and end of the call that confirmed it
}

// Journal is the output of one process. A worker that is restarted is a new process with a new
// journal.
type Journal struct {
	Life      string
	Handlings []Handling
	Calls     []Call
	Saves     []Save
}

// Fault is a fault, or several faults that belong together.
type Fault struct {
	Kind string
	// Lives are the affected processes. nil means all processes.
	Lives []string
	// Shards are further affected shards, whoever owns them. If Lives and Shards are both nil, the
	// fault affected all processes and shards.
	Shards []string
	From   int64
	To     int64 // when it ended; equals From if it has no duration
	// Until is the time at which every affected shard must be read again, without the allowance for
	// the machine.
	Until int64
	// Repeats means that the fault may cause records of the affected processes to be handled again.
	Repeats bool
	// Froze means that the affected processes were suspended between From and To. This may have
	// happened in the middle of a handler's call.
	Froze bool
	// Part means that the fault belongs to the previous one.
	Part bool
}

// History is the complete input of a verdict.
type History struct {
	Puts      []Put
	Journals  []Journal
	Faults    []Fault
	Allowance time.Duration // added to each limit, for delays of the machine

	// The following fields are for dead-lettering: the dead letters, which records may have one,
	// and whether waiting times are unlimited because they depend on the backoff.
	Letters []Letter
	Poison  func(Put) bool
	AnyWait bool
}

// Verdict is the result.
type Verdict struct {
	Put      int `json:"put"`
	Handled  int `json:"handled"`  // includes duplicates
	Repeated int `json:"repeated"` // handlings of records that had been handled before
	Lost     int `json:"lost"`
	Disorder int `json:"order_breaks"`
	Overlaps int `json:"overlaps"`
	// Backwards counts checkpoints that were confirmed to an owner after a later epoch had begun,
	// and confirmed checkpoints that a later owner does not know.
	Backwards int `json:"checkpoint_breaks"`
	// Late counts records that a call handled after another owner had the shard. The process of the
	// call was frozen while the call was running.
	Late    int `json:"late_handlings"`
	Saves   int `json:"confirmed_saves"`
	GivenUp int `json:"given_up,omitempty"` // records with a dead letter
	// Unexplained counts duplicates that no fault explains. Silences counts records that waited
	// longer than the faults excuse.
	Unexplained int `json:"unexplained_repeats"`
	Silences    int `json:"silences"`

	Kinds []Kind `json:"kinds"` // sorted by name
	// Calm is the longest wait of a record without a fault.
	Calm time.Duration `json:"calm_wait_ns"`

	Violations []string `json:"violations"` // the first few of each kind, as sentences
}

// Kind summarizes the faults of one kind.
type Kind struct {
	Kind     string        `json:"kind"`
	Times    int           `json:"times"`
	Repeated int           `json:"repeated"` // duplicates that the kind explains
	Wait     time.Duration `json:"worst_wait_ns"`
	Allowed  time.Duration `json:"allowed_ns"` // limit for that wait, including the allowance
}

// Clean reports whether every promise was kept.
func (v *Verdict) Clean() bool { return len(v.Violations) == 0 }
