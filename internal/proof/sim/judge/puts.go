package judge

import (
	"fmt"
	"maps"
	"slices"
)

// Place is the place of a record in a stream. Index is the index of the record in its aggregate,
// from 0.
type Place struct {
	Shard, Number string
	Index         int
}

// copied is a stored copy of a record.
type copied struct {
	at    Place
	owned bool // its key belongs to the shard
}

// putState is the state of a record that a producer accepted.
type putState struct {
	copies    []copied
	ended     bool // it has its outcome
	confirmed bool
	repeated  bool // a confirmation that says so
	maybe     bool // a failure that says that it may be stored
	handled   int  // when a handler first got it where its key belongs; 0 if none did
	strayed   bool // a handler got it elsewhere
	dropped   bool // a copy in that shard or a descendant may be dropped as a repeat
}

// Puts decides whether producers kept their promises, and keeps the first violation. Each key of an
// ID belongs to one run of one producer.
type Puts struct {
	keys    map[string][]putState // the n-th record of a key at n-1
	ordered map[string]bool       // the order of the key is promised
	last    map[string]int        // of an ordered key: its record that was confirmed last
	open    map[Worker]int        // accepted records without an outcome
	handled int
	wrong   string

	Confirmations, Failures, Copies int
}

// NewPuts returns a judge without records.
func NewPuts() *Puts {
	return &Puts{
		keys: map[string][]putState{}, ordered: map[string]bool{}, last: map[string]int{},
		open: map[Worker]int{},
	}
}

// Wrong returns the first broken promise, or "".
func (p *Puts) Wrong() string { return p.wrong }

func (p *Puts) breaks(format string, args ...any) {
	if p.wrong == "" {
		p.wrong = fmt.Sprintf(format, args...)
	}
}

// Next returns the ID of the next record of a key.
func (p *Puts) Next(key string) ID { return ID{key, len(p.keys[key]) + 1} }

// Accepted notes that a producer has accepted the next record of a key.
func (p *Puts) Accepted(id ID, by Worker, ordered bool) {
	p.keys[id.Key] = append(p.keys[id.Key], putState{})
	p.ordered[id.Key] = ordered
	p.open[by]++
}

func (p *Puts) state(id ID) *putState {
	all := p.keys[id.Key]
	if id.N < 1 || id.N > len(all) {
		return nil
	}
	return &all[id.N-1]
}

// Stored notes that the service has stored a record. owned means that the shard owns the keys of
// the record and of all records that are packed with it. The KCL drops all of them otherwise.
func (p *Puts) Stored(id ID, at Place, owned bool) {
	s := p.state(id)
	if s == nil {
		p.breaks("the stream gets %s, which no producer accepted", id)
		return
	}
	s.copies = append(s.copies, copied{at, owned})
	p.Copies++
	p.explained(id, s)
}

// explained checks that the outcome of a record agrees with the copies that the service has stored.
func (p *Puts) explained(id ID, s *putState) {
	switch {
	case !s.ended:
	case !s.confirmed && !s.maybe && len(s.copies) > 0:
		p.breaks("%s failed as certainly not stored, and it is at %v", id, s.copies[0].at)
	case s.confirmed && !s.repeated && len(s.copies) > 1:
		p.breaks("%s was confirmed as stored once, and it is at %v and %v",
			id, s.copies[0].at, s.copies[1].at)
	}
}

// end gives a record its outcome, and reports whether the record had no outcome before.
func (p *Puts) end(id ID, by Worker) (*putState, bool) {
	s := p.state(id)
	switch {
	case s == nil:
		p.breaks("%s has an outcome, and no producer accepted it", id)
		return nil, false
	case s.ended:
		p.breaks("%s has a second outcome", id)
		return nil, false
	}
	s.ended = true
	p.open[by]--
	return s, true
}

// Confirmed notes that a producer has reported a record as stored.
func (p *Puts) Confirmed(id ID, by Worker, at Place, repeated bool) {
	s, first := p.end(id, by)
	if !first {
		return
	}
	s.confirmed, s.repeated = true, repeated
	p.Confirmations++
	i := slices.IndexFunc(s.copies, func(c copied) bool { return c.at == at })
	switch {
	case i < 0:
		p.breaks("%s was confirmed at %v, and its copies are %v", id, at, s.copies)
	case !s.copies[i].owned:
		p.breaks("%s was confirmed at %v, where the KCL drops it", id, at)
	case p.ordered[id.Key] && id.N < p.last[id.Key]:
		p.breaks("%s was confirmed after record %d of its key", id, p.last[id.Key])
	}
	p.last[id.Key] = max(p.last[id.Key], id.N)
	p.explained(id, s)
}

// Failed notes that a producer has reported a record as failed. maybe means that the record may be
// stored nevertheless.
func (p *Puts) Failed(id ID, by Worker, maybe bool) {
	if s, first := p.end(id, by); first {
		s.maybe = maybe
		p.Failures++
		p.explained(id, s)
	}
}

// Open returns how many records of a producer have no outcome.
func (p *Puts) Open(by Worker) int { return p.open[by] }

// Handled notes that a handler got a copy of a record.
func (p *Puts) Handled(id ID, owned bool) {
	s := p.state(id)
	if s == nil {
		return
	}
	s.strayed = s.strayed || !owned
	if owned && s.handled == 0 {
		p.handled++
		s.handled = p.handled
	}
}

// Repeat notes that a copy of a record may be dropped as a repeat, because an earlier copy is in
// the same shard or in an ancestor. So it is enough that a handler gets the earlier copy, even
// where the key does not belong. The order of keys is not promised there.
func (p *Puts) Repeat(id ID) {
	if s := p.state(id); s != nil {
		s.dropped = true
	}
}

// End checks that every confirmed record was handled. It also checks that the confirmed records of
// each ordered key were handled in order. For the order, only the first handled copy of each record
// counts, among the copies in shards that own the key. See Repeat for the exception.
func (p *Puts) End() {
	for _, key := range slices.Sorted(maps.Keys(p.keys)) {
		before, last := 0, 0
		for i := range p.keys[key] {
			s := &p.keys[key][i]
			switch {
			case !s.confirmed, s.handled == 0 && s.dropped && s.strayed:
				continue
			case s.handled == 0:
				p.breaks("%s was confirmed, and no handler got it", ID{key, i + 1})
			case p.ordered[key] && s.handled < last:
				p.breaks("%s was handled before record %d of its key", ID{key, i + 1}, before)
			}
			before, last = i+1, s.handled
		}
	}
}
