// Package doctor finds problems of an application from two reads of its store and streams. The
// diagnosis makes no calls and compares no clocks. A worker is alive if its heartbeats were seen.
// Ages of records come from the service.
package doctor

import (
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Facts contains what was observed about an application: two reads of its store, and data about its
// streams.
type Facts struct {
	App           string
	First, Second lease.View // views with all leases
	// Apart is the time between the two reads. It should be long enough that every worker without a
	// heartbeat counts as dead.
	Apart   time.Duration
	Beats   map[string]bool
	Streams []Stream
	// Shards contains the results of reads at the checkpoints of the unfinished leases.
	Shards map[lease.Key]Shard
	Denied []Denied // calls that the service refused for lack of a permission
	// Old are the tables of the KCL from which the application came.
	Old []OldTable
}

// OldTable is a table of the KCL from which the application came.
type OldTable struct {
	Name string
	// Err is the reason why the table could not be read; "" if it could.
	Err    string
	Moved  time.Time // when the application came from there
	Used   bool      // a worker of the KCL has used the table since then
	Runs   bool      // a worker of the KCL has used the table between the two reads
	Owners string    // the owners of its leases, for people
}

// Stream is the service's description of a stream.
type Stream struct {
	Name      string
	Err       string        // why nothing is known about the stream; "" if something is
	Missing   bool          // the stream does not exist; Err is set too
	Shards    []shard.Shard // the complete list of shards
	Born      int64         // see [lease.Lease.Born]
	Retention time.Duration // 0 if not known
	Now       time.Time     // the service's time
	Status    string        // "" if not known
	Consumers []string      // consumers registered for fan-out; nil if not known
	Wanted    bool          // a worker names the stream; the stream may have no leases
}

// Shard contains the results of two reads at a checkpoint.
type Shard struct {
	First, Second Look
}

// Look is the result of a read at a checkpoint.
type Look struct {
	Err     string // why nothing is known; "" if something is
	Code    string // the service's error code, if Err is set
	Waits   bool   // a record after the checkpoint is not handled yet
	Age     time.Duration
	Expired bool // the record at the checkpoint and all earlier records have left the shard
}

// Denied is a call that the service refused for lack of a permission.
type Denied struct {
	Action string // in the form of a policy, for example kinesis:GetRecords
	On     string // resource of the call
}

// Severity is the severity of a finding.
type Severity string

// The severities of findings. Info and Intended are not problems.
const (
	Error   Severity = "error"   // records are not handled, or may be lost
	Warning Severity = "warning" // the state is not as it should be, and may become an error
	Info    Severity = "info"    // useful to know

	Intended Severity = "intended" // an operator caused it, and may have forgotten it
)

// Finding is one result of the diagnosis.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`             // for programs; it never changes
	About    string   `json:"about,omitempty"`  // subject: a worker, a stream, or stream/shard
	Others   []string `json:"others,omitempty"` // further subjects; Text contains their number
	Text     string   `json:"text"`
	Do       string   `json:"do"` // remedy
}
