package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

const (
	queueInfix        = ":queue/"
	maxQueuesInWork   = 5 // queues in state CREATING or DELETING
	defaultVisibility = 30 * time.Second
	defaultReceives   = 6
	lookahead         = 64
	sweepEvery        = time.Minute
)

// queueAttributes are the settings of a queue that UpdateQueue can change.
type queueAttributes struct {
	visibility time.Duration
	most       int // MaxReceiveCount; 0 means that the queue has no dead letters
}

// queue is one queue of a stream. It reads all shards of the stream, and stores a position for each
// of them. Its ledger contains the state of the delivered records.
type queue struct {
	name, id, arn string
	serial        uint64
	stream        *stream
	created       time.Time

	status status
	until  time.Time // end of the status CREATING, UPDATING or DELETING
	kind   string    // type of the starting position
	asked  time.Time // time in the starting position; zero if the type has none
	start  time.Time // effective starting position; zero while the queue is CREATING

	attributes queueAttributes // in effect
	updated    queueAttributes // in effect at the end of UPDATING
	tags       map[string]string

	cursors map[uint32]uint64 // index of the next record, by shard number
	turn    int               // selects the shard to read next
	ahead   []place           // records before the cursors that were not delivered yet
	random  *rand.Rand

	ledger  *ledger
	swept   time.Time
	taken   int64 // acknowledged records
	minutes []queueMinute
	waiting [2][]*Waiter // by path
}

// queueARN returns the ARN of the queue with this ID.
func (e *Engine) queueARN(id string) string {
	return strings.TrimSuffix(e.arnPrefix(), ":stream/") + queueInfix + id
}

func queueID(arn string) string {
	_, id, _ := strings.Cut(arn, queueInfix)
	return id
}

// settleQueue applies a change of the queue's status that is due, and ends the holds that are over.
// It returns false if the queue has been deleted. The caller holds e.mu.
func (e *Engine) settleQueue(q *queue, now time.Time) bool {
	if q.status != active && !q.until.After(now) {
		switch q.status {
		case creating:
			e.position(q, q.until)
		case updating:
			q.ledger.settle(q.until, q.attributes.most)
			q.attributes = q.updated
		case deleting:
			e.removeQueue(q)
			return false
		}
		q.status = active
	}
	e.settle(q.stream, now)
	e.expireAll(q.stream, now)
	q.ledger.settle(now, q.attributes.most)
	if now.Sub(q.swept) >= sweepEvery {
		q.swept = now
		q.ledger.sweep(q.exists)
	}
	return true
}

// removeQueue removes a queue. The caller holds e.mu.
func (e *Engine) removeQueue(q *queue) {
	delete(e.queues, q.id)
	delete(q.stream.queues, q.name)
	delete(e.policies, q.arn)
	q.wakeAll()
}

// settleQueues applies the changes of all queues of a stream that are due. The caller holds e.mu.
func (e *Engine) settleQueues(s *stream, now time.Time) {
	for _, q := range s.queues {
		e.settleQueue(q, now)
	}
}

// withoutQueues returns an error if the stream has queues. action describes what they prevent.
func (c *call) withoutQueues(s *stream, action string) error {
	c.settleQueues(s, c.now)
	if len(s.queues) > 0 {
		return inUse("Stream %s under account %s has queues, and cannot be %s. Delete its queues first: %s.", s.name, c.cfg.Account, action, strings.Join(slices.Sorted(maps.Keys(s.queues)), ", "))
	}
	return nil
}

// position sets the cursors of a queue that becomes ACTIVE at the given time. Shards that are
// opened later are read from their beginning.
func (e *Engine) position(q *queue, at time.Time) {
	oldest := q.stream.horizon(at)
	from := at
	switch {
	case q.kind == trimHorizon:
		from = oldest
	case q.kind == atTimestamp && q.asked.After(oldest):
		from = q.asked
	case q.kind == atTimestamp:
		from = oldest
	}
	q.start = from
	for _, sh := range q.stream.shards {
		if _, known := q.cursors[sh.number]; known {
			continue // LATEST was fixed when the queue was created
		}
		q.cursors[sh.number] = sh.base + uint64(sh.after(from.UnixMilli()))
	}
}

// startLatest makes a queue with starting position LATEST begin with the records that are put from
// now on.
func (q *queue) startLatest() {
	if q.kind != latest {
		return
	}
	for _, sh := range q.stream.shards {
		q.cursors[sh.number] = sh.nextIndex
	}
}

// exists reports whether a record is in the stream.
func (q *queue) exists(p place) bool {
	sh := q.stream.byNumber[p.shard]
	return sh != nil && p.index >= sh.base
}

// record returns a record that exists.
func (q *queue) record(p place) *record {
	sh := q.stream.byNumber[p.shard]
	return &sh.records[p.index-sh.base]
}

// cursor returns the index of the next record of a shard to read.
func (q *queue) cursor(sh *shard) uint64 { return max(q.cursors[sh.number], sh.base) }

// undelivered returns the number of records that were never delivered.
func (q *queue) undelivered() int {
	n := 0
	for _, sh := range q.stream.shards {
		n += int(sh.nextIndex - q.cursor(sh))
	}
	for _, p := range q.ahead {
		if q.exists(p) {
			n++
		}
	}
	return n
}

// available returns the number of visible records on a path. It may count records that left the
// stream.
func (q *queue) available(on path) int {
	n := len(q.ledger.visible[on])
	if on == normalPath {
		n += q.undelivered()
	}
	return n
}

// peek returns the next record to deliver for the first time. drop removes it from the records to
// deliver. Without [QueueRules.Ordered] it selects one of the next lookahead records at random.
func (q *queue) peek(rules QueueRules) (p place, drop func(), ok bool) {
	if rules.Ordered {
		return q.earliest()
	}
	for len(q.ahead) < lookahead && q.advance() {
	}
	for len(q.ahead) > 0 {
		i := q.random.IntN(len(q.ahead))
		drop := func() {
			last := len(q.ahead) - 1
			q.ahead[i] = q.ahead[last]
			q.ahead = q.ahead[:last]
		}
		if q.exists(q.ahead[i]) {
			return q.ahead[i], drop, true
		}
		drop()
	}
	return place{}, nil, false
}

// advance moves the next record of the next shard to q.ahead.
func (q *queue) advance() bool {
	shards := q.stream.shards
	for range shards {
		q.turn++
		sh := shards[q.turn%len(shards)]
		if index := q.cursor(sh); index < sh.nextIndex {
			q.ahead = append(q.ahead, place{sh.number, index})
			q.cursors[sh.number] = index + 1
			return true
		}
	}
	return false
}

// earliest returns the record that arrived first.
func (q *queue) earliest() (p place, drop func(), ok bool) {
	var first int64
	for _, sh := range q.stream.shards {
		index := q.cursor(sh)
		if index >= sh.nextIndex {
			continue
		}
		if arrival := sh.records[index-sh.base].arrival; !ok || arrival < first {
			p, first, ok = place{sh.number, index}, arrival, true
		}
	}
	return p, func() { q.cursors[p.shard] = p.index + 1 }, ok
}

// received is a record of an answer.
type received struct {
	record   *record
	handle   string
	recordID string
	first    time.Time
	count    int
}

// receive delivers up to limit visible records. It may return none. The caller holds e.mu and has
// settled the queue.
func (e *Engine) receive(q *queue, now time.Time, on path, limit int, timeout time.Duration) (out []received) {
	rules, l := q.ledger.rules, q.ledger
	if on == normalPath || rules.CountDeadLetters {
		limit = min(limit, rules.MaxInFlight-l.inFlight())
	}
	var size int64
	for len(out) < limit {
		d := q.deliver(now, on, timeout, func(r *record) bool {
			return rules.MaxAnswerBytes == 0 || len(out) == 0 || size+int64(len(r.data)) <= rules.MaxAnswerBytes
		})
		if d == nil {
			break
		}
		r := q.record(d.place)
		size += int64(len(r.data))
		out = append(out, received{
			record: r, handle: e.receipt(q, d, now), recordID: e.recordID(q.stream, d.place), first: d.first, count: d.count,
		})
	}
	if on == normalPath && len(out) > 0 {
		q.minute(now).received += int64(len(out))
	}
	return out
}

// deliver delivers one visible record for which fits returns true. On the normal path it selects
// between a new record and one that was delivered before.
func (q *queue) deliver(now time.Time, on path, timeout time.Duration, fits func(*record) bool) *delivery {
	l := q.ledger
	var fresh place
	var drop func()
	found := false
	if on == normalPath {
		fresh, drop, found = q.peek(l.rules)
	}
	// Records that were delivered before come first if the order matters. Otherwise one that fails
	// each time could keep the new ones waiting.
	if !found || l.rules.Ordered || q.random.IntN(2) == 0 {
		if d := l.oldest(on, q.attributes.most, q.exists); d != nil {
			if !fits(q.record(d.place)) {
				return nil
			}
			l.again(d, now, timeout)
			return d
		}
	}
	if !found || !fits(q.record(fresh)) {
		return nil
	}
	drop()
	return l.fresh(fresh, now, timeout)
}

// recordID returns the ID of a record, which is the same in all queues of its stream. It is not
// related to the sequence number. Two servers never use the same ID.
func (e *Engine) recordID(s *stream, p place) string {
	b := slices.Clone(e.identity[:])
	b = binary.BigEndian.AppendUint64(b, s.serial)
	b = binary.BigEndian.AppendUint32(b, p.shard)
	b = binary.BigEndian.AppendUint64(b, p.index)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
