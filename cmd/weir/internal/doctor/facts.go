// Package doctor finds faults of an application from two looks at its store and streams. It is pure
// and compares no clocks: a worker lives if its beats were seen, and ages come from the service.
package doctor

import (
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Facts are observations of an application: its store at two moments, and its streams from the
// first to the second.
type Facts struct {
	App           string
	First, Second lease.View // leases filled in
	// between the two; best long enough for every worker that does not beat to count as dead
	Apart   time.Duration
	Beats   map[string]bool
	Streams []Stream
	// the result of a read at each checkpoint of an unfinished lease
	Shards map[lease.Key]Shard
	Denied []Denied // calls that are not allowed
}

// Stream is the service's description of a stream.
type Stream struct {
	Name      string
	Err       string        // why nothing is known about it, or ""
	Missing   bool          // with Err: it does not exist
	Shards    []shard.Shard // of a complete listing
	Born      int64         // see [lease.Lease.Born]
	Retention time.Duration // 0 when it is not known
	Now       time.Time     // the service's time
	Status    string        // "" when it is not known
	Consumers []string      // registered for fan-out; nil when it is not known
	Wanted    bool          // a worker names it; it may have no leases
}

// Shard has the results of two reads at a checkpoint.
type Shard struct {
	First, Second Look
}

// Look is the result of one read at a checkpoint.
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
	On     string // its subject
}

// Severity says how bad a finding is.
type Severity string

// The severities. Info is nothing wrong, and neither is Intended.
const (
	Error   Severity = "error"   // records are not handled, or may be lost
	Warning Severity = "warning" // it is not as it should be, and may become an error
	Info    Severity = "info"    // good to know

	Intended Severity = "intended" // an operator asked for it, and may have forgotten it
)

// Finding is one thing that was found.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`             // for programs; stays the same
	About    string   `json:"about,omitempty"`  // a worker, a stream, or stream/shard
	Others   []string `json:"others,omitempty"` // further subjects of the same finding; Text has their number
	Text     string   `json:"text"`
	Do       string   `json:"do"` // the remedy
}
