// Package repeats recognizes records that a producer sent again and that were handled before. It
// makes no calls and reads no clock.
//
// A [Tracker] contains exact sets of numbers, and not the highest number of each producer. A record
// is a repeat only if its own number is in the set. So a record that was not handled is never taken
// for a repeat, in any order of records, and after any loss of state or change of shards. If state
// is missing, repeats are handled again.
package repeats

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/shard"
)

// These are the limits of a set. Beyond them, it forgets the series that was silent longest, and
// the lowest numbers of a series.
const (
	mostSeries = 64
	mostSpans  = 128
	keptFor    = 6 * 60 // minutes
	// mostAhead limits the records after the checkpoint. Consecutive numbers count as one.
	mostAhead = 50_000
)

// span contains consecutive numbers. Both ends are included.
type span struct{ from, to uint64 }

// series contains the seen numbers of a series.
type series struct {
	id     uint64
	minute int64  // of the arrival of its newest record, since 1970
	spans  []span // ascending, with gaps between them
}

// set contains numbers of records. The series with the newest record is the last one.
type set struct{ all []series }

func (s *set) find(id uint64) int {
	for i := len(s.all) - 1; i >= 0; i-- {
		if s.all[i].id == id {
			return i
		}
	}
	return -1
}

func (s *set) has(n aggregate.Number) bool {
	i := s.find(n.Series)
	if i < 0 {
		return false
	}
	spans := s.all[i].spans
	for k := len(spans) - 1; k >= 0 && spans[k].to >= n.N; k-- {
		if spans[k].from <= n.N {
			return true
		}
	}
	return false
}

// add adds the numbers of a span.
func (s *set) add(id uint64, of span, minute int64) {
	i := s.find(id)
	if i < 0 {
		s.all = append(s.all, series{id: id, minute: minute})
		i = len(s.all) - 1
	}
	its := s.all[i]
	its.minute = max(its.minute, minute)
	its.add(of)
	copy(s.all[i:], s.all[i+1:])
	s.all[len(s.all)-1] = its
	if s.all[0].minute < minute-keptFor || len(s.all) > mostSeries {
		s.all = slices.DeleteFunc(s.all, func(old series) bool { return old.minute < minute-keptFor })
		s.all = slices.Delete(s.all, 0, max(0, len(s.all)-mostSeries))
	}
}

func (s *series) add(of span) {
	if n := len(s.spans); n > 0 && s.spans[n-1].from <= of.from && s.spans[n-1].to+1 >= of.from { // the usual case
		s.spans[n-1].to = max(s.spans[n-1].to, of.to)
		return
	}
	first := len(s.spans) // the first span that touches the new one, or follows it
	for first > 0 && s.spans[first-1].to+1 >= of.from {
		first--
	}
	last := first // the first span that only follows the new one
	for last < len(s.spans) && s.spans[last].from <= of.to+1 {
		of.from, of.to = min(of.from, s.spans[last].from), max(of.to, s.spans[last].to)
		last++
	}
	s.spans = slices.Replace(s.spans, first, last, of)
	if len(s.spans) > mostSpans {
		s.spans = slices.Delete(s.spans, 0, len(s.spans)-mostSpans)
	}
}

func (s *set) clone() set {
	all := slices.Clone(s.all)
	for i := range all {
		all[i].spans = slices.Clone(all[i].spans)
	}
	return set{all}
}

// Tracker contains the numbers of the records of a shard that were read, and of those before the
// checkpoint. Its methods must not be called concurrently.
type Tracker struct {
	read    set
	saved   set            // numbers of records before savedAt, all of which are done
	savedAt shard.Position // the last position of Saved or Restart
	ahead   []mark         // records after savedAt, in order
}

// mark is a run of sub-records with consecutive numbers in one record of the stream.
type mark struct {
	number string // of the stream's record
	sub    uint32 // index of the first one
	id     uint64
	span   span
	minute int64
}

// New returns the tracker of a shard that is read from start. text is the result of [Tracker.Saved]
// that is stored with the shard's lease, or "". New ignores a text of a later position than start,
// because some of the records before that position are to be handled again. ended are the texts of
// the shard's parents, which must have been handled to their ends.
func New(text string, start shard.Position, ended ...string) *Tracker {
	var all []series
	if at, own, ok := parse(text); ok && at.Compare(start) <= 0 {
		all = own
	}
	for _, text := range ended {
		if _, parents, ok := parse(text); ok {
			all = append(all, parents...)
		}
	}
	slices.SortStableFunc(all, func(a, b series) int { return int(a.minute - b.minute) })
	t := &Tracker{savedAt: start}
	for _, s := range all {
		for _, of := range s.spans {
			t.saved.add(s.id, of, s.minute)
		}
	}
	t.read = t.saved.clone()
	return t
}

// Known reports whether [New] uses a text of [Tracker.Saved] for a shard that is read from start.
func Known(text string, start shard.Position) bool {
	at, _, ok := parse(text)
	return ok && at.Compare(start) <= 0
}

// Read adds a sub-record that was read, and reports whether a record with the same number was read
// before. It must be called in the order of reading. number is the sequence number of the stream's
// record. Read copies it.
func (t *Tracker) Read(number string, sub uint32, n aggregate.Number, arrival time.Time) (repeat bool) {
	if n.IsZero() {
		return false
	}
	repeat = t.read.has(n)
	minute := arrival.Unix() / 60
	t.read.add(n.Series, span{n.N, n.N}, minute)
	if k := len(t.ahead) - 1; k >= 0 {
		m := &t.ahead[k]
		if m.number == number && m.id == n.Series && m.span.to+1 == n.N && uint64(sub-m.sub) == m.span.to+1-m.span.from {
			m.span.to = n.N
			return repeat
		}
	}
	if len(t.ahead) >= mostAhead {
		t.ahead = slices.Delete(t.ahead, 0, mostAhead/10)
	}
	if k := len(t.ahead) - 1; k >= 0 && t.ahead[k].number == number {
		number = t.ahead[k].number
	} else {
		number = strings.Clone(number)
	}
	t.ahead = append(t.ahead, mark{number, sub, n.Series, span{n.N, n.N}, minute})
	return repeat
}

// Saved returns the text to store with the checkpoint upTo. It is "" if there are no numbers, or if
// the tracker has saved numbers of records after upTo.
func (t *Tracker) Saved(upTo shard.Position) string {
	if upTo.Compare(t.savedAt) < 0 {
		return ""
	}
	t.fold(upTo)
	return t.saved.encode(upTo)
}

// fold adds the records before a position to the saved set.
func (t *Tracker) fold(upTo shard.Position) {
	if upTo.Compare(t.savedAt) <= 0 {
		return
	}
	t.savedAt = upTo
	done := 0
	for i := range t.ahead {
		m := &t.ahead[i]
		n := m.before(upTo)
		if n > 0 {
			t.saved.add(m.id, span{m.span.from, m.span.from + n - 1}, m.minute)
		}
		if m.span.from += n; m.span.from <= m.span.to {
			m.sub += uint32(n)
			break
		}
		done++
	}
	t.ahead = slices.Delete(t.ahead, 0, done)
}

// before returns how many records of the mark are before a position.
func (m *mark) before(p shard.Position) uint64 {
	all := m.span.to + 1 - m.span.from
	switch p.Kind() {
	case shard.Finished:
		return all
	case shard.Sequence:
	default:
		return 0
	}
	switch c := shard.CompareSequence(m.number, p.SequenceNumber()); {
	case c < 0:
		return all
	case c > 0 || p.Done() <= m.sub:
		return 0
	}
	return min(all, uint64(p.Done()-m.sub))
}

// Restart prepares the tracker for another read from a position. All records before the position
// must be done.
func (t *Tracker) Restart(at shard.Position) {
	if at.Compare(t.savedAt) < 0 {
		*t = Tracker{savedAt: at}
		return
	}
	t.fold(at)
	t.read, t.ahead = t.saved.clone(), nil
}
