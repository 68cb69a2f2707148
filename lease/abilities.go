package lease

import (
	"fmt"
	"math/bits"
	"strings"
)

// Abilities is a set of optional capabilities of a store, beyond the calls that every store must
// support. Combine the constants with |. The zero value is the empty set.
//
// The contract grows by new fields of [Report], [Orders], [View] and [Action], not by new methods,
// so that a wrapper passes on fields that it does not know. An ability promises that the store
// honours such a field. Without the ability the store ignores the field in what it receives and
// returns it as zero. Abilities describe one client. Other clients of the same data may have an
// earlier version, so a stored field must survive writes by a client that does not know it.
type Abilities uint64

const (
	// WatchBeats answers a heartbeat that asks for it with the heartbeat counts of all sessions,
	// without reading leases, so that every worker can see which sessions are alive.
	WatchBeats Abilities = 1 << iota
	// ResignByBeat lets a leader resign with a heartbeat, for when its calls of [Store.Lead] fail.
	ResignByBeat
	// NoteFailures stores [Trouble].Failing, for operators.
	NoteFailures
	// NoteDeaths stores [Lease.Deaths], so that a record that kills one worker after another is
	// noticed.
	NoteDeaths
	// KeepHistory stores the past states of the shards, for operators. A store that names it
	// implements [Historian]. A wrapper that hides the interface disables it.
	KeepHistory
	// NoteStreams stores [Report].Streams with the session and answers heartbeats with
	// [Leader].Streams, so that workers only get shards of streams that they read.
	NoteStreams

	// AllAbilities contains every ability that this version of weir has a name for.
	AllAbilities Abilities = 1<<iota - 1
)

var abilityNames = [...]string{"watch beats", "resign by beat", "note failures", "note deaths", "keep history", "note streams"}

// Has reports whether a contains all of wanted.
func (a Abilities) Has(wanted Abilities) bool { return a.Missing(wanted) == 0 }

// Missing returns the abilities of wanted that a does not contain.
func (a Abilities) Missing(wanted Abilities) Abilities { return wanted &^ a }

// String lists the abilities in the order of their constants: "watch beats, resign by beat", or
// "none".
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
