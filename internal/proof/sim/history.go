package sim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
)

// history records all events. It keeps a running hash of all events and the last events in full.
type history struct {
	hash   uint64
	count  int
	recent []moment
	all    bool // keep all events in full
}

type moment struct {
	at    int64
	who   string
	life  int
	op    string
	how   string // progress of a call
	about string
	n     int
	what  string
}

const keptMoments = 6000

// add adds an event. The caller must fill in the event and then call [history.seal].
func (h *history) add(m moment) *moment {
	if h.recent == nil {
		h.recent = slices.Grow(room, 2*keptMoments)
		room = nil
	}
	if len(h.recent) >= 2*keptMoments && !h.all {
		h.recent = append(h.recent[:0], h.recent[keptMoments:]...)
	}
	h.recent = append(h.recent, m)
	return &h.recent[len(h.recent)-1]
}

// room is the memory of the last history, for reuse. A history is large, and most simulations are
// short.
var room []moment

// end releases the memory of a history.
func (h *history) end() { room, h.recent = h.recent[:0], nil }

// seal adds the last event to the hash.
func (h *history) seal(m *moment) {
	h.count++
	s := uint64(m.at)*golden ^ uint64(m.life)<<32 ^ uint64(m.n)
	s = stirred(stirred(stirred(stirred(stirred(s, m.who), m.op), m.how), m.about), m.what)
	h.hash = mix(h.hash ^ s)
}

// stirred adds a string to a hash.
func stirred(s uint64, part string) uint64 {
	s ^= uint64(len(part)) << 56
	for ; len(part) >= 8; part = part[8:] {
		s = (s ^ binary.LittleEndian.Uint64([]byte(part[:8]))) * golden
		s ^= s >> 29
	}
	if n := len(part); n >= 4 { // the two halves may overlap
		s = (s ^ uint64(binary.LittleEndian.Uint32([]byte(part[:4])))<<32 ^ uint64(binary.LittleEndian.Uint32([]byte(part[n-4:])))) * golden
	} else {
		for i := range n {
			s = (s ^ uint64(part[i])) * (1<<40 + 0x1b3)
		}
	}
	s ^= s >> 29
	return s*golden + 1
}

func (m moment) String() string {
	at := time.Duration(m.at)
	who := m.who
	if m.life > 0 {
		who = fmt.Sprintf("%s.%d", m.who, m.life)
	}
	op := m.op + m.how
	if m.n > 0 {
		op = fmt.Sprintf("%s#%d", op, m.n)
	}
	return strings.TrimRight(fmt.Sprintf("%12.6fs  %-6s %-14s %-24s %s", at.Seconds(), who, op, m.about, m.what), " ")
}
