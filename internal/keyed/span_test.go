package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// model implements a span as a list of records that is searched from the beginning each time.
type model struct {
	t     *testing.T
	rng   *rand.Rand
	span  *Span
	bound int
	most  int
	all   []known
	added []added
	calls []*call
	keys  int
}

type known struct {
	record   source.Record
	done, in bool // in reports that a call has the record
}

// added is one call of Add, with the records from index begin to index end and the argument upTo.
type added struct {
	begin, end, bytes int
	upTo              shard.Position
	since             mono.Time
}

type call struct {
	lane    *Lane
	records []int // indexes in all
	done    int
	paused  bool
}

func (m *model) add() {
	var some []source.Record
	a := added{begin: len(m.all), since: mono.Time(len(m.added) + 1)}
	for range m.rng.IntN(12) {
		n := len(m.all) + len(some)
		r := source.Record{SequenceNumber: fmt.Sprint(1000 + n/3), Done: uint32(n%3) + 1, Data: []byte("x")}
		if n%3 == 2 {
			r.Done = shard.Whole
		}
		if k := m.rng.IntN(m.keys + 1); k > 0 {
			r.Key = fmt.Sprint("k", k)
		}
		some = append(some, r)
	}
	a.bytes, a.end = len(some)*10, a.begin+len(some)
	if m.rng.IntN(2) == 0 {
		p, err := shard.Part(fmt.Sprint(1000+a.end/3), uint32(a.end%3)+1)
		if err != nil {
			m.t.Fatal(err)
		}
		a.upTo = p
	}
	for _, r := range some {
		m.all = append(m.all, known{record: r})
	}
	m.added = append(m.added, a)
	m.span.Add(some, a.bytes, a.upTo, a.since, nil)
}

// oldest returns the index of the first record that is not done, or len(m.all) if all are done.
func (m *model) oldest() int {
	i := slices.IndexFunc(m.all, func(k known) bool { return !k.done })
	if i < 0 {
		return len(m.all)
	}
	return i
}

// works returns the number of calls that are not paused.
func (m *model) works() (n int) {
	for _, c := range m.calls {
		if !c.paused {
			n++
		}
	}
	return n
}

// free reports whether record i could begin, because no call has a record of its key.
func (m *model) free(i int) bool {
	if k := m.all[i]; k.done || k.in {
		return false
	}
	key := m.all[i].record.Key
	return key == "" || !slices.ContainsFunc(m.calls, func(c *call) bool { return m.all[c.records[0]].record.Key == key })
}

func (m *model) begin() {
	oldest := m.oldest()
	lane, isOldest := m.span.MayBegin()
	atWork, resumed := false, false
	for _, c := range m.calls {
		has := slices.Contains(c.records[c.done:], oldest)
		atWork = atWork || has && !c.paused
		resumed = resumed || has && c.paused && c.lane.queued
	}
	mustOldest := oldest < len(m.all) && (m.free(oldest) || resumed) && m.works() < m.bound
	if mustOldest != isOldest {
		m.t.Fatalf("the oldest, %d, may begin: %t, want %t", oldest, isOldest, mustOldest)
	}
	others := m.works()
	if atWork {
		others--
	}
	some := isOldest
	if others < m.bound-1 {
		for i := range m.all {
			some = some || m.free(i)
		}
		for _, c := range m.calls {
			some = some || c.paused && c.lane.queued
		}
	}
	if some != (lane != nil) {
		m.t.Fatalf("a lane may begin: %t, want %t; %d at work", lane != nil, some, m.works())
	}
	if lane == nil {
		return
	}
	m.span.Begin(lane)
	for _, c := range m.calls {
		if c.lane == lane {
			if !c.paused {
				m.t.Fatalf("two calls of a lane: %+v", c)
			}
			c.paused = false
			return
		}
	}
	c := &call{lane: lane}
	if len(lane.Records) == 0 || len(lane.Records) > m.most {
		m.t.Fatalf("a call with %d records", len(lane.Records))
	}
	key := lane.Records[0].Key
	for i := 0; i < len(m.all) && len(c.records) < len(lane.Records); i++ {
		if k := &m.all[i]; k.record.Key == key && !k.done && !k.in {
			if key == "" && !same(&k.record, &lane.Records[0]) {
				continue
			}
			k.in = true
			c.records = append(c.records, i)
		}
	}
	for j, i := range c.records {
		if !same(&m.all[i].record, &lane.Records[j]) {
			m.t.Fatalf("key %q: record %d of a call is not %d", key, j, i)
		}
	}
	if len(c.records) != len(lane.Records) || isOldest && c.records[0] != oldest {
		m.t.Fatalf("a call of %d records has %v", len(lane.Records), c.records)
	}
	m.calls = append(m.calls, c)
}

func same(a, b *source.Record) bool {
	return a.SequenceNumber == b.SequenceNumber && a.Done == b.Done && a.Key == b.Key
}

// goOn applies a random operation to a call.
func (m *model) goOn() {
	if len(m.calls) == 0 {
		return
	}
	i := m.rng.IntN(len(m.calls))
	c := m.calls[i]
	if c.paused {
		if !c.lane.queued {
			m.span.Resume(c.lane)
		}
		return
	}
	n := m.rng.IntN(len(c.records) - c.done + 1)
	for range n {
		k := &m.all[c.records[c.done]]
		k.done, k.in = true, false
		c.done++
	}
	m.span.Done(c.lane, n)
	switch {
	case c.done == len(c.records):
		m.span.Return(c.lane)
		m.calls = slices.Delete(m.calls, i, i+1)
	case m.rng.IntN(2) == 0:
		m.span.Pause(c.lane)
		c.paused = true
	}
}

// check compares all results of the span with those of the model.
func (m *model) check() {
	oldest := m.oldest()
	var mark shard.Position
	bytes := 0
	for _, a := range m.added {
		switch {
		case a.end <= oldest:
			if !a.upTo.IsZero() {
				mark = a.upTo
			} else if a.end > a.begin {
				mark = m.all[a.end-1].record.After()
			}
		case a.begin < oldest:
			mark = m.all[oldest-1].record.After()
		}
		if a.end > oldest {
			bytes += a.bytes
		}
	}
	if got := m.span.Mark(); got != mark {
		m.t.Fatalf("the mark is %v, want %v", got, mark)
	}
	if m.span.Len() != len(m.all)-oldest || m.span.Bytes() != bytes {
		m.t.Fatalf("%d records of %d bytes, want %d of %d", m.span.Len(), m.span.Bytes(), len(m.all)-oldest, bytes)
	}
	keys, alone := map[string]bool{}, 0
	for _, k := range m.all[oldest:] {
		switch {
		case k.done:
		case k.record.Key == "":
			alone++
		default:
			keys[k.record.Key] = true
		}
	}
	if live, works := m.span.Lanes(); live != len(keys)+alone || works != m.works() {
		m.t.Fatalf("%d lanes, %d at work, want %d and %d", live, works, len(keys)+alone, m.works())
	}
	r, lane, since := m.span.Oldest()
	if (r == nil) != (oldest == len(m.all)) || (lane == nil) != (r == nil) {
		m.t.Fatalf("the oldest is %v", r)
	}
	if r != nil {
		a := m.added[slices.IndexFunc(m.added, func(a added) bool { return a.end > oldest })]
		if !same(r, &m.all[oldest].record) || since != a.since {
			m.t.Fatalf("the oldest is %v since %v, want %v since %v", r, since, m.all[oldest].record, a.since)
		}
	}
}

// After each step of a random sequence, a span has the same mark and the same next lanes as a
// simple list of all records.
func TestASpanIsLikeAListThatIsLookedThrough(t *testing.T) {
	for seed := range rounds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			m := &model{t: t, rng: rng, bound: 2 + rng.IntN(6), most: 1 + rng.IntN(5), keys: 1 + rng.IntN(12)}
			m.span = NewSpan(m.bound, m.most)
			for range 300 {
				switch rng.IntN(8) {
				case 0:
					m.add()
				case 1, 2, 3:
					m.begin()
				default:
					m.goOn()
				}
				m.check()
			}
			for range 100_000 {
				if m.oldest() == len(m.all) && len(m.calls) == 0 {
					break
				}
				m.begin()
				m.goOn()
				m.check()
			}
			if m.oldest() < len(m.all) || m.span.lanes.n > 0 || m.span.first != nil {
				t.Errorf("it does not come to its end: %d of %d", m.oldest(), len(m.all))
			}
			m.span.Close() // the next span reuses its memory
			m.check()
		})
	}
}

func rounds() uint64 {
	switch {
	case longform.On():
		return 1000
	case testing.Short():
		return 100
	}
	return 300
}

// One slot is reserved for the oldest record. The later records of its lane wait for a slot like
// other records. A call that waits for the oldest record has no slot.
func TestAPlaceIsKeptForTheOldest(t *testing.T) {
	s := NewSpan(2, 1)
	s.Add([]source.Record{{Key: "a", SequenceNumber: "1", Done: shard.Whole}, {Key: "b", SequenceNumber: "2", Done: shard.Whole},
		{Key: "c", SequenceNumber: "3", Done: shard.Whole}, {Key: "a", SequenceNumber: "4", Done: shard.Whole}}, 4, shard.Position{}, 1, nil)
	begins := func(key string, isOldest bool) *Lane {
		t.Helper()
		l, oldest := s.MayBegin()
		if l == nil || oldest != isOldest {
			t.Fatalf("%v, %t", l, oldest)
		}
		s.Begin(l)
		if l.Records[0].Key != key {
			t.Fatalf("it begins with %q, want %q", l.Records[0].Key, key)
		}
		return l
	}
	a, b := begins("a", true), begins("b", false)
	if l, _ := s.MayBegin(); l != nil {
		t.Fatalf("a third call: %v", l)
	}
	s.Pause(a)
	s.Resume(a)
	a = begins("a", true)
	s.Done(a, 1)
	s.Return(a)
	// b is the oldest record now, so another lane may begin.
	c := begins("c", false)
	if l, _ := s.MayBegin(); l != nil {
		t.Fatalf("a third call: %v", l)
	}
	s.Done(b, 1)
	s.Return(b)
	begins("a", false)
	if l, _ := s.MayBegin(); l != nil {
		t.Fatalf("a third call: %v", l)
	}
	s.Done(c, 1)
	if got := s.Mark().String(); got != "3" {
		t.Errorf("the mark is %s", got)
	}
}

// A call that waits for older records leaves its slot to them.
func TestWhoRestsLeavesItsPlace(t *testing.T) {
	s := NewSpan(2, 1)
	s.Add([]source.Record{{Key: "a", SequenceNumber: "1", Done: shard.Whole}, {Key: "b", SequenceNumber: "2", Done: shard.Whole},
		{Key: "c", SequenceNumber: "3", Done: shard.Whole}, {Key: "d", SequenceNumber: "4", Done: shard.Whole}}, 4, shard.Position{}, 1, nil)
	for _, key := range []string{"a", "b", "c", "d"} {
		l, _ := s.MayBegin()
		if l == nil {
			t.Fatalf("%s does not begin", key)
		}
		s.Begin(l)
		s.Done(l, 1)
		s.Rest()
	}
	if _, works := s.Lanes(); works != 0 {
		t.Errorf("%d at work", works)
	}
}
