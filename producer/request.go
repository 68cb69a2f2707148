package producer

import (
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/jitter"
)

// The limits of a request.
const (
	mostEntries = 500
	mostBytes   = 10 << 20
)

// scanned limits the number of records that are searched for different keys.
const scanned = 2000

// sending is one record of the stream in a request: a single record, or a container with several.
type sending struct {
	records []*Pending         // a part of the request's list taken
	box     *aggregate.Builder // of a container
}

// size returns the size of the stream's record with its key.
func (s *sending) size() int {
	if s.box == nil {
		return s.records[0].size() - s.records[0].tagsSize()
	}
	return s.box.Size() + len(s.records[0].key)
}

// part is the sendings of one queue in a request.
type part struct {
	q           *queue
	first, last int // the last one is not included
}

// request is a call of PutRecords.
type request struct {
	sendings []sending
	parts    []part
	taken    []*Pending // the records of all sendings
	bytes    int
	records  int
	sent     time.Time
	alone    bool // nothing may be added
}

// requests has spare requests, whose lists are used again.
var requests = sync.Pool{New: func() any { return new(request) }}

// newRequest returns an empty request.
func newRequest(now time.Time) *request {
	r := requests.Get().(*request)
	r.sent = now
	return r
}

// free makes the memory of a request available to others. Nothing uses r any more.
func (r *request) free() {
	clear(r.sendings)
	clear(r.parts)
	clear(r.taken)
	*r = request{sendings: r.sendings[:0], parts: r.parts[:0], taken: r.taken[:0]}
	requests.Put(r)
}

// room reports whether the given number of bytes fits into the request.
func (r *request) room(bytes int) bool {
	return len(r.sendings) == 0 || len(r.sendings) < mostEntries && r.bytes+bytes <= mostBytes && !r.alone
}

// take adds a record to the list of the next sending.
func (r *request) take(p *Pending) { r.taken = append(r.taken, p) }

// add adds a sending with the records that were taken since the last one.
func (r *request) add(s sending, q *queue) {
	s.records = r.taken[r.records:len(r.taken):len(r.taken)]
	bytes := s.size()
	q.pace.use(bytes, 1)
	r.sendings = append(r.sendings, s)
	r.bytes += bytes
	r.records = len(r.taken)
}

// standing has the facts that decide when a queue sends next.
type standing struct {
	held     bool      // until another request is answered
	hurry    bool      // nothing lingers
	enough   bool      // records for a request are there
	oldest   time.Time // when the first record was put
	linger   time.Duration
	notUntil time.Time // after a failure
	pace     time.Duration
}

// due returns when the queue sends, and false if that depends on another request.
func (s standing) due(now time.Time) (time.Time, bool) {
	if s.held {
		return time.Time{}, false
	}
	at := now
	if !s.hurry && !s.enough {
		at = later(at, s.oldest.Add(s.linger))
	}
	return later(later(at, s.notUntil), now.Add(s.pace)), true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// held reports whether records of q have to wait for the answer to a request.
func (c *core) held(q *queue) bool {
	if !c.ordered() {
		return false
	}
	if q.busy() {
		return true
	}
	for _, r := range c.retired {
		if overlap(r.keys, q.keys) {
			return true
		}
	}
	return false
}

// standing returns the facts that decide when q sends next. q has records.
func (c *core) standing(q *queue, now time.Time) standing {
	s := standing{held: c.held(q), oldest: c.began.Add(q.first().put), linger: c.linger, notUntil: q.notUntil}
	if s.held {
		return s
	}
	s.hurry = c.draining || q.first().number <= c.hurry || q.first().attempts > 0
	if c.packing() {
		size := c.containerSize(q, now)
		s.enough = q.bytes >= size
		if q.first().size() > size || q.first().whole {
			s.enough = true
			s.pace = q.pace.wait(now, q.first().size(), 1)
		} else {
			s.pace = q.pace.wait(now, min(size, q.bytes), 1)
		}
		return s
	}
	// Without packing, a request has enough records if they use 50 ms of the pace. A container has
	// about the same size.
	bytes, records := int(0.05*q.pace.scale(now)*shardBytes), max(1, int(0.05*q.pace.scale(now)*shardRecords))
	s.enough = q.bytes >= bytes || q.n >= records
	s.pace = q.pace.wait(now, max(q.first().size(), min(bytes, q.bytes)), min(records, q.n))
	return s
}

func (c *core) containerSize(q *queue, now time.Time) int {
	return containerSize(c.roundTrip, q.pace.shareAt(now), min(c.facts.maxRecord, shardBytes))
}

// next returns the request to send now. If there is none, it returns when to call it again, or the
// zero time if that depends on a request in flight.
func (c *core) next(now time.Time) (*request, time.Time) {
	if !c.started(now) {
		return nil, c.startBy
	}
	r := newRequest(now)
	var again time.Time
	soon := func(at time.Time) {
		if again.IsZero() || at.Before(again) {
			again = at
		}
	}
	for turns := c.filled.len(); turns > 0; turns-- {
		q := c.filled.pop()
		if q.inFilled = false; !q.inMap {
			continue
		}
		c.expire(q, now, soon)
		if c.stopped {
			break
		}
		if q.n == 0 {
			continue
		}
		if q.paced.After(now) {
			soon(q.paced)
			c.fill(q)
			continue
		}
		s := c.standing(q, now)
		at, ok := s.due(now)
		if s.pace > 0 && (s.hurry || s.enough) { // further records do not change that
			q.paced = now.Add(s.pace)
		}
		switch {
		case !ok:
		case at.After(now):
			soon(at)
		case r.room(min(c.need(q.first()), mostBytes)):
			c.take(r, q, now)
		default: // its turn comes first next time
			soon(now)
			q.inFilled = true
			c.filled.unpop(q)
			return c.begin(r), now
		}
		c.fill(q)
	}
	return c.begin(r), again
}

// begin marks a request as in flight. It returns nil for a request without records.
func (c *core) begin(r *request) *request {
	if len(r.sendings) == 0 {
		r.free()
		return nil
	}
	for _, p := range r.parts {
		p.q.requests++
	}
	c.inFlight += r.records
	c.counts.Requests++
	c.counts.Entries += uint64(len(r.sendings))
	return r
}

// expire fails the records of a queue that waited too long.
func (c *core) expire(q *queue, now time.Time, soon func(time.Time)) {
	for c.maxAge > 0 && q.n > 0 {
		if at := c.began.Add(q.first().put + c.maxAge); at.After(now) {
			soon(at)
			return
		}
		c.fail(q.pop(), ErrExpired)
	}
}

// take moves records of a queue into a request.
func (c *core) take(r *request, q *queue, now time.Time) {
	c.dropUnfit(q)
	if q.n == 0 || c.stopped {
		return
	}
	first := len(r.sendings)
	switch most := int(q.first().most); {
	case most > 0 && first > 0:
		return // it goes alone, with the next request
	case most > 0:
		r.alone = true
		c.takeFew(r, q, most, now)
	case c.packing():
		c.takeContainer(r, q, 0, now)
	case c.ordered():
		c.takeDistinct(r, q)
	default:
		c.takeAll(r, q)
	}
	if last := len(r.sendings); last > first {
		r.parts = append(r.parts, part{q, first, last})
	}
}

// dropUnfit fails records at the front that the stream would not accept: records that are too
// large, and records without a key if the stream needs keys.
func (c *core) dropUnfit(q *queue) {
	for q.n > 0 {
		switch p := q.first(); {
		case p.size() > c.facts.maxRecord:
			c.fail(q.pop(), ErrTooLarge)
		case p.key == "" && !c.facts.auto:
			c.fail(q.pop(), errNoKey)
		default:
			return
		}
	}
}

// unfit reports whether dropUnfit would fail a record.
func (c *core) unfit(p *Pending) bool {
	return p.size() > c.facts.maxRecord || p.key == "" && !c.facts.auto
}

// takeContainer takes as many records from the front as fit into a container, but at least one. A
// single record is sent without a container unless it has tags or a number. If most is not 0,
// takeContainer takes at most that many records.
func (c *core) takeContainer(r *request, q *queue, most int, now time.Time) {
	size := c.containerSize(q, now)
	box := c.box()
	box.Limit = max(1, size-len(q.first().key))
	for range q.packable(box.Limit, most) {
		p := q.first()
		if c.unfit(p) || p.size() >= box.Limit || !r.room(box.Size()+p.size()) || c.addTo(box, q, p) != nil {
			break
		}
		r.take(q.pop())
	}
	var s sending
	if box.Len() == 0 {
		p := q.pop()
		if c.wrapped(p) { // it gets a container, however large it is
			box.Limit = shardBytes - len(p.key)
			_ = c.addTo(box, q, p)
		}
		r.take(p)
	}
	if box.Len() > 1 || box.Len() == 1 && c.wrapped(r.taken[r.records]) {
		s.box = box
	} else {
		box.Reset()
		c.boxes = append(c.boxes, box)
	}
	r.add(s, q)
}

// addTo adds a record of a queue to a container.
func (c *core) addTo(box *aggregate.Builder, q *queue, p *Pending) error {
	if c.numbered {
		return addNumbered(box, q, p)
	}
	if p.tags == nil {
		return box.Add(p.key, p.explicit, p.data)
	}
	return box.AddTagged(p.key, p.explicit, p.data, *p.tags)
}

// addNumbered adds a record with its number, and numbers it first if it has none. A record keeps
// its number in each attempt. A queue has a series of its own, because its records then reach one
// shard in the order of their numbers, and a consumer can store many numbers in little space.
func addNumbered(box *aggregate.Builder, q *queue, p *Pending) error {
	mark := p.mark
	if mark.IsZero() {
		if q.series == 0 {
			q.series = newSeries(q.shard)
		}
		mark = aggregate.Number{Series: q.series, N: q.numbered + 1}
	}
	var tags aggregate.Tags
	if p.tags != nil {
		tags = *p.tags
	}
	err := box.AddNumbered(p.key, p.explicit, p.data, tags, mark)
	if err == nil && p.mark.IsZero() {
		p.mark, q.numbered = mark, mark.N
	}
	return err
}

// newSeries returns a random number that is not 0.
func newSeries(of string) uint64 {
	b, _ := hex.DecodeString(jitter.Name(of)) // never fails
	return binary.BigEndian.Uint64(b) | 1
}

// packable returns how many records from the front can be in a container of the given size at most.
// It looks at all of them in a short loop, which waits for memory only once for several records.
func (q *queue) packable(size, most int) (n int) {
	for at := q.head; at < len(q.items) && size > 0 && (most == 0 || n < most); at++ {
		p := q.items[at].record
		if p.whole || int(p.most) != most {
			break
		}
		size -= len(p.data) + leastOverhead
		n++
	}
	return n
}

// leastOverhead is the minimum size of a packed record without data. A record, its key and its data
// have a tag and a length or row each.
const leastOverhead = 6

// box returns an empty builder.
func (c *core) box() *aggregate.Builder {
	if n := len(c.boxes); n > 0 {
		box := c.boxes[n-1]
		c.boxes = c.boxes[:n-1]
		return box
	}
	return new(aggregate.Builder)
}

// takeFew takes up to most records, after a request with them was rejected as invalid.
func (c *core) takeFew(r *request, q *queue, most int, now time.Time) {
	switch {
	case c.packing():
		c.takeContainer(r, q, most, now)
	default:
		takeOne(r, q, q.pop())
	}
}

// takeOne adds a record that was removed from a queue.
func takeOne(r *request, q *queue, p *Pending) {
	r.take(p)
	r.add(sending{}, q)
}

// takeDistinct takes records with different keys, the oldest record of each key. A request must not
// have two records of a key, because the service may refuse one record and store the next.
func (c *core) takeDistinct(r *request, q *queue) {
	c.keys.reset()
	at, end := q.head, min(len(q.items), q.head+scanned)
scan:
	for ; at < end; at++ {
		p := q.items[at].record
		taken := c.keys.add(q.items[at].key)
		switch {
		case taken, p.most > 0 && c.keys.n > 1, c.unfit(p):
			// It waits, and so do newer ones of its key.
		case c.keys.n > 1 && !q.pace.fits(p.size()), !r.room(p.size()):
			break scan
		default:
			takeOne(r, q, q.remove(at))
		}
	}
	q.closeGaps(at)
}

// takeAll takes records in order.
func (c *core) takeAll(r *request, q *queue) {
	for n := 0; q.n > 0 && q.first().most == 0 && !c.unfit(q.first()); n++ {
		if n > 0 && !q.pace.fits(q.first().size()) || !r.room(q.first().size()) {
			return
		}
		takeOne(r, q, q.pop())
	}
}
