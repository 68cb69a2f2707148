package queue

// mostRemembered is the maximum number of records in a memory.
const mostRemembered = 10_000

// memory remembers records that are done but not acknowledged, the finished records of aggregates,
// and the failures of records whose holds ended. It forgets the oldest ones when it is full.
type memory struct {
	records map[string]*doneParts
	order   []string // record IDs, oldest first; some may be forgotten already
}

type doneParts struct {
	all    bool
	subs   map[int]bool
	failed map[int]history
}

func newMemory() *memory { return &memory{records: map[string]*doneParts{}} }

// of returns the entry of a record, or nil.
func (m *memory) of(id string) *doneParts { return m.records[id] }

// add remembers that record sub of an aggregate is done.
func (m *memory) add(id string, sub int) {
	p := m.entry(id)
	if p.subs == nil {
		p.subs = map[int]bool{}
	}
	p.subs[sub] = true
}

// addFailed remembers the failures of record sub of an aggregate, or of record 0.
func (m *memory) addFailed(id string, sub int, h history) {
	p := m.entry(id)
	if p.failed == nil {
		p.failed = map[int]history{}
	}
	h.err = nil // it may be large
	p.failed[sub] = h
}

// addAll remembers that a record or aggregate is done.
func (m *memory) addAll(id string) { m.entry(id).all = true }

// remove forgets a record, because it is acknowledged.
func (m *memory) remove(id string) { delete(m.records, id) }

func (m *memory) entry(id string) *doneParts {
	if p := m.records[id]; p != nil {
		return p
	}
	p := &doneParts{}
	m.records[id] = p
	m.order = append(m.order, id)
	for len(m.order) > mostRemembered {
		delete(m.records, m.order[0])
		m.order = m.order[1:]
	}
	return p
}
