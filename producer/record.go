package producer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/shard"
)

// Record is what [Producer.Put] takes.
type Record struct {
	// PartitionKey decides the shard, and the order: 1 to 256 characters of UTF-8. It may be empty
	// only if the stream distributes records by itself (AUTO).
	PartitionKey string
	// ExplicitHashKey decides the shard in place of the partition key, if it is not empty: a
	// decimal number from 0 to 2^128-1 without leading zeros.
	ExplicitHashKey string
	// Data is the payload. It is not copied: it must not be changed before the record has its
	// outcome. Data and partition key together have at most 1 MiB, or what the stream allows.
	Data []byte
	// Done is called with the outcome, unless it is nil. Callbacks are made one after the other, in
	// order for each key. They must not call Flush or Close, and Put only if there is room for
	// sure: the record takes its place in the buffer until Done has returned. A panic is logged.
	Done func(Result, error)
}

// Result says where a record is stored.
type Result struct {
	// Shard is the ID of the shard that has it.
	Shard string
	// SequenceNumber is that of the stream's record, which packed records share.
	SequenceNumber string
	// SubSequenceNumber is the place of a packed record, from 0.
	SubSequenceNumber int
	// Packed says that other records are in the same record of the stream.
	Packed bool
	// Attempts is how often it was sent.
	Attempts int
	// Repeated says that it may be in the stream more than once: the answer to an earlier attempt
	// was lost or unclear, or a container went to a shard where not all of its records belong.
	Repeated bool
}

// The reasons for which a record fails, or is not accepted.
var (
	// ErrClosed means that the producer is closed, or was before the record was stored.
	ErrClosed = errors.New("producer: closed")
	// ErrFull is returned by [Producer.TryPut] when there is no room.
	ErrFull = errors.New("producer: the buffer is full")
	// ErrTooLarge means that data and key are larger than the stream allows.
	ErrTooLarge = errors.New("producer: the record is too large")
	// ErrInvalid means that a key has a wrong form.
	ErrInvalid = errors.New("producer: the record is invalid")
	// ErrExpired means that the record was not stored within [Options].MaxAge.
	ErrExpired = errors.New("producer: the record expired")
	// ErrRefused means that the service refused the record for a reason that another attempt does
	// not change, such as missing permission or a stream that does not exist.
	ErrRefused = errors.New("producer: the service refused the record")
)

// Error says why a record failed. It wraps one of this package's errors, and the last error of the
// service if there was one.
type Error struct {
	// Code is the service's last error code for the record. "" if it never answered with one.
	Code string
	// Attempts is how often the record was sent.
	Attempts int
	// MaybeStored says that the record may be in the stream all the same.
	MaybeStored bool

	reason, cause error
}

// Error says why, and whether the record may be stored.
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

// Unwrap returns the reason and the cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.reason}
	}
	return []error{e.reason, e.cause}
}

// Pending is a record on its way. Its methods may be called concurrently.
type Pending struct {
	producer *Producer

	// The record. Guarded by the producer's mutex until the outcome is there, then by nothing.
	next     *Pending // in a list
	number   uint64   // records are numbered in the order of Put
	hash     shard.HashKey
	key      string
	explicit string
	data     []byte
	done     func(Result, error)
	put      time.Duration // since the core began
	failed   *failure      // the last failed attempt
	bytes    int32         // of data and key
	attempts int32
	most     int32 // at most so many records share its request; 0 is no limit
	whole    bool  // is never packed
	repeated bool  // may be stored already

	// The outcome, which is there once finished is set. Guarded by the producer's mutex.
	finished bool
	packed   bool
	place    int32 // in its container
	shard    string
	sequence string
	err      error
	waiting  chan struct{} // made by who waits first, closed when the outcome is there
}

// failure is why an attempt failed. Records that failed together share it.
type failure struct {
	code  string
	cause error
}

// result returns the outcome of a record that was stored, and otherwise nothing.
func (p *Pending) result() Result {
	if p.err != nil {
		return Result{}
	}
	return Result{
		Shard: p.shard, SequenceNumber: p.sequence, SubSequenceNumber: int(p.place), Packed: p.packed,
		Attempts: int(p.attempts), Repeated: p.repeated,
	}
}

// Wait returns the outcome when it is there. If ctx ends before, it returns the cause of that, and
// the record is still on its way. The error is an [*Error] otherwise.
func (p *Pending) Wait(ctx context.Context) (Result, error) {
	done := p.Done()
	select {
	case <-done: // whatever ctx says
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

// Done returns a channel that is closed when the outcome is there.
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

// size is what the record counts against the limits of the service and of the buffer.
func (p *Pending) size() int { return int(p.bytes) }

const maxKey = 256 // characters of a partition key

// magic is how the payload of an aggregate begins.
var magic = []byte{0xF3, 0x89, 0x9A, 0xC2}

// prepare sets the fields of p that follow from the record. The error wraps [ErrInvalid] or
// [ErrTooLarge].
func (p *Pending) prepare(r Record) error {
	if !utf8.ValidString(r.PartitionKey) {
		return fmt.Errorf("%w: partition key %.50q is not valid UTF-8", ErrInvalid, r.PartitionKey)
	}
	if n := utf8.RuneCountInString(r.PartitionKey); n > maxKey {
		return fmt.Errorf("%w: partition key %.50q... has %d characters, at most %d are allowed", ErrInvalid, r.PartitionKey, n, maxKey)
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
	return nil
}
