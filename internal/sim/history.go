package sim

import (
	"fmt"
	"strings"
	"time"
)

// history is what happened: a running hash of all of it, and the last part in full.
type history struct {
	hash   uint64
	count  int
	recent []moment
	all    bool // keep everything
}

type moment struct {
	at    int64
	who   string
	life  int
	op    string
	about string
	n     int
	what  string
}

const keptMoments = 6000

func (h *history) add(m moment) {
	h.count++
	s := uint64(m.at)*golden ^ uint64(m.life)<<32 ^ uint64(m.n)
	for _, part := range [...]string{m.who, m.op, m.about, m.what} {
		for i := range len(part) {
			s = (s ^ uint64(part[i])) * (1<<40 + 0x1b3)
		}
		s = s*golden + 1
	}
	h.hash = mix(h.hash ^ s)
	if len(h.recent) >= 2*keptMoments && !h.all {
		h.recent = append(h.recent[:0], h.recent[keptMoments:]...)
	}
	h.recent = append(h.recent, m)
}

func (m moment) String() string {
	at := time.Duration(m.at)
	who := m.who
	if m.life > 0 {
		who = fmt.Sprintf("%s.%d", m.who, m.life)
	}
	op := m.op
	if m.n > 0 {
		op = fmt.Sprintf("%s#%d", op, m.n)
	}
	return strings.TrimRight(fmt.Sprintf("%12.6fs  %-6s %-14s %-24s %s", at.Seconds(), who, op, m.about, m.what), " ")
}
