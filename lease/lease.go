package lease

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/shard"
)

// Key identifies a lease within an application by the name of the stream and the ID of the shard.
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

	// Epoch is the fence. It increases with each change of owner and each [Move]. A release is a
	// change of owner.
	Epoch uint64
	// Owner is the session that holds the lease. It is "" if the lease has no owner.
	Owner string
	// Heir is the session to which Owner must hand the lease, [Nobody], or "". Only leases with an
	// owner have an heir.
	Heir string
	// Revoked is the session from which the lease was revoked. It becomes "" when that session
	// acknowledges the revocation, or when the lease gets an owner. Only leases without an owner
	// have it set.
	Revoked string
	// Last is the session that owned the lease last, including the current owner. Plan prefers it
	// as the next owner.
	Last string
	// Shunned is the session that released the lease because it could not make progress with it
	// ([Progress.Stalled]). It is cleared when the lease has an owner again. Plan gives the lease
	// to another worker if there is one.
	Shunned string
	// Position is where reading resumes. It moves back only with a [Move] or a [Replace].
	// [shard.End] means that the lease is finished. A finished lease has no owner. It stays as a
	// tombstone until its shard has left the stream.
	Position shard.Position
	// Deaths is a [Deaths] as text. It is "" if there is nothing to record. See [Lease.DeathsHere].
	Deaths string
	// Numbers are the numbers of handled records, by which workers recognize records that a
	// producer sent again, or "". Workers write and read the text. It contains the position that it
	// belongs to. A worker that resumes before that position ignores it.
	Numbers string
	// Load is the throughput of the shard, as the last owner reported it. It does not affect which
	// session may own the lease.
	Load Load
	// Rate is the measured throughput in bytes per second, from which Load was computed. It is only
	// for display. Use [Lease.Throughput], because an older worker changes Load and not Rate.
	Rate uint64
	// Born is the creation time of the stream, as Kinesis reports it, in Unix milliseconds. It is 0
	// if unknown. It distinguishes a stream from a deleted stream of the same name.
	Born int64
}

// Nobody is an heir that is not a session. The owner must drain the lease, save its progress, and
// release the lease without a new owner.
const Nobody = "~"

// NextOwner returns the session that becomes the owner after a release, or "" if there is none.
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

// Worker is the stored state of one session of a worker.
type Worker struct {
	Session string // unique for each start
	Name    string // display name of the worker, not necessarily unique

	// Heartbeats is the number of the session's heartbeats that reached the store. Only its changes
	// matter.
	Heartbeats uint64
	// Ended is set when the leader has declared the session dead. Its heartbeats then fail. The row
	// stays as long as a lease has the session as owner or heir. It also stays while a call about
	// the session may be in progress, see [Facts.Forgettable].
	Ended bool
	// Leaving is set when the worker is stopping. It gets no more leases, and its leases move to
	// other workers.
	Leaving bool
	// Drain is set when an operator wants to empty the worker while it keeps running, see the
	// action Drain.
	Drain bool

	// Weight is the worker's share relative to other workers. It is 1 if the worker did not report
	// one.
	Weight float64
	// MaxLeases is the maximum number of leases that the worker may hold. 0 means no limit.
	MaxLeases int
	// Holds is the [Fingerprint] of the leases that the worker believed to hold at its last
	// heartbeat. If the session's leases in the store have another fingerprint for long, an answer
	// or a notification to the worker was lost. The leader then notifies the worker again.
	Holds uint64
	// Times are the times that the session's first heartbeat reported, or zero if it reported none.
	// They are for people and tools. A leader uses its own times.
	Times Times
	// Streams are the streams that the worker reads, according to its last heartbeat. [Plan] gives
	// it no shards of other streams. The zero value means that the worker did not report its
	// streams.
	Streams Streams
	// Troubles are the problems that the worker reported with its last heartbeat, or nil.
	Troubles []Trouble
}

// CutOff is the State of a Trouble without a Key. The worker cannot read any shard, for a reason
// that does not depend on the shard.
const CutOff = "cut off"

// CutOff reports whether the worker has reported that it is cut off. [Plan] gives it no more leases
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
	For   time.Duration // how long the problem has lasted, in whole milliseconds
	Why   string        // for people, at most [MaxWhyBytes]
	// Failing describes a failing handler, or records that were dead-lettered or skipped. It is
	// empty for workers of earlier versions and in stores without [NoteFailures].
	Failing Failing `json:",omitzero"`
}

// Failing describes the record at which a handler fails, and why that record is not dead-lettered
// or skipped. The zero value means that the record is unknown.
type Failing struct {
	// At is the position after the first failing record, as text of at most [MaxNameBytes]. It is
	// the part of the record's ID after the shard.
	At string `json:",omitzero"`
	// KeyHash is the first 8 hex digits of the SHA-256 of the record's partition key. The key
	// itself may be personal data.
	KeyHash string `json:",omitzero"`
	// Records is the number of records in the failed call of the handler, if it is unknown which of
	// them failed. It is 1 if the failing record is known.
	Records int `json:",omitzero"`
	// Attempts is the number of calls by this owner of the shard that failed at the record.
	Attempts int `json:",omitzero"`
	// Held is the reason why the record has not been dead-lettered or skipped although it could be:
	// [HeldForOutage] or [HeldRate]. It is "" if the record could not be dead-lettered or skipped
	// anyway.
	Held string `json:",omitzero"`
	// Letters is true if dead letters cannot be written. Why then contains the error.
	Letters bool `json:",omitzero"`
	// GivenUp is the number of records of the shard that the worker recently dead-lettered or
	// skipped.
	GivenUp int `json:",omitzero"`
}

// These are the reasons why a record has not been dead-lettered or skipped yet.
const (
	HeldForOutage = "patience" // the worker has handled no other record since the first failure
	HeldRate      = "rate"     // the limit of records per minute would be exceeded
)

// GaveUp is the State of a Trouble of a healthy shard whose worker recently dead-lettered or
// skipped records. [Failing].GivenUp is their number within For.
const GaveUp = "gave records up"

// OnPurpose is the State of a Trouble of a healthy shard whose checkpoint is held back on purpose.
// For is how long, and Why contains the cause. A Trouble without a Key concerns several shards of
// the worker.
const OnPurpose = "held on purpose"

// Leader is the stored state of the current leader.
type Leader struct {
	// Session is the leader's session. It is "" if there is no leader, or if the leader's session
	// has ended, left or resigned.
	Session string
	// Epoch is the number of changes of leader. A candidate passes the last epoch that it saw to
	// [Store.Lead]. The epoch stays the same when a leader's session ends, or when it resigns with
	// a heartbeat.
	Epoch uint64
	// Heartbeats is the heartbeat count of Session. The leader is alive as long as this count
	// changes.
	Heartbeats uint64
	// Streams are the [Worker.Streams] of Session. They are only set in answers to heartbeats that
	// request Others, and only by stores with [NoteStreams].
	Streams Streams
}

// Fingerprint returns a hash of a session's leases and their epochs. It does not depend on their
// order.
func Fingerprint(held []Lease) uint64 {
	var sum uint64
	for i := range held {
		sum += held[i].fingerprint()
	}
	return sum
}

// fingerprint returns a 64-bit FNV-1a hash. All versions of weir must compute the same hash.
func (l *Lease) fingerprint() uint64 {
	var number [20]byte
	const prime = 1<<40 + 1<<8 + 0xb3
	sum := uint64(14695981039346656037)
	for i, part := range [...]string{l.Stream, l.Shard, "", l.Heir} {
		if i > 0 {
			sum *= prime // for a zero byte
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
