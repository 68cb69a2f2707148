package lease

import (
	"fmt"
	"math/bits"
	"strings"
)

// Abilities are what a store does beyond the calls that every store has to carry out, as a set:
// constants are joined with |. The zero value is none.
//
// The contract grows by fields of [Report], [Orders], [View] and [Action], not by more methods, so
// that a wrapper passes on what it does not know. An ability is the promise of a store to honour
// such a field; without it the field is ignored when it is sent, and zero when it is read.
// Abilities are those of one client. Others of the same data may be of the version before, so a
// field that is kept has to survive what a client writes that does not know it.
type Abilities uint64

const (
	// WatchBeats is to answer a beat that asks for it with the beat counts of all sessions, without
	// reading leases, so that every worker can see for itself who lives.
	WatchBeats Abilities = 1 << iota
	// ResignByBeat is to give leadership up with a beat that says so, for a leader whose calls of
	// [Store.Lead] fail.
	ResignByBeat
	// NoteFailures is to keep [Trouble].Failing, for people who look.
	NoteFailures
	// NoteDeaths is to keep [Lease.Deaths], so that a record that kills one worker after the other
	// is noticed.
	NoteDeaths
	// KeepHistory is to keep how shards stood over time, for people who look later. A store that
	// names it implements [Historian]; one that is hidden by a wrapper keeps none.
	KeepHistory
	// NoteStreams is to keep [Report].Streams with the session, and to answer beats with
	// [Leader].Streams, so that workers only get shards of streams that they read.
	NoteStreams

	// AllAbilities are all that this version of weir has names for.
	AllAbilities Abilities = 1<<iota - 1
)

var abilityNames = [...]string{"watch beats", "resign by beat", "note failures", "note deaths", "keep history", "note streams"}

// Has reports whether all of wanted are in a.
func (a Abilities) Has(wanted Abilities) bool { return a.Missing(wanted) == 0 }

// Missing are those of wanted that are not in a.
func (a Abilities) Missing(wanted Abilities) Abilities { return wanted &^ a }

// String names the abilities in the order of their constants: "watch beats, resign by beat", or
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
