// Package verdict decides, from what producers put and what handlers wrote into files, whether a
// run with faults kept weir's promises. It is pure and shares nothing with weir: what it believes
// of shards, epochs and checkpoints is written here alone.
package verdict

import (
	"math/big"
	"time"
)

// Times are nanoseconds on one clock that all processes of the machine share and that nobody sets.

// Put is one record that the stream took. Numbers of a key begin with 1 and leave none out.
type Put struct {
	Key    string
	Number int
	At     int64
}

// Handling is one record in the hands of a handler, written down before the handler returned.
type Handling struct {
	Put      // what the record says of itself: key and number, and when it was put
	Shard    string
	Sequence *big.Int
	Epoch    uint64
	Start    int64 // of the handler's call, which many records share
	End      int64 // when this record was done
}

// Call is the end of a handler's call.
type Call struct {
	Shard      string
	Epoch      uint64
	Start, End int64
	Failed     bool // it returned an error: its records come again
}

// Save is a checkpoint that was confirmed.
type Save struct {
	Shard      string
	Sequence   *big.Int
	Epoch      uint64
	Start, End int64 // of the call that confirmed it
}

// Journal is what one process wrote. A process is one life of a worker; one that is started again
// is another.
type Journal struct {
	Life      string
	Handlings []Handling
	Calls     []Call
	Saves     []Save
}

// Fault is one that was inflicted, or several that make up one.
type Fault struct {
	Kind string
	// Lives are the processes it struck, nil for all of them.
	Lives []string
	// Shards are further ones that it struck, whoever had them. With neither lives nor shards it
	// struck all.
	Shards []string
	From   int64
	To     int64 // when it was taken back; From for one that cannot be
	// Until is when every shard that it struck has to be read again, at the latest, on a machine
	// that is never late.
	Until int64
	// Repeats says that records which the struck processes handled may come again because of it.
	Repeats bool
	// Froze says that the struck processes stood still from From to To, perhaps in the middle of a
	// handler's call.
	Froze bool
	// Part says that it belongs to the fault before it.
	Part bool
}

// History is everything that is known.
type History struct {
	Puts      []Put
	Journals  []Journal
	Faults    []Fault
	Allowance time.Duration // what the machine may add to each bound

	// Where records are given up: their letters, which records may have one, and whether any wait
	// is right, because it goes by pauses after failures.
	Letters []Letter
	Poison  func(Put) bool
	AnyWait bool
}

// Verdict is what came of it.
type Verdict struct {
	Put      int `json:"put"`
	Handled  int `json:"handled"`  // repetitions included
	Repeated int `json:"repeated"` // handlings of a record that had been handled before
	Lost     int `json:"lost"`
	Disorder int `json:"order_breaks"`
	Overlaps int `json:"overlaps"`
	// saves that an overtaken owner got confirmed, or that were gone later
	Backwards int `json:"checkpoint_breaks"`
	// in calls that were running when their process was frozen, after somebody else had the shard
	Late    int `json:"late_handlings"`
	Saves   int `json:"confirmed_saves"`
	GivenUp int `json:"given_up,omitempty"` // records with a letter
	// Unexplained are repetitions that no fault explains, Silences records that waited for longer
	// than any fault excuses.
	Unexplained int `json:"unexplained_repeats"`
	Silences    int `json:"silences"`

	Kinds []Kind `json:"kinds"` // sorted by name
	// Calm is the longest that a record waited without any fault.
	Calm time.Duration `json:"calm_wait_ns"`

	Violations []string `json:"violations"` // the first few of each sort, a sentence each
}

// Kind sums up the faults of one kind.
type Kind struct {
	Kind     string        `json:"kind"`
	Times    int           `json:"times"`
	Repeated int           `json:"repeated"` // handlings that it explains
	Wait     time.Duration `json:"worst_wait_ns"`
	Allowed  time.Duration `json:"allowed_ns"` // for that wait, the machine's allowance included
}

// Clean reports whether every promise was kept.
func (v *Verdict) Clean() bool { return len(v.Violations) == 0 }
