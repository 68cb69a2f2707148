package engine

import (
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// Types of a starting position. AT_TIMESTAMP is also the name of a shard filter.
const (
	atSequenceNumber    = "AT_SEQUENCE_NUMBER"
	afterSequenceNumber = "AFTER_SEQUENCE_NUMBER"
	trimHorizon         = "TRIM_HORIZON"
	latest              = "LATEST"
)

// GetShardIterator returns an iterator for a position in a shard.
type GetShardIterator struct {
	streamRef
	Shard, Type, Sequence optText
	Time                  codec.Opt[time.Time]
	dryRun                optBool
}

func (r *GetShardIterator) Fields() codec.Fields {
	return r.fields(
		codec.Field{Name: "ShardId", Into: &r.Shard},
		codec.Field{Name: "ShardIteratorType", Into: &r.Type},
		codec.Field{Name: "StartingSequenceNumber", Into: &r.Sequence},
		codec.Field{Name: "Timestamp", Into: &r.Time},
		codec.Field{Name: "DryRun", Into: &r.dryRun},
	)
}

func (r *GetShardIterator) target(*Engine) Target {
	return Target{Stream: r.stream(), Shard: r.Shard.V}
}

func (r *GetShardIterator) check() error {
	var v validator
	v.requiredName(r.Shard, "shardId")
	if v.required(r.Type.Set, "shardIteratorType") {
		v.enum(r.Type, "shardIteratorType", afterSequenceNumber, latest, atTimestamp, atSequenceNumber, trimHorizon)
	}
	if r.Sequence.Set {
		v.pattern(r.Sequence.V, "startingSequenceNumber", sequencePattern)
	}
	r.validate(&v)
	return v.err()
}

// checkPosition checks that the fields required by a position type are present.
func checkPosition(kind string, sequence optText, at codec.Opt[time.Time]) error {
	const either = "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and StartingSequenceNumber or " +
		"(2) TRIM_HORIZON or LATEST and no StartingSequenceNumber. Request specified %s and %s StartingSequenceNumber."
	numbered := kind == atSequenceNumber || kind == afterSequenceNumber
	switch {
	case numbered && !sequence.Set:
		return invalid(either, kind, "no")
	case !numbered && sequence.Set:
		return invalid(either, kind, "also a")
	case kind == atTimestamp && !at.Set:
		return invalid("Must specify timestampInMillis parameter for iterator of type AT_TIMESTAMP. Current request has no timestamp parameter.")
	case kind != atTimestamp && at.Set:
		return invalid("Request is invalid. Timestamp goes with AT_TIMESTAMP, not with %s.", kind)
	}
	return nil
}

func (r *GetShardIterator) do(c *call) error {
	if err := r.check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.arn.Set { // the ARN may contradict the name, or belong to another account
		if _, err := c.lookup(&r.streamRef); err != nil {
			return err
		}
	}
	s, sh, err := c.anyShard(r.stream(), r.Shard.V)
	if err != nil {
		return err
	}
	if err := checkPosition(r.Type.V, r.Sequence, r.Time); err != nil {
		return err
	}
	index, err := c.position(s, sh, r.Type.V, r.Sequence.V, r.Time.V)
	if err != nil {
		return err
	}
	if r.dryRun.V {
		return dryRun()
	}
	if b := &sh.limits.iterators; !c.unlimited && sh.isOpen() {
		if !b.has(c.now, iteratorCallsPerSecond, 1) {
			return throttled("%s", c.rateExceeded(s, sh))
		}
		b.use(c.now, iteratorCallsPerSecond, 1)
	}
	c.out.Map()
	c.out.Key("ShardIterator").Text(c.iterator(s, sh, index))
	c.out.End()
	return nil
}

// position returns the index of the first record to read for a starting position.
func (c *call) position(s *stream, sh *shard, kind, text string, at time.Time) (uint64, error) {
	switch kind {
	case trimHorizon:
		return sh.base, nil
	case latest:
		return sh.nextIndex, nil
	case atTimestamp:
		if at.After(c.now.Add(time.Millisecond)) {
			return 0, invalid("The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. timestampInMillis: %d, currentTimestampInMillis: %d", at.UnixMilli(), c.now.UnixMilli())
		}
		return sh.base + uint64(sh.after(at.UnixMilli())), nil
	}
	n, ok := parseSequence(text)
	if ok = ok && n.plausible(); !ok {
		switch old, known := parseOldSequence(text); {
		case !known:
			return 0, invalid("StartingSequenceNumber %s used in %s on shard %s in stream %s under account %s is invalid.", text, c.action, sh.id, s.name, c.cfg.Account)
		case old.shard == sh.number:
			return 0, foreign(text, c.action, sh.id, s.name, c.cfg.Account)
		default:
			n = old // the number of another shard; sh.owns returns the error
		}
	}
	if err := sh.owns(n, text, s.name, c.cfg.Account, c.action); err != nil {
		return 0, err
	}
	index := n.index
	if index < closingIndex && (kind == afterSequenceNumber || sh.isPast(n)) {
		index++
	}
	// The shard's own first number never counts as trimmed.
	if index < sh.base && text != sh.first && c.cfg.RefuseTrimmed {
		return 0, invalid("StartingSequenceNumber %s used in %s on shard %s in stream %s under account %s is before the trim horizon.", text, c.action, sh.id, s.name, c.cfg.Account)
	}
	return max(index, sh.base), nil
}

func (c *call) iterator(s *stream, sh *shard, index uint64) string {
	return c.sealer.seal(ticket{kind: iteratorTicket, issued: c.now, stream: s.serial, shard: sh.number, index: index, text: s.name})
}

// GetRecords reads a page of a shard.
type GetRecords struct {
	streamRef
	Iterator optText
	Limit    optInt
	dryRun   optBool

	opened opened
}

// opened is an iterator after decryption. It is kept because decryption is expensive.
type opened struct {
	ticket
	done, ok bool
}

func (r *GetRecords) open(e *Engine) (ticket, bool) {
	if o := &r.opened; !o.done {
		o.ticket, o.ok = e.sealer.open(iteratorTicket, r.Iterator.V)
		o.done = true
	}
	return r.opened.ticket, r.opened.ok
}

func (r *GetRecords) Fields() codec.Fields {
	return codec.Fields{
		{Name: "ShardIterator", Into: &r.Iterator},
		{Name: "Limit", Into: &r.Limit},
		{Name: "StreamARN", Into: &r.arn},
		{Name: "DryRun", Into: &r.dryRun},
	}
}

func (r *GetRecords) target(e *Engine) Target {
	t, ok := r.open(e)
	if !ok {
		return Target{Stream: r.stream()}
	}
	return Target{Stream: t.text, Shard: shardID(t.shard)}
}

func (r *GetRecords) do(c *call) error {
	var v validator
	if v.required(r.Iterator.Set, "shardIterator") {
		v.length(r.Iterator.V, "shardIterator", 1, 512)
	}
	v.intRange(r.Limit, "limit", 1, maxPageRecords)
	v.streamARN(r.arn, "streamARN")
	if err := v.err(); err != nil {
		return err
	}
	t, ok := r.open(c.Engine)
	if !ok {
		return invalid("Invalid ShardIterator.")
	}
	if c.now.Sub(t.issued) > iteratorLife {
		return fail("ExpiredIteratorException", "Iterator expired. The iterator was created at time %s while right now it is %s which is further in the future than the tolerated delay of %d milliseconds.",
			stamp(t.issued), stamp(c.now), iteratorLife.Milliseconds())
	}
	p, s, sh, err := r.read(c, t)
	if err != nil {
		return err
	}
	// The lock is not needed any more: the data of a page never changes.
	writePage(c, p, s, sh)
	return nil
}

// read takes a page and counts it against the read limits of the shard. The page contains all data
// of the shard that may change later, because writePage runs without the lock.
func (r *GetRecords) read(c *call, t ticket) (page, *stream, *shard, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.bySerial[t.stream]
	if s == nil || !c.settle(s, c.now) {
		return page{}, nil, nil, c.noShard(t.shard, t.text)
	}
	if r.arn.Set && r.arn.V != s.arn {
		return page{}, nil, nil, invalid("StreamARN %s is not that of the ShardIterator, %s.", r.arn.V, s.arn)
	}
	sh := c.shard(s, t.shard, c.now)
	if sh == nil {
		return page{}, nil, nil, c.noShard(t.shard, s.name)
	}
	if r.dryRun.V {
		return page{}, nil, nil, dryRun()
	}
	l := &sh.limits
	if !c.unlimited {
		if !l.readCalls.has(c.now, readCallsPerSecond, 1) || !l.readBytes.hasAny(c.now, readBytesPerSecond) {
			return page{}, nil, nil, throttled("%s", c.rateExceeded(s, sh))
		}
		l.readCalls.use(c.now, readCallsPerSecond, 1)
	}
	limit := maxPageRecords
	if r.Limit.Set {
		limit = int(r.Limit.V)
	}
	if c.inject.EmptyPage {
		limit = 0
	}
	p := sh.read(c.now, t.index, limit, maxPageBytes)
	if !c.unlimited {
		l.readBytes.useRead(c.now, readBytesPerSecond, float64(p.bytes))
	}
	if p.end && c.cfg.EndOnEmptyPage && len(p.records) > 0 {
		p.end = false
	}
	return p, s, sh, nil
}

// recordOverhead is an upper bound for the encoded size of a record without its data and key. With
// it, a page is encoded without growing the buffer.
const recordOverhead = 230

func writePage(c *call, p page, s *stream, sh *shard) {
	out := c.out
	growFor(out, p.bytes, len(p.records))
	out.Map()
	out.Key("MillisBehindLatest").Int(p.behind)
	if p.end {
		// The child shards were set when the shard was closed. They do not change.
		out.Key("ChildShards")
		writeChildren(out, sh.children)
	} else {
		out.Key("NextShardIterator").Text(c.iterator(s, sh, p.next))
	}
	out.Key("Records")
	writeRecords(out, p.records)
	out.End()
}

// growFor makes room for a page of n records. bytes is the size of their data and keys.
func growFor(out *codec.Encoder, bytes int64, n int) {
	if out.Format() == codec.JSON {
		bytes += bytes/3 + 1
	}
	out.Grow(1024 + int(bytes) + recordOverhead*n)
}

func writeRecords(out *codec.Encoder, records []record) {
	out.Array(len(records))
	for i := range records {
		out.Elem()
		writeRecord(out, &records[i])
	}
	out.End()
}

func writeChildren(out *codec.Encoder, children []child) {
	out.Array(len(children))
	for _, ch := range children {
		out.Elem()
		writeChild(out, ch)
	}
	out.End()
}

func writeRecord(out *codec.Encoder, r *record) {
	out.Map()
	out.Key("SequenceNumber").Text(r.sequence)
	out.Key("ApproximateArrivalTimestamp").Millis(r.arrival)
	out.Key("Data").Blob(r.data)
	if r.key.Set {
		out.Key("PartitionKey").Text(r.key.V)
	}
	writeEncryption(out, r.kms)
	out.End()
}

func writeChild(out *codec.Encoder, ch child) {
	out.Map()
	out.Key("ShardId").Text(ch.id)
	out.Key("ParentShards").Array(len(ch.parents))
	for _, id := range ch.parents {
		out.Elem().Text(id)
	}
	out.End()
	writeHashes(out, ch.hashes)
	out.End()
}
