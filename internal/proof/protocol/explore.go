package protocol

// Result is the result of an exhaustive search.
type Result struct {
	States, Transitions int
	Depth               int
	// Broken is the broken promise, or "". Trace contains the steps that lead to it.
	Broken string
	Trace  []string
	// Stuck is the number of states without a fault-free continuation that leads to a state in
	// which every lease is read.
	Stuck int
}

// table maps the hash of a state to the number of the state.
type table struct {
	slots []slot
	count uint32
}

type slot struct {
	hash   hash
	number uint32 // number of the state + 1
}

func newTable() *table { return &table{slots: make([]slot, 1<<16)} }

// add returns the number for a hash. It also reports whether the hash is new.
func (t *table) add(p hash) (uint32, bool) {
	if int(t.count) >= len(t.slots)/4*3 {
		t.grow()
	}
	at := t.find(p)
	if at.number == 0 {
		t.count++
		*at = slot{p, t.count}
		return t.count - 1, true
	}
	return at.number - 1, false
}

// find returns the slot of a hash, or the free slot in which it belongs.
func (t *table) find(p hash) *slot {
	mask := uint64(len(t.slots) - 1)
	for at := p.a & mask; ; at = (at + 1) & mask {
		if s := &t.slots[at]; s.number == 0 || s.hash == p {
			return s
		}
	}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, 2*len(old))
	for _, s := range old {
		if s.number != 0 {
			*t.find(s.hash) = s
		}
	}
}

// origin describes how a state was first reached: from which other state, and by which of its
// steps.
type origin struct {
	from uint32
	nth  uint16
}

// Explore visits all states, the nearest first, and stops at the first state that breaks a promise.
// It also stops when it has found limit states; 0 means no limit. If live is true, it also searches
// for states from which no work is possible any more.
func (m *Model) Explore(live bool, limit int) Result {
	var (
		r       Result
		known   = newTable()
		origins []origin
		edges   edges
		buf     [160]byte
	)
	first := m.initial()
	m.canonical(&first)
	known.add(hashOf(m.pack(buf[:0], &first)))
	origins = append(origins, origin{})
	level, next := []state{first}, []state(nil)
	number, done := uint32(0), false
	var good []bool
	if live {
		good = append(good, m.served(&first))
	}
	for ; len(level) > 0 && !done; r.Depth++ {
		for k := range level {
			nth := uint16(0)
			edges.begin(live)
			m.steps(&level[k], func(st step, t *state) {
				nth++
				if done {
					return
				}
				r.Transitions++
				m.canonical(t)
				n, isNew := known.add(hashOf(m.pack(buf[:0], t)))
				if live && !st.kind.fault() {
					edges.add(n)
				}
				if !isNew {
					return
				}
				origins = append(origins, origin{number, nth - 1})
				if r.Broken = m.broken(t); r.Broken == "" {
					r.Broken = m.wrong(&level[k], st, t)
				}
				if r.Broken != "" {
					r.Trace = m.trace(origins)
					done = true
				}
				if live {
					good = append(good, m.served(t))
				}
				next = append(next, *t)
			})
			number++
			if done || limit > 0 && len(origins) >= limit {
				done = true
				break
			}
		}
		level, next = next, level[:0]
	}
	r.States = len(origins)
	if live && !done {
		r.Stuck, r.Trace = m.stuck(edges, good, origins)
	}
	return r
}

// edges contains the fault-free steps, sorted by the number of their first state.
type edges struct {
	starts []uint32
	ends   []uint32
}

func (e *edges) begin(on bool) {
	if on {
		e.starts = append(e.starts, uint32(len(e.ends)))
	}
}

func (e *edges) add(to uint32) { e.ends = append(e.ends, to) }

// stuck counts the states from which no good state can be reached. It also returns the steps to the
// first state that it counts.
func (m *Model) stuck(e edges, good []bool, origins []origin) (int, []string) {
	e.begin(true)
	for changed := true; changed; {
		changed = false
		for n := len(good) - 1; n >= 0; n-- {
			if good[n] {
				continue
			}
			for _, to := range e.ends[e.starts[n]:e.starts[n+1]] {
				if good[to] {
					good[n], changed = true, true
					break
				}
			}
		}
	}
	count, firstBad := 0, -1
	for n, ok := range good {
		if !ok {
			if count == 0 {
				firstBad = n
			}
			count++
		}
	}
	if count == 0 {
		return 0, nil
	}
	return count, m.trace(origins[:firstBad+1])
}

// wrong returns the promise that a step itself breaks, or "".
func (m *Model) wrong(before *state, st step, after *state) string {
	resigns := st.resigns && (st.kind == stepBeat || st.kind == stepBeatTwice || st.kind == stepBeatLost)
	who := st.who + 1
	if st.kind == stepArrives && st.call.resigns {
		resigns, who = true, st.call.from
	}
	if resigns && before.leads() != nobody && before.leader != who && after.leader == nobody {
		return brokenRole
	}
	return ""
}
