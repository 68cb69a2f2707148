// Package doctor says what is wrong with an application, from what was seen of it. It is pure, and
// compares no clocks: whether a worker lives is whether it was seen to beat, and ages are the
// service's own.
package doctor

import (
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Facts are what was seen of an application: its store at two moments, and its streams between and
// at them.
type Facts struct {
	App           string
	First, Second lease.View // leases filled in
	// between the two; best long enough for every worker that does not beat to count as dead
	Apart   time.Duration
	Beats   map[string]bool
	Streams []Stream
	// what reading at the checkpoints said; of leases that are not finished
	Shards map[lease.Key]Shard
	Denied []Denied // calls that are not allowed
}

// Stream is what the service said of a stream.
type Stream struct {
	Name      string
	Err       string        // why nothing is known of it, "" when something is
	Missing   bool          // with Err: it does not exist
	Shards    []shard.Shard // of a complete listing
	Born      int64         // see [lease.Lease.Born]
	Retention time.Duration // 0 when it is not known
	Now       time.Time     // the service's time
	Status    string        // "" when it is not known
	Consumers []string      // registered for fan-out; nil when it is not known
	Wanted    bool          // somebody named it, though it may have no leases
}

// Shard is what reading at a checkpoint said, twice.
type Shard struct {
	First, Second Look
}

// Look is what one read at a checkpoint said.
type Look struct {
	Err     string // why nothing is known, "" when something is
	Code    string // the service's for Err
	Waits   bool   // a record is there that is not handled
	Age     time.Duration
	Expired bool // everything up to the checkpoint has left the shard
}

// Denied is a call that the service refused for want of a permission.
type Denied struct {
	Action string // as in a policy, such as kinesis:GetRecords
	On     string // what it was about
}

// Severity says how bad a finding is.
type Severity string

// The severities. Info is nothing wrong, and neither is Intended.
const (
	Error   Severity = "error"   // records are not handled, or may be lost
	Warning Severity = "warning" // it is not as it should be, and may become an error
	Info    Severity = "info"    // good to know

	Intended Severity = "intended" // somebody asked for it, and may have forgotten it
)

// Finding is one thing that was found.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`             // for programs; stays the same
	About    string   `json:"about,omitempty"`  // a worker, a stream, or stream/shard
	Others   []string `json:"others,omitempty"` // of which the same is true; Text says how many
	Text     string   `json:"text"`
	Do       string   `json:"do"` // what to do about it
}
