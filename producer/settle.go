package producer

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

var errNoKey = fmt.Errorf("%w: it has no partition key", ErrInvalid)

// tally counts the results of a queue's sendings in one request.
type tally struct {
	stored, throttled int
	failed            bool
	worst             outcome // outcome of the sendings to repeat
	code              string
}

// answered processes the answer to a request. It returns the results of the records.
func (c *core) answered(r *request, a answer, now time.Time) (done settled) {
	a = a.checked(len(r.sendings))
	before := c.counts
	c.inFlight -= r.records
	for _, p := range r.taken { // a short loop waits for memory only once for several records
		p.attempts++
	}
	if a.err == nil {
		c.measure(a.took)
	}
	for _, p := range r.parts {
		p.q.requests--
		var t tally
		var back []*Pending
		for i := p.first; i < p.last; i++ {
			s := r.sendings[i]
			if a.err != nil {
				c.settleCall(p.q, r, s, a.err, &t, &back)
			} else {
				c.settleEntry(p.q, s, &a.entries[i], &t, &back)
			}
			c.reuse(s)
		}
		c.pause(p.q, r, t, now)
		if t.code != "" {
			done.code = t.code
		}
		c.counts.Retried += uint64(len(back))
		c.requeue(back)
	}
	c.release()
	done.err = a.err
	done.stored, done.failed = int(c.counts.Stored-before.Stored), int(c.counts.Failed-before.Failed)
	done.again = r.records - done.stored - done.failed
	return done
}

// settled has the results of a request's records.
type settled struct {
	stored, failed, again int
	code                  string // of the last one that was not stored
	err                   error  // of the call
}

// reuse keeps a container's builder for another container.
func (c *core) reuse(s sending) {
	if s.box != nil && len(c.boxes) < 256 {
		s.box.Reset()
		c.boxes = append(c.boxes, s.box)
	}
}

// measure adds the duration of a call to the average round trip.
func (c *core) measure(took time.Duration) {
	if c.roundTrip == 0 {
		c.roundTrip = took
	}
	c.roundTrip += (took - c.roundTrip) / 8
}

// release removes retired queues without records in flight.
func (c *core) release() {
	kept := c.retired[:0]
	for _, q := range c.retired {
		if q.busy() {
			kept = append(kept, q)
		}
	}
	clear(c.retired[len(kept):])
	c.retired = kept
}

// pause makes a queue wait after a failure to store its records.
func (c *core) pause(q *queue, r *request, t tally, now time.Time) {
	if t.throttled > 0 {
		q.pace.throttled(r.sent, now)
	}
	switch {
	case !t.failed:
		q.failures = 0
		return
	case t.stored > 0:
		q.failures = 1 // it moves: the pauses stay short
	default:
		q.failures++
	}
	wait := pauseAfter(t.worst, q.failures)
	if c.maxAge > 0 { // so that no record expires during a pause alone
		wait = min(wait, c.maxAge/2)
	}
	q.notUntil = now.Add(wait)
}

// settleCall handles a sending of a failed call.
func (c *core) settleCall(q *queue, r *request, s sending, err error, t *tally, back *[]*Pending) {
	o := classifyCall(err)
	code := codeOf(err)
	switch {
	case o == unsigned && q.failures >= mostUnsigned:
		o = refused
	case o == invalid && r.records == 1:
		o = refused
	case o == invalid:
		c.divide(r, s)
	}
	c.settleFailure(s, o, code, err, t, back)
}

// divide limits how many records the next request with one of these records may have. The first
// limit is the number of records in the container, so that the container is sent alone. Each
// further limit is half of the previous one.
func (c *core) divide(r *request, s sending) {
	most := len(s.records)
	if len(r.sendings) == 1 {
		most = (most + 1) / 2
	}
	for _, p := range s.records {
		p.most = int32(most)
	}
}

// settleEntry handles a sending that has an entry in the answer.
func (c *core) settleEntry(q *queue, s sending, e *entry, t *tally, back *[]*Pending) {
	o := classifyEntry(*e)
	if o != stored {
		if o == invalid || o == unsigned {
			o = refused
		}
		var cause error
		if e.Code == "" {
			cause = errNoAnswer
		} else if e.Message != "" {
			cause = fmt.Errorf("%s: %s", e.Code, e.Message)
		}
		c.settleFailure(s, o, e.Code, cause, t, back)
		return
	}
	t.stored++
	c.counts.StoredEntries++
	c.counts.PayloadUnits += uint64(max(1, (s.size()+unit-1)/unit))
	if e.Shard == q.shard {
		c.confirm(s, e, back)
		return
	}
	c.foreign(q, s, e, back)
}

// settleFailure sends the records of a sending again, or fails them.
func (c *core) settleFailure(s sending, o outcome, code string, cause error, t *tally, back *[]*Pending) {
	c.counts.count(o, code, len(s.records))
	t.code = code
	if o == throttled {
		t.throttled++
	}
	if o != refused {
		t.failed = true
		t.worst = max(t.worst, o)
	}
	failed := &failure{code, cause}
	for _, p := range s.records {
		p.noteFailure(failed)
		if o == refused {
			c.fail(p, ErrRefused)
			continue
		}
		p.repeated = p.repeated || o == unknown
		*back = append(*back, p)
	}
}

// noteFailure stores why the last attempt failed, for the error of the record. It keeps the last
// code that the service answered with. A call that Close canceled gives no reason.
func (p *Pending) noteFailure(f *failure) {
	switch {
	case errors.Is(f.cause, ErrClosed):
	case p.failed != nil && f.code == "":
		p.failed = &failure{p.failed.code, f.cause}
	default:
		p.failed = f
	}
}

// foreign handles a sending that was stored in a shard other than the expected one.
func (c *core) foreign(q *queue, s sending, e *entry, back *[]*Pending) {
	if q.shard == "" {
		if q.seen == nil {
			q.seen = map[string]struct{}{}
		}
		q.seen[e.Shard] = struct{}{}
		c.scalePace()
	}
	_, known := c.ranges[e.Shard]
	switch {
	case c.facts.auto, q.shard == "":
	case !known:
		c.lookUp.shards = true
		c.lookUp.all = c.lookUp.all || c.lookUp.missed > 0
	case q.inMap && c.shards.has(e.Shard):
		c.lookUp.contradictions++
		c.lookUp.facts = true
	}
	if len(s.records) == 1 || known || c.facts.auto { // a single record is where its own key belongs
		c.confirm(s, e, back)
		return
	}
	q.stranded++
	c.inFlight += len(s.records)
	c.stranded = append(c.stranded, stranded{q, sending{records: slices.Clone(s.records)}, e})
}

// confirm ends the records of a sending that a shard has stored. If one of several packed records
// does not belong in that shard, confirm sends all of them again: the KCL drops the whole
// container, and newer records of that key are in another shard.
func (c *core) confirm(s sending, e *entry, back *[]*Pending) {
	packed := len(s.records) > 1
	if packed && c.misplaced(s, e) {
		for _, p := range s.records {
			p.repeated = true
		}
		c.counts.Misplaced += uint64(len(s.records))
		*back = append(*back, s.records...)
		return
	}
	for i, p := range s.records {
		p.entry, p.place, p.packed = e, int32(i), packed
		p.untagged = p.untagged || p.tags != nil && !packed && s.box == nil
		p.plain = c.numbered && !packed && s.box == nil
		c.end(p, nil)
	}
}

// misplaced reports whether a record of a container may not belong in the shard that stored it.
func (c *core) misplaced(s sending, e *entry) bool {
	keys, known := c.ranges[e.Shard]
	return !known || slices.ContainsFunc(s.records, func(p *Pending) bool { return !keys.Contains(p.hash) })
}

// settleStranded handles containers whose shard is now known. If the map is unknown, it sends all
// their records again, unpacked.
func (c *core) settleStranded() {
	waiting := c.stranded
	c.stranded = nil
	for _, s := range waiting {
		if _, known := c.ranges[s.entry.Shard]; !known && c.shards.known() {
			c.stranded = append(c.stranded, s)
			continue
		}
		var back []*Pending
		c.inFlight -= len(s.unit.records)
		c.confirm(s.unit, s.entry, &back)
		s.q.stranded--
		c.counts.Retried += uint64(len(back))
		c.requeue(back)
	}
	c.release()
}
