package engine

import (
	"strconv"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// receipt returns the receipt handle of a delivery.
func (e *Engine) receipt(q *queue, d *delivery, now time.Time) string {
	return e.sealer.seal(ticket{
		kind: receiptKind(d.path), issued: now, stream: q.serial, shard: d.shard, index: d.index, text: strconv.FormatUint(d.number, 36),
	})
}

func receiptKind(on path) ticketKind {
	if on == deadPath {
		return deadReceiptTicket
	}
	return receiptTicket
}

// verb is what is done with a delivered record.
type verb int

const (
	acknowledge verb = iota
	extend
	restore
)

// SettleQueueRecords carries out the operations that take receipt handles: they acknowledge
// records, change their visibility, or restore dead letters.
type SettleQueueRecords struct {
	queueRef
	on      path
	verb    verb
	entries []receiptEntry
	set     bool
}

type receiptEntry struct {
	handle  optText
	timeout optInt
}

func newSettle(on path, verb verb) func() Request {
	return func() Request { return &SettleQueueRecords{on: on, verb: verb} }
}

func (r *SettleQueueRecords) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "Entries", Into: func(d codec.Decoder) error {
		r.set, r.entries = true, r.entries[:0]
		if err := codec.Expect(d, codec.TypeList); err != nil {
			return err
		}
		return d.Array(func() error {
			if len(r.entries) > 16*maxReceiptEntries {
				return d.Skip() // the request is refused anyway
			}
			var entry receiptEntry
			err := codec.Fields{
				{Name: "ReceiptHandle", Into: &entry.handle},
				{Name: "VisibilityTimeoutSeconds", Into: &entry.timeout},
			}.Decode(d)
			r.entries = append(r.entries, entry)
			return err
		})
	}})
}

func (r *SettleQueueRecords) target(e *Engine) Target {
	t := r.queueRef.target(e)
	t.Records = len(r.entries)
	return t
}

func (r *SettleQueueRecords) check() error {
	var v validator
	if v.required(r.set, "entries") {
		v.lengthOf(len(r.entries), r.shown, "entries", 1, maxReceiptEntries)
	}
	for i := range r.entries {
		entry, member := &r.entries[i], "entries."+strconv.Itoa(i+1)+".member."
		if v.required(entry.handle.Set, member+"receiptHandle") {
			v.length(entry.handle.V, member+"receiptHandle", 1, maxReceiptHandle)
		}
		if r.verb == extend && v.required(entry.timeout.Set, member+"visibilityTimeoutSeconds") {
			v.intRange(entry.timeout, member+"visibilityTimeoutSeconds", 0, maxVisibility)
		}
	}
	r.validate(&v)
	return v.err()
}

// shown returns the list of entries as an error mentions it.
func (r *SettleQueueRecords) shown() string {
	return "[" + strconv.Itoa(len(r.entries)) + " entries]"
}

func (r *SettleQueueRecords) do(c *call) error {
	if err := r.check(); err != nil {
		return err
	}
	results, err := r.apply(c)
	if err != nil {
		return err
	}
	failed := 0
	for _, err := range results {
		if err != nil {
			failed++
		}
	}
	out := c.out
	out.Map()
	out.Key("Successful").Array(len(results) - failed)
	for i, err := range results {
		if err == nil {
			out.Elem().Map()
			out.Key("ReceiptHandle").Text(r.entries[i].handle.V)
			out.End()
		}
	}
	out.End()
	out.Key("Failed").Array(failed)
	for i, err := range results {
		if err != nil {
			out.Elem().Map()
			out.Key("ReceiptHandle").Text(r.entries[i].handle.V)
			out.Key("ErrorCode").Text(err.Code)
			out.Key("ErrorMessage").Text(err.Message)
			out.End()
		}
	}
	out.End()
	out.End()
	return nil
}

// apply carries out all entries in their order, and returns the error of each.
func (r *SettleQueueRecords) apply(c *call) ([]*Error, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, err := c.serving(r.arn.V)
	if err != nil {
		return nil, err
	}
	results := make([]*Error, len(r.entries))
	for i := range r.entries {
		if i < len(c.inject.EntryFaults) && c.inject.EntryFaults[i] != "" {
			results[i] = &Error{Code: c.inject.EntryFaults[i], Message: "A test asked for this error."}
			continue
		}
		if results[i] = r.one(c, q, &r.entries[i]); results[i] == nil {
			q.wake() // the record may be visible now, or room for another one in flight
		}
	}
	return results, nil
}

// one carries out one entry.
func (r *SettleQueueRecords) one(c *call, q *queue, entry *receiptEntry) *Error {
	t, ok := c.sealer.open(receiptKind(r.on), entry.handle.V)
	number, err := strconv.ParseUint(t.text, 36, 64)
	if !ok || err != nil || t.stream != q.serial {
		return entryError("InvalidArgumentException", "The receipt handle is not valid for this operation and this queue.")
	}
	p := place{t.shard, t.index}
	if !q.exists(p) {
		if d := q.ledger.deliveries[p]; d != nil {
			q.ledger.forget(d)
		}
		return entryError("ResourceNotFoundException", "The record is not found: its retention period has ended.")
	}
	d, reason := q.ledger.find(p, number, r.on, c.now)
	if d == nil && q.ledger.deliveries[p] == nil && r.verb == acknowledge && c.cfg.Queues.AcceptRepeated {
		return nil
	}
	if d == nil {
		return entryError("ResourceNotFoundException", "The receipt handle is not valid any more: "+reason+".")
	}
	switch r.verb {
	case acknowledge:
		if r.on == normalPath {
			q.minute(c.now).acknowledged++
		}
		if q.taken++; !q.forgets() {
			q.ledger.forget(d)
		}
	case extend:
		timeout := time.Duration(entry.timeout.V) * time.Second
		if most := c.cfg.Queues.MaxHold; most > 0 && c.now.Add(timeout).After(d.last.Add(most)) {
			return entryError("InvalidArgumentException", "The total visibility timeout of a record cannot exceed "+most.String()+" from the time it was received.")
		}
		q.ledger.extend(d, c.now, timeout, q.attributes.most)
	case restore:
		q.ledger.restore(d, c.now)
	}
	return nil
}

// forgets reports whether the current acknowledgement has no effect. See
// [QueueRules.ForgetAcknowledgements].
func (q *queue) forgets() bool {
	n := int64(q.ledger.rules.ForgetAcknowledgements)
	return n > 0 && q.taken%n == 0
}

func entryError(code, message string) *Error { return &Error{Code: code, Message: message} }
