package lease

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/shard"
)

// Key identifies a lease within an application by the stream's name and the shard's ID.
type Key struct{ Stream, Shard string }

// String returns "stream/shard".
func (k Key) String() string { return k.Stream + "/" + k.Shard }

// Compare orders keys by stream, then by shard.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Stream, o.Stream), strings.Compare(k.Shard, o.Shard))
}

// Lease is the right to read one shard, and the position where reading resumes.
type Lease struct {
	Key
	Parents []string        // shard IDs of the same stream, at most two
	Range   shard.HashRange // the hash range of the shard

	// Epoch is the fence. It increases by one with each change of owner, including a change to no
	// owner.
	Epoch uint64
	// Owner is the session that holds the lease, or "" if it has no owner.
	Owner string
	// Heir is the session that Owner is asked to hand the lease to, or "". Only owned leases have
	// an heir.
	Heir string
	// Revoked is the session that the lease was taken from without its consent and that has not
	// acknowledged yet. Only leases without an owner have one.
	Revoked string
	// Last is the session that owned the lease most recently, including the present owner. Plan
	// prefers it.
	Last string
	// Shunned is the session that released the lease because it could not make progress with it
	// ([Progress.Stalled]). It is set until the lease has an owner again. Plan gives the lease to
	// another worker if there is one.
	Shunned string
	// Position is where reading resumes. It never moves back while the lease exists. [shard.End]
	// means finished: such a lease has no owner and stays as a tombstone until its shard has left
	// the stream.
	Position shard.Position
	// Deaths is a [Deaths] as text: which owners died at one position, and which records beyond it
	// are done. It is "" if there is nothing to record. See [Lease.DeathsHere].
	Deaths string
	// Load is the throughput of the shard that its last owner reported. It does not affect who may
	// own the lease.
	Load Load
	// Born is the creation time of the stream as reported by the service, in Unix milliseconds, or
	// 0 if it is unknown. It distinguishes a stream from a deleted one of the same name.
	Born int64
}

// Nobody is an heir that is not a session. The owner is asked to drain the lease, save its
// progress, and release it without a new owner.
const Nobody = "~"

// NextOwner returns the session that becomes the owner after a release, or "" for none.
func (l Lease) NextOwner() string {
	if l.Heir == Nobody {
		return ""
	}
	return l.Heir
}

// Finished reports whether the shard has been read to its end.
func (l Lease) Finished() bool { return l.Position.IsEnd() }

// String returns a short form for logs and tests.
func (l Lease) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s epoch=%d", l.Key, l.Epoch)
	for _, f := range [...]struct{ name, value string }{
		{"owner", l.Owner}, {"heir", l.Heir}, {"revoked", l.Revoked}, {"shunned", l.Shunned}, {"at", l.Position.String()},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, " %s=%s", f.name, f.value)
		}
	}
	return b.String()
}

// Worker is one session of a worker as stored.
type Worker struct {
	Session string // unique for each start
	Name    string // display name of the worker, not necessarily unique

	// Beat counts the heartbeats of the session that reached the store. Only its changes matter.
	Beat uint64
	// Ended means that the leader declared the session dead. Its heartbeats are refused. The row
	// stays until no lease names the session as owner or heir and no call that names it is under
	// way, see [Facts.Forgettable].
	Ended bool
	// Leaving means that the worker is stopping. It gets no more leases, and its leases are moved
	// to other workers.
	Leaving bool
	// Drain means that an operator wants to empty the worker while it keeps running, see the action
	// Drain.
	Drain bool

	// Weight is the worker's share relative to the other workers. It is 1 if the worker did not
	// report one.
	Weight float64
	// MaxLeases is how many leases the worker may hold. 0 means no cap.
	MaxLeases int
	// Holds is the [Fingerprint] of the leases that the worker believed to hold when it sent its
	// last heartbeat. If it differs from the leases for long, an answer or a notification to the
	// worker was lost, and the leader notifies it again.
	Holds uint64
	// Times are those that the session's first heartbeat reported, or zero if it did not. They are
	// for people and tools. A leader uses its own.
	Times Times
	// Streams are the streams that the worker reads, as of its last heartbeat. [Plan] gives it no
	// shards of other streams. The zero value means that the worker did not report them.
	Streams Streams
	// Troubles are those of the last heartbeat, or nil.
	Troubles []Trouble
}

// CutOff is the State of a Trouble without a Key: the worker can read no shard at all, for a reason
// that is not specific to a shard.
const CutOff = "cut off"

// CutOff reports whether the worker reports that it is cut off. [Plan] gives it no more leases
// while another worker can take them.
func (w *Worker) CutOff() bool {
	for i := range w.Troubles {
		if t := &w.Troubles[i]; t.State == CutOff && t.Key == (Key{}) {
			return true
		}
	}
	return false
}

// Trouble is a problem that a worker reports about one of its shards or about itself.
type Trouble struct {
	Key                 // zero for the worker itself
	State string        // a word, at most [MaxStateBytes]
	For   time.Duration // how long it has lasted, in whole milliseconds
	Why   string        // for people, at most [MaxWhyBytes]
	// Failing describes a failing handler, or records that were dead-lettered or skipped. Stores
	// without [NoteFailures] and workers of earlier versions leave it out.
	Failing Failing `json:",omitzero"`
}

// Failing describes which record a handler fails at, and whether weir gives that record up. The
// zero value means that it is not known.
type Failing struct {
	// At is the position after the first failing record, as text, at most [MaxNameBytes]. It is the
	// part of the record's ID that follows the shard.
	At string `json:",omitzero"`
	// KeyHash is the first 8 hex digits of the SHA-256 of the record's partition key. The key
	// itself may be personal data.
	KeyHash string `json:",omitzero"`
	// Records is the number of records in the call if the handler did not say which of them failed.
	// It is 1 if the record is known.
	Records int `json:",omitzero"`
	// Attempts is the number of calls by this owner of the shard that have failed there.
	Attempts int `json:",omitzero"`
	// Held is why the record has not been given up although it could be: [HeldPatience] or
	// [HeldRate]. It is "" if it could not be given up.
	Held string `json:",omitzero"`
	// Letters is true if dead letters cannot be written. Why is then that error.
	Letters bool `json:",omitzero"`
	// GivenUp is the number of records of the shard that the worker gave up recently.
	GivenUp int `json:",omitzero"`
}

// Reasons why a record has not been given up yet.
const (
	HeldPatience = "patience" // the worker has handled no other record since the first failure
	HeldRate     = "rate"     // the limit of records per minute would be exceeded
)

// GaveUp is the State of a Trouble of a healthy shard whose worker gave up records recently:
// [Failing].GivenUp since For.
const GaveUp = "gave records up"

// OnPurpose is the State of a Trouble of a healthy shard whose checkpoint is held back on purpose,
// since For. Why names the cause. A Trouble without a Key is about several shards of the worker.
const OnPurpose = "held on purpose"

// Leader is the present leader as stored.
type Leader struct {
	// Session is the leader's session. It is "" if there is no leader, or if the leader's session
	// has ended, left, or resigned.
	Session string
	// Term counts the changes of leader. Candidates send the term that they saw. It stays the same
	// when a leader's session ends or resigns with a heartbeat.
	Term uint64
	// Beat is the heartbeat count of Session. The leader is alive as long as it moves.
	Beat uint64
	// Streams are the [Worker.Streams] of Session. Only answers to heartbeats that ask for Others
	// have them, and only from stores with [NoteStreams].
	Streams Streams
}

// Fingerprint hashes the leases that a session holds, with their epochs, into a number. It does not
// depend on their order.
func Fingerprint(held []Lease) uint64 {
	var sum uint64
	for i := range held {
		sum += held[i].fingerprint()
	}
	return sum
}

// fingerprint is 64-bit FNV-1a. Workers of several versions have to agree on it.
func (l *Lease) fingerprint() uint64 {
	var number [20]byte
	const prime = 1<<40 + 1<<8 + 0xb3
	sum := uint64(14695981039346656037)
	for i, part := range [...]string{l.Stream, l.Shard, "", l.Heir} {
		if i > 0 {
			sum *= prime // of a zero byte
		}
		if i == 2 {
			for _, c := range strconv.AppendUint(number[:0], l.Epoch, 10) {
				sum = (sum ^ uint64(c)) * prime
			}
		}
		for i := range len(part) {
			sum = (sum ^ uint64(part[i])) * prime
		}
	}
	return sum
}
