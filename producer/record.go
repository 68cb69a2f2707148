package producer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/shard"
)

// Record is a record for [Producer.Put].
type Record struct {
	// PartitionKey decides the shard, and the order: 1 to 256 characters of UTF-8. It may be empty
	// only if the stream distributes records by itself (AUTO).
	PartitionKey string
	// ExplicitHashKey decides the shard in place of the partition key, if it is not empty: a
	// decimal number from 0 to 2^128-1 without leading zeros.
	ExplicitHashKey string
	// Data is the payload. Put does not copy it: do not change it before the record has its
	// outcome. Data and partition key together have at most 1 MiB, or the stream's limit.
	Data []byte
	// Tags are stored next to the data, invisible to consumers that do not read them. An example is
	// the trace context of package otelweir. Only packed records can have tags, so a record with
	// tags is packed even if it is alone. Tags are dropped if the record cannot be packed, and the
	// result then has Untagged set: with [Options].NoAggregation, on streams that distribute
	// records by themselves, without permission to list the shards, if data, key and tags exceed
	// 1 MiB, or if Data already is an aggregate.
	Tags aggregate.Tags
	// Done is called with the outcome, unless it is nil. Callbacks run one after the other. The
	// callbacks of the stored records of a key run in order. If a record fails while an older
	// record of the key is in flight, the callback of the failed record runs first. Callbacks must
	// not call Flush or Close. They may call Put only if there is certainly room, because the
	// record keeps its place in the buffer until Done has returned. A panic is logged.
	Done func(Result, error)
}

// Result is the place of a stored record.
type Result struct {
	// Shard is the ID of the shard with the record.
	Shard string
	// SequenceNumber is the number of the stream's record. Packed records share it.
	SequenceNumber string
	// SubSequenceNumber is the index of a packed record, from 0.
	SubSequenceNumber int
	// Packed is true if other records share the stream's record.
	Packed bool
	// Untagged is true if the record had tags that were not stored; see [Record].Tags.
	Untagged bool
	// Unnumbered is true if the record has no number although [Options].Numbered is set. A repeat
	// of it is handled again.
	Unnumbered bool
	// Attempts counts the sendings of the record.
	Attempts int
	// Repeated is true if the record may be in the stream more than once: the answer to an earlier
	// attempt was lost or unclear, or a container arrived in a shard that does not own all of its
	// records.
	Repeated bool
}

// The reasons why a record fails or is not accepted.
var (
	// ErrClosed means that the producer was closed before the record was stored.
	ErrClosed = errors.New("producer: closed")
	// ErrFull is returned by [Producer.TryPut] when there is no room.
	ErrFull = errors.New("producer: the buffer is full")
	// ErrTooLarge means that data and key are larger than the stream allows.
	ErrTooLarge = errors.New("producer: the record is too large")
	// ErrInvalid means that a key has a wrong form.
	ErrInvalid = errors.New("producer: the record is invalid")
	// ErrExpired means that the record was not stored within [Options].MaxAge.
	ErrExpired = errors.New("producer: the record expired")
	// ErrRefused means that the service refused the record for a permanent reason, such as a
	// missing permission or a stream that does not exist.
	ErrRefused = errors.New("producer: the service refused the record")
	// ErrStopped means that the record was not stored because another record failed before; see
	// [Options].StopOnFailure.
	ErrStopped = errors.New("producer: stopped after a record failed")
)

// Error is the error of a failed record. It wraps one of this package's errors, and Cause if it is
// not nil.
type Error struct {
	// Code is the service's last error code for the record. It is "" if the service never answered
	// with a code.
	Code string
	// Attempts counts the sendings of the record.
	Attempts int
	// MaybeStored is true if the record may be in the stream in spite of the error.
	MaybeStored bool

	reason, cause error
}

// Error returns the reason, and whether the record may be stored.
func (e *Error) Error() string {
	text := e.reason.Error()
	switch {
	case e.cause != nil:
		text += ": " + e.cause.Error()
	case e.Code != "":
		text += ": " + e.Code
	}
	if e.MaybeStored {
		text += " (it may be in the stream)"
	}
	return text
}

// Cause returns the last error of the client, or of the service, for the record. It is nil if no
// attempt failed.
func (e *Error) Cause() error { return e.cause }

// Unwrap returns the reason and the cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.reason}
	}
	return []error{e.reason, e.cause}
}

// Pending is an accepted record whose outcome may be unknown. Its methods may be called
// concurrently.
type Pending struct {
	// The producer's mutex guards these fields until the record has its outcome. Fields that are
	// used together are adjacent, because many records do not fit into the processor's cache.
	producer *Producer
	number   uint64 // records are numbered in the order of Put
	key      string
	data     []byte
	explicit string
	tags     *aggregate.Tags // nil if there are none
	put      time.Duration   // since the core began
	failed   *failure        // the last failed attempt
	hash     shard.HashKey
	mark     aggregate.Number // of Options.Numbered; zero before the record is packed
	done     func(Result, error)
	bytes    int32 // of data, key and tags
	attempts int32
	most     int32 // limit for the records in its request; 0 is no limit
	whole    bool  // never packed
	repeated bool  // may be stored already

	// These fields are the outcome. They are valid once finished is set. The producer's mutex
	// guards them.
	finished bool
	packed   bool
	untagged bool          // tags were dropped
	plain    bool          // it has no number, although it should
	place    int32         // in its container
	waiting  chan struct{} // made by the first waiter, closed when the outcome is there
	entry    *entry        // the answer of the service; nil for a failed record
	err      error
}

// failure contains the reason why an attempt failed. Records that failed together share one
// failure.
type failure struct {
	code  string
	cause error
}

// result returns the place of a stored record, and the zero Result for a failed record.
func (p *Pending) result() Result {
	if p.entry == nil {
		return Result{}
	}
	return Result{
		Shard: p.entry.Shard, SequenceNumber: p.entry.SequenceNumber, SubSequenceNumber: int(p.place), Packed: p.packed,
		Untagged: p.untagged, Unnumbered: p.plain, Attempts: int(p.attempts), Repeated: p.repeated,
	}
}

// Wait waits for the outcome and returns it. If ctx ends first, Wait returns the cause, and the
// record stays pending. The error of a failed record is an [*Error].
func (p *Pending) Wait(ctx context.Context) (Result, error) {
	done := p.Done()
	select {
	case <-done: // also when ctx has ended
		return p.result(), p.err
	default:
	}
	select {
	case <-done:
		return p.result(), p.err
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
}

// Done returns a channel that is closed when the record has its outcome.
func (p *Pending) Done() <-chan struct{} {
	p.producer.mu.Lock()
	defer p.producer.mu.Unlock()
	if p.waiting == nil {
		p.waiting = make(chan struct{})
		if p.finished {
			close(p.waiting)
		}
	}
	return p.waiting
}

// size returns the bytes that count against the limits of the service and of the buffer.
func (p *Pending) size() int { return int(p.bytes) }

// wrapped reports whether the record gets a container although it is alone.
func (c *core) wrapped(p *Pending) bool {
	return p.tags != nil || c.numbered && !p.whole && p.size()+mostOverhead <= usualRecord
}

// need returns the maximum size of the stream's record if the record is sent alone.
func (c *core) need(p *Pending) int {
	if !c.wrapped(p) {
		return p.size()
	}
	return p.size() + mostOverhead
}

// tagsSize returns the number of bytes that the tags need in a container.
func (p *Pending) tagsSize() int {
	if p.tags == nil {
		return 0
	}
	return p.tags.Size()
}

const maxKey = 256 // characters of a partition key

// mostOverhead is how much larger a container with one record can be than the record's key, data
// and tags. It includes a number. The key counts twice, because it is in the container, too.
const mostOverhead = 1200

// magic is the prefix of an aggregate's payload.
var magic = []byte{0xF3, 0x89, 0x9A, 0xC2}

// prepare sets the fields of p that depend on the record. The error wraps [ErrInvalid] or
// [ErrTooLarge].
func (p *Pending) prepare(r Record) error {
	if !utf8.ValidString(r.PartitionKey) {
		return fmt.Errorf("%w: partition key %.50q is not valid UTF-8", ErrInvalid, r.PartitionKey)
	}
	if len(r.PartitionKey) > maxKey { // in bytes, so there may be fewer characters
		if n := utf8.RuneCountInString(r.PartitionKey); n > maxKey {
			return fmt.Errorf("%w: partition key %.50q... has %d characters, at most %d are allowed", ErrInvalid, r.PartitionKey, n, maxKey)
		}
	}
	p.key, p.explicit, p.data, p.done = r.PartitionKey, r.ExplicitHashKey, r.Data, r.Done
	n := len(r.Data) + len(r.PartitionKey)
	if n > largestRecord {
		return fmt.Errorf("%w: it has %d bytes with its key, at most %d are allowed", ErrTooLarge, n, largestRecord)
	}
	p.bytes = int32(n)
	if r.ExplicitHashKey == "" {
		p.hash = shard.HashOf(r.PartitionKey)
	} else {
		hash, err := shard.ParseHashKey(r.ExplicitHashKey)
		if err != nil {
			return fmt.Errorf("%w: explicit %w", ErrInvalid, err)
		}
		p.hash = hash
	}
	p.whole = bytes.HasPrefix(r.Data, magic)
	switch tags := r.Tags; {
	case tags.IsZero():
	case p.whole, n+tags.Size()+mostOverhead > usualRecord:
		p.untagged = true
	default:
		p.tags = &tags
		p.bytes += int32(tags.Size())
	}
	return nil
}
