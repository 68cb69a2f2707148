package lease

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/shard"
)

// Key names a lease inside an application: the stream's name and the shard's ID.
type Key struct{ Stream, Shard string }

// String is "stream/shard".
func (k Key) String() string { return k.Stream + "/" + k.Shard }

// Compare orders keys by stream, then shard.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Stream, o.Stream), strings.Compare(k.Shard, o.Shard))
}

// Lease is the right to read one shard and the place where reading resumes.
type Lease struct {
	Key
	Parents []string        // shard IDs of the same stream, at most two
	Range   shard.HashRange // what the shard serves

	// Epoch fences. It grows by one with each change of owner, also with the change to nobody.
	Epoch uint64
	// Owner is the session that holds the lease, "" while nobody does.
	Owner string
	// Heir is the session that Owner is asked to hand the lease to, "" without a wish. Only owned
	// leases have one.
	Heir string
	// Revoked is the session from which the lease was taken without its consent and which has not
	// acknowledged yet. Only leases without an owner have one.
	Revoked string
	// Last is the session that owned the lease most recently, also while it is owned. Plan prefers
	// it.
	Last string
	// Shunned is the session that gave the lease back to nobody because it could not make progress
	// with it ([Progress.Stalled]), until somebody owns it again. Plan gives it to another worker
	// if there is any.
	Shunned string
	// Position is where reading resumes. It never goes back while the lease lives. [shard.End]
	// means finished: such a lease has no owner and stays as a tombstone until its shard has left
	// the stream.
	Position shard.Position
	// Deaths is what is known of owners that died at one position, and of what is done beyond it: a
	// [Deaths] as text, "" when there is nothing; see [Lease.DeathsHere].
	Deaths string
	// Load is what the shard brought when an owner last said so. It says nothing about who may do
	// what.
	Load Load
	// Born is when the stream was created as the service tells it, in Unix milliseconds, 0 when
	// that is not known. It tells a stream from one of the same name that was deleted before.
	Born int64
}

// Nobody is an heir that is no session: its owner is asked to drain the lease, save, and release it
// to nobody.
const Nobody = "~"

// NextOwner is the session that a release gives the lease to, "" for nobody.
func (l Lease) NextOwner() string {
	if l.Heir == Nobody {
		return ""
	}
	return l.Heir
}

// Finished reports whether the shard has been read to its end.
func (l Lease) Finished() bool { return l.Position.IsEnd() }

// String is a short form for logs and tests.
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

// Worker is one session of a worker as the store knows it.
type Worker struct {
	Session string // unique for each start
	Name    string // what people call the worker; not necessarily unique

	// Beat counts the beats of the session that reached the store. Only its moving matters.
	Beat uint64
	// Ended means that the leader declared the session dead: its beats are refused. The row stays
	// until no lease names the session as its owner or heir and no call is on its way that does,
	// see [Facts.Forgettable].
	Ended bool
	// Leaving means that the worker stops: it gets nothing more and its leases are wanted
	// elsewhere.
	Leaving bool
	// Drain means that an operator wants the worker emptied although it goes on running; see the
	// action Drain.
	Drain bool

	// Weight is the worker's share relative to the others, 1 when it did not say.
	Weight float64
	// MaxLeases caps what the worker may hold; 0 is no cap.
	MaxLeases int
	// Holds is the [Fingerprint] of the leases that the worker believed to hold when it sent its
	// last beat. When it differs from what the leases say for long, an answer or a note to the
	// worker was lost, and the leader tells it.
	Holds uint64
	// Times are those that the session's first beat reported, zero when it did not. They are for
	// people and their tools: a leader judges by its own.
	Times Times
	// Streams are the streams that the worker reads, as of its last beat. [Plan] gives it no shards
	// of other streams. The zero value means that the worker did not report them.
	Streams Streams
	// Troubles are what the last beat said, nil when all goes well.
	Troubles []Trouble
}

// CutOff is the State of a Trouble without a Key: the worker can read no shard, and not because of
// the shards.
const CutOff = "cut off"

// CutOff reports whether the worker says that it is. [Plan] gives it nothing more as long as
// another can take it.
func (w *Worker) CutOff() bool {
	for i := range w.Troubles {
		if t := &w.Troubles[i]; t.State == CutOff && t.Key == (Key{}) {
			return true
		}
	}
	return false
}

// Trouble is what a worker says is not going well with one of its shards, or with itself.
type Trouble struct {
	Key                 // zero for the worker itself
	State string        // a word, at most [MaxStateBytes]
	For   time.Duration // since when, in whole milliseconds
	Why   string        // for people, at most [MaxWhyBytes]
	// Failing says more of a handler that fails, or of records that were given up. Stores without
	// [NoteFailures] leave it out, and workers of versions that did not say it.
	Failing Failing `json:",omitzero"`
}

// Failing is at what a handler fails, and whether that is given up. The zero value says nothing.
type Failing struct {
	// At names the record by the position after it, as text, at most [MaxNameBytes]: what follows
	// the shard in the record's ID. Of several it is the first.
	At string `json:",omitzero"`
	// KeyHash is the beginning of the SHA-256 of its partition key, which may be about a person: 8
	// hex digits.
	KeyHash string `json:",omitzero"`
	// Records is how many the handler got when it did not say at which of them it failed; 1 when it
	// is known.
	Records int `json:",omitzero"`
	// Attempts is how many calls have failed there, of this owner of the shard.
	Attempts int `json:",omitzero"`
	// Held is why the record is not given up although it could be: [HeldPatience] or [HeldRate]; ""
	// when it could not be.
	Held string `json:",omitzero"`
	// Letters says that the letters of records that are given up cannot be put; Why is that error.
	Letters bool `json:",omitzero"`
	// GivenUp is how many records of the shard the worker has given up lately.
	GivenUp int `json:",omitzero"`
}

// What holds giving records up.
const (
	HeldPatience = "patience" // the worker has handled nothing else since the first failure
	HeldRate     = "rate"     // that would be too many a minute
)

// GaveUp is the State of a Trouble of a shard that is well, but for records of it that the worker
// gave up lately: [Failing].GivenUp since For.
const GaveUp = "gave records up"

// OnPurpose is the State of a Trouble of a shard that is well, and whose checkpoint is kept where
// it is on purpose, since For: Why says by what. Without a Key it is about several shards of the
// worker.
const OnPurpose = "held on purpose"

// Leader is who leads, as the store knows it.
type Leader struct {
	// Session leads; "" when nobody does, or when the session that did has ended, left, or
	// resigned.
	Session string
	// Term counts the changes of leader. Candidates give the term they saw. It stays when a
	// leader's session ends, or resigns with a beat.
	Term uint64
	// Beat is the beat count of Session. Whether the leader lives is whether this moves.
	Beat uint64
	// Streams are the [Worker.Streams] of Session. Only answers to beats that ask for Others have
	// them, and only those of stores with [NoteStreams].
	Streams Streams
}

// Fingerprint condenses which leases a session holds, with their epochs, into a number. It does not
// depend on the order.
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
