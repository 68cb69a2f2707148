package lease

import (
	"fmt"
	"math/bits"
	"strings"
)

// Abilities is a set of optional capabilities of a store. Combine the constants with |. The zero
// value is the empty set.
//
// The contract of a store grows by new fields of [Report], [Orders], [View] and [Action], not by
// new methods. A wrapper therefore passes on fields that it does not know. A store with an ability
// supports the fields of that ability. A store without the ability ignores these fields in its
// input and returns them as zero.
//
// Abilities describe one client. Other clients of the same data may have an earlier version. A
// stored field must therefore survive writes by a client that does not know the field.
type Abilities uint64

const (
	// WatchHeartbeats is the ability to return the heartbeat counts of all sessions in the answer
	// to a heartbeat that requests them ([Report].Others). The store reads no leases for this. From
	// the counts, each worker can detect which sessions are alive.
	WatchHeartbeats Abilities = 1 << iota
	// ResignByHeartbeat lets a leader resign with a heartbeat. This helps when its calls of
	// [Store.Lead] fail.
	ResignByHeartbeat
	// NoteFailures is the ability to store [Trouble].Failing for operators.
	NoteFailures
	// NoteDeaths is the ability to store [Lease.Deaths]. weir uses Deaths to detect a record that
	// kills one worker after another.
	NoteDeaths
	// KeepHistory is the ability to store past states of shards for operators. A store with this
	// ability implements [Historian]. A wrapper that hides that interface disables the ability.
	KeepHistory
	// NoteStreams is the ability to store [Report].Streams with the session, and to return
	// [Leader].Streams in answers to heartbeats. Workers then only get shards of streams that they
	// read.
	NoteStreams
	// NoteRates is the ability to store [Lease.Rate] for operators.
	NoteRates
	// NotePauses is the ability to store the note of a [Pause] for operators.
	NotePauses
	// NoteNumbers is the ability to store [Lease.Numbers]. A [Move] and a [Replace] clear it.
	// Workers then recognize records that a producer sent again, see weir's Options.DropRepeats.
	NoteNumbers

	// AllAbilities contains all abilities that this version of weir knows.
	AllAbilities Abilities = 1<<iota - 1
)

var abilityNames = [...]string{"watch heartbeats", "resign by heartbeat", "note failures", "note deaths", "keep history", "note streams",
	"note rates", "note pauses", "note numbers"}

// Has reports whether a contains all abilities of wanted.
func (a Abilities) Has(wanted Abilities) bool { return a.Missing(wanted) == 0 }

// Missing returns the abilities of wanted that a lacks.
func (a Abilities) Missing(wanted Abilities) Abilities { return wanted &^ a }

// String lists the abilities in the order of their constants, such as "watch heartbeats, resign by
// heartbeat". It returns "none" for the empty set.
func (a Abilities) String() string {
	if a == 0 {
		return "none"
	}
	var names []string
	for rest := uint64(a); rest != 0; rest &= rest - 1 {
		n := bits.TrailingZeros64(rest)
		if n < len(abilityNames) {
			names = append(names, abilityNames[n])
		} else {
			names = append(names, fmt.Sprintf("ability %d", n))
		}
	}
	return strings.Join(names, ", ")
}
