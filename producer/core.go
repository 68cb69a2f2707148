package producer

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/shard"
)

// core holds the state of a producer's records, from Put to their outcome. It starts no goroutine,
// reads no clock and makes no call: time comes in as an argument. It must not be used concurrently.
type core struct {
	options
	facts  facts
	shards *shardMap
	ranges ranges
	queues []*queue // one for each shard of the map, in the same order
	filled turns    // those with records
	// retired has queues whose shard left the map while requests still had records of them.
	retired  []*queue
	stranded []stranded

	began     time.Time
	number    uint64 // of the last record
	hurry     uint64 // records up to this number do not linger
	draining  bool   // no record lingers
	stopped   bool   // a record failed, and options.stopOnFailure is set
	startBy   time.Time
	roundTrip time.Duration
	inFlight  int // records in requests
	open      int // records without an outcome

	lookUp lookUp
	counts Counts
	ended  []*Pending // records with an outcome, for the producer

	keys  keySet               // of takeDistinct
	boxes []*aggregate.Builder // for the next containers
}

// options are the parts of Options that affect records.
type options struct {
	unordered, plain, stopOnFailure, numbered bool
	linger, maxAge                            time.Duration
	firstShare                                float64
}

// facts are the known properties of the stream.
type facts struct {
	known     bool // the service answered
	auto      bool // it distributes records by itself
	maxRecord int  // limit for a record with its key, in bytes
	shards    int  // open shards; 0 if unknown
}

// lookUp describes the information about the stream to request.
type lookUp struct {
	shards, facts bool // the map, or the facts, are wanted
	all           bool // also list closed shards
	missed        int  // consecutive listings without a shard that answered
	// contradictions counts answers from an open shard that does not own the record's key.
	contradictions int
}

// queue has the waiting records of a shard, in the order of their numbers.
type queue struct {
	list
	shard    string // "" while the map is unknown
	keys     shard.HashRange
	inMap    bool
	inFilled bool

	// series is the series of the records that this queue sends first, and numbered is how many
	// records of it have a number. series is 0 before the first one.
	series, numbered uint64

	requests int // in flight that have records of it
	stranded int // containers whose place is not known yet
	failures int // failed requests in a row
	notUntil time.Time
	pace     pace
	paced    time.Time           // the pace allows no request before; may be in the past
	seen     map[string]struct{} // shards that answered, while the map is unknown
}

// turns lists queues in the order in which they take turns.
type turns struct {
	queues []*queue
	head   int // places before it are empty
}

func (t *turns) len() int { return len(t.queues) - t.head }

func (t *turns) push(q *queue) {
	if len(t.queues) == cap(t.queues) && t.head > len(t.queues)/2 {
		n := copy(t.queues, t.queues[t.head:])
		clear(t.queues[n:])
		t.queues, t.head = t.queues[:n], 0
	}
	t.queues = append(t.queues, q)
}

func (t *turns) pop() *queue {
	q := t.queues[t.head]
	t.queues[t.head] = nil
	t.head++
	return q
}

// unpop returns the queue of the last pop to its place. Nothing was pushed since.
func (t *turns) unpop(q *queue) {
	t.head--
	t.queues[t.head] = q
}

// busy reports whether a record of the queue is in flight.
func (q *queue) busy() bool { return q.requests+q.stranded > 0 }

// stranded is a container that was stored in an unexpected shard whose range is not known.
type stranded struct {
	q     *queue
	unit  sending
	entry *entry
}

func newCore(o options, now time.Time) *core {
	c := &core{
		options: o, began: now, ranges: ranges{}, facts: facts{maxRecord: usualRecord}, startBy: now.Add(startPatience),
		lookUp: lookUp{shards: true, facts: true},
	}
	c.adopt(unmapped)
	return c
}

// startPatience limits how long records wait for the first listing. Without a listing they cannot
// be packed.
const startPatience = 3 * time.Second

// ordered reports whether the order of keys is kept.
func (c *core) ordered() bool { return !c.unordered && !c.facts.auto }

// packing reports whether records are packed.
func (c *core) packing() bool { return !c.plain && c.shards.known() && !c.facts.auto }

// put adds a record.
func (c *core) put(p *Pending, sinceBegan time.Duration) {
	c.number++
	p.number, p.put = c.number, sinceBegan
	c.open++
	c.counts.Records++
	c.counts.Bytes += uint64(p.size())
	q := c.queueOf(p)
	q.push(p)
	c.fill(q)
}

// queueOf returns the queue of a record.
func (c *core) queueOf(p *Pending) *queue {
	if len(c.queues) == 1 {
		return c.queues[0]
	}
	return c.queues[c.shards.find(p.hash)]
}

// fill notes that a queue has records.
func (c *core) fill(q *queue) {
	if !q.inFilled && q.n > 0 {
		q.inFilled = true
		c.filled.push(q)
	}
}

// requeue puts the records of back into their queues again, in the order of their numbers. back
// must be sorted by number.
func (c *core) requeue(back []*Pending) {
	if len(back) == 0 {
		return
	}
	parts := map[*queue][]*Pending{}
	var order []*queue
	for _, p := range back {
		q := c.queueOf(p)
		if parts[q] == nil {
			order = append(order, q)
		}
		parts[q] = append(parts[q], p)
	}
	for _, q := range order {
		q.merge(parts[q])
		c.fill(q)
	}
}

// end gives a record its outcome.
func (c *core) end(p *Pending, err error) {
	p.err, p.finished = err, true
	p.data, p.key, p.explicit, p.tags, p.failed = nil, "", "", nil, nil
	c.ended = append(c.ended, p)
	c.open--
	if err != nil {
		c.counts.Failed++
		c.stopped = c.stopped || c.stopOnFailure
	} else {
		c.counts.Stored++
	}
}

// fail ends a record with an error.
func (c *core) fail(p *Pending, reason error) {
	e := &Error{Attempts: int(p.attempts), MaybeStored: p.repeated, reason: reason}
	if p.failed != nil {
		e.Code, e.cause = p.failed.code, p.failed.cause
	}
	c.end(p, e)
}

// failWaiting ends all records that are not in flight.
func (c *core) failWaiting(reason error) {
	for _, q := range c.queues {
		for q.n > 0 {
			c.fail(q.pop(), reason)
		}
	}
	for _, s := range c.stranded {
		for _, p := range s.unit.records {
			p.repeated = true
			c.fail(p, reason)
		}
		c.inFlight -= len(s.unit.records)
		s.q.stranded--
	}
	c.stranded = nil
}

// adopt replaces the current shard map with m. A shard in both maps keeps its queue. The records of
// all other queues move to the queues of the new map.
func (c *core) adopt(m *shardMap) {
	before := make(map[string]*queue, len(c.queues))
	for _, q := range c.queues {
		q.inMap = false
		before[q.shard] = q
	}
	queues := make([]*queue, len(m.shards))
	for i, s := range m.shards {
		q := before[s.ID]
		if q == nil || q.keys != s.Range {
			q = &queue{shard: s.ID, keys: s.Range, pace: pace{first: c.firstShare}}
		}
		q.inMap = true
		queues[i] = q
	}
	var moved []*Pending
	for _, q := range c.queues {
		if q.inMap {
			continue
		}
		for q.n > 0 {
			moved = append(moved, q.pop())
		}
		if q.busy() {
			c.retired = append(c.retired, q)
		}
	}
	c.shards, c.queues = m, queues
	slices.SortFunc(moved, func(a, b *Pending) int { return cmp.Compare(a.number, b.number) })
	c.requeue(moved)
	c.scalePace()
}

// scalePace sets how many shards the pace of a single queue covers. There is a single queue if the
// map is unknown, or if the stream distributes records by itself.
func (c *core) scalePace() {
	if q := c.queues[0]; c.facts.auto || !c.shards.known() {
		q.pace.shards = float64(max(c.facts.shards, len(q.seen), 1))
	}
}

// learnShards processes a listing. listed is nil if the service refuses to list the shards.
func (c *core) learnShards(listed []shard.Shard, all bool) error {
	m := unmapped
	if listed != nil {
		var err error
		if m, err = newShardMap(listed); err != nil {
			return err
		}
		c.ranges.learn(listed)
		c.counts.Listings++
	}
	c.lookUp.shards, c.lookUp.all = false, false
	if !c.facts.auto {
		c.adopt(m)
	}
	c.settleStranded()
	if len(c.stranded) == 0 {
		c.lookUp.missed = 0
		return nil
	}
	// A new shard that was split immediately is closed, so a listing of open shards omits it. The
	// next listing therefore includes closed shards.
	c.lookUp.shards, c.lookUp.all = true, true
	if c.lookUp.missed++; c.lookUp.missed > mostMissed && all {
		c.lookUp.missed = 0
		c.lookUp.shards, c.lookUp.all = false, false
		c.adopt(unmapped)
		c.settleStranded()
	}
	return nil
}

// mostMissed is the number of consecutive listings that may omit a shard from which an answer came.
// After that the producer treats the map as unknown.
const mostMissed = 5

// learnFacts processes the service's description of the stream. f is the zero value if the service
// refuses to describe the stream.
func (c *core) learnFacts(f facts) (becameAuto bool) {
	c.lookUp.facts = false
	if !f.known {
		f = c.facts
		f.auto = f.auto || c.lookUp.contradictions >= mostContradictions
	} else {
		c.lookUp.contradictions = 0
	}
	wasAuto := c.facts.auto
	c.facts = f
	switch {
	case f.auto:
		c.adopt(unmapped)
	case wasAuto:
		c.lookUp.shards = true
	}
	c.scalePace()
	c.settleStranded()
	return f.auto && !wasAuto
}

// mostContradictions is for a service that refuses to describe the stream. If open shards that do
// not own a record's key have given this many answers, the producer concludes that the service
// distributes records by itself.
const mostContradictions = 3

// started reports whether records may be sent: the first lookup has ended, or it took too long.
func (c *core) started(now time.Time) bool {
	if c.startBy.IsZero() {
		return true
	}
	if (!c.lookUp.shards && !c.lookUp.facts) || !now.Before(c.startBy) {
		c.startBy = time.Time{}
		return true
	}
	return false
}
