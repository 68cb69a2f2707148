package s3sink

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/sink/s3sink/internal/bucket"
)

// Options configures where a sink writes objects and how large they become. The zero value is a
// useful configuration.
type Options struct {
	// Prefix is the beginning of all keys, with at most 256 bytes. If it does not end in a slash, a
	// slash is appended. By default there is no prefix. Two applications with the same bucket,
	// prefix and stream write one common chain.
	Prefix string
	// Partition selects the folders of objects. The default is [Hourly].
	Partition Partition
	// Lines selects the form of the lines. The default is [Payloads].
	Lines Lines
	// Plain writes objects without compression. Their keys end in .ndjson instead of .ndjson.gz.
	Plain bool
	// MaxBytes is the size at which an object ends, in bytes of payloads and keys before
	// compression. A single record or aggregate may exceed it. The default is 16 MiB. It ranges
	// from 1 byte to 1 GiB.
	MaxBytes int
	// MaxAge ends an object this long after its first record was read, even if no record follows.
	// The default is 1 min. It ranges from 1 s to 24 h. Each object costs two writes.
	MaxAge time.Duration
	// MaxMemory limits the memory of the records that wait for their objects, for all shards
	// together. The default is 256 MiB. It ranges from 1 MiB to 1 TiB. At the limit, objects end
	// early. The memory may still exceed the limit by half and by one batch per shard. In addition,
	// up to eight encoded objects are in memory. If a worker with a larger MaxBytes has begun an
	// object, the whole object is kept in memory.
	MaxMemory int
}

// Partition selects the folder of an object. The folder depends on the time in UTC at which the
// object's first record arrived at the service.
type Partition uint8

const (
	Hourly        Partition = iota // dt=2026-11-24/hour=03/
	Daily                          // dt=2026-11-24/
	Unpartitioned                  // no folder
)

// Lines is the form of the lines in objects.
type Lines uint8

const (
	// Payloads writes only the payload. JSON on one line stays unchanged. In JSON on several lines,
	// the white space between its parts is removed. Any other payload becomes {"data_base64":"…"}.
	Payloads Lines = iota
	// Envelopes writes a JSON object for each record, like "weir consume -o json". The members are
	// shard, sequence, key, arrival and data, which is the payload as text. If the payload is not
	// UTF-8, data_base64 replaces data. The member position is present only if the record is in an
	// aggregate, and other records of the aggregate follow it.
	Envelopes
)

// uploads is the number of objects that a Sink sends at the same time. Each of them is in memory.
const uploads = 8

// Sink writes the records of shards into a bucket. Its methods may be called concurrently.
type Sink struct {
	bucket bucket.Bucket
	o      Options

	probing   chan struct{} // contains a token while a goroutine checks the bucket
	probed    atomic.Bool
	uploading chan struct{}
	waiting   atomic.Int64 // memory of records that are not in an object yet
	shards    atomic.Int64 // number of shards that are being written
}

// New returns a sink. It makes no call. The client's region must be that of the bucket. The error
// lists all invalid arguments.
func New(client *s3.Client, bucketName string, o Options) (*Sink, error) {
	var wrong []error
	bad := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("s3sink: "+format, args...))
	}
	if client == nil {
		bad("the client is nil")
	}
	if bucketName == "" {
		bad("no bucket is named")
	}
	var ok bool
	if o.Prefix, ok = bucket.CheckPrefix(o.Prefix); !ok {
		bad("Options.Prefix %.300q must be UTF-8 of at most 256 bytes, without a slash at its beginning or two in a row", o.Prefix)
	}
	if o.Partition > Unpartitioned {
		bad("Options.Partition %d must be Hourly, Daily or Unpartitioned", o.Partition)
	}
	if o.Lines > Envelopes {
		bad("Options.Lines %d is neither Payloads nor Envelopes", o.Lines)
	}
	within(bad, "MaxBytes", &o.MaxBytes, 16<<20, 1, 1<<30)
	within(bad, "MaxMemory", &o.MaxMemory, 256<<20, 1<<20, 1<<40)
	within(bad, "MaxAge", &o.MaxAge, time.Minute, time.Second, 24*time.Hour)
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return &Sink{
		bucket: bucket.Bucket{Client: client, Name: bucketName, Who: "s3sink"}, o: o,
		probing: make(chan struct{}, 1), uploading: make(chan struct{}, uploads),
	}, nil
}

func within[T int | time.Duration](bad func(string, ...any), name string, is *T, zero, low, high T) {
	if *is == 0 {
		*is = zero
	}
	if *is < low || *is > high {
		bad("Options.%s %v must be between %v and %v", name, *is, low, high)
	}
}

// PullHandler returns the handler for [weir.Consumer.RunPull]. Do not replace its Position. The
// sink keeps records until it has written their object, so RunPull refuses
// [weir.Options].ReuseBuffers. The sink repeats a failed write until the write succeeds, so RunPull
// also refuses [weir.FailurePolicy].Destination.
func (s *Sink) PullHandler() weir.PullHandler {
	return weir.PullHandler{Position: s.Position, Pull: s.pull, KeepsRecords: true}
}

// Position returns the position at which the objects of a shard end. It returns the zero Position
// if there are none. It makes at most three requests, no matter how long the chain is.
func (s *Sink) Position(ctx context.Context, stream, shardID string) (weir.Position, error) {
	end, err := s.chain(stream, shardID).end(ctx)
	switch {
	case err != nil || end.link == nil:
		return weir.Position{}, err
	case end.written:
		return end.link.To, nil
	case end.link.At.IsZero():
		return end.link.From, nil // the next reader has to write the first object
	}
	return end.link.At, nil
}

func (s *Sink) pull(ctx context.Context, of *weir.Puller) error {
	if err := s.Check(ctx); err != nil {
		return err
	}
	s.shards.Add(1)
	w := &writer{sink: s, chain: s.chain(of.Stream, of.Shard)}
	defer func() {
		s.waiting.Add(-int64(w.held.memory()))
		s.shards.Add(-1)
	}()
	return w.run(ctx, of)
}

// Check returns an error if the bucket cannot be written. It also returns an error if the bucket
// overwrites an object although the request forbids that. After Check has succeeded once, it makes
// no more calls to S3. The sink's handler calls Check itself. Call Check to detect a mistake before
// a stream is read.
func (s *Sink) Check(ctx context.Context) error {
	if s.probed.Load() {
		return nil
	}
	select {
	case s.probing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.probing }()
	if s.probed.Load() {
		return nil
	}
	key := s.o.Prefix + "_weir/conditional-writes"
	for range 2 { // the first write may create the object
		text := []byte("weir looks here whether this bucket refuses to write an object that exists.\n")
		_, made, err := s.bucket.Put(ctx, key, text, nil, bucket.Condition{New: true})
		if err != nil {
			return err
		}
		if !made {
			s.probed.Store(true)
			return nil
		}
	}
	return fmt.Errorf("s3sink: bucket %s overwrites an object although the request forbids it (If-None-Match): "+
		"records would be written twice; use S3, or a store that keeps this condition", s.bucket.Name)
}

// chain returns the chain of a shard.
func (s *Sink) chain(stream, shardID string) *chain {
	return &chain{
		bucket: s.bucket, stream: stream, shard: shardID,
		links:   s.o.Prefix + "_weir/" + stream + "/" + shardID + "/",
		objects: s.o.Prefix + stream + "/",
	}
}

// folder returns the folder of an object whose first record arrived at the given time. The result
// is "", or ends in a slash.
func (p Partition) folder(arrived time.Time) string {
	switch p {
	case Hourly:
		return arrived.UTC().Format("dt=2006-01-02/hour=15/")
	case Daily:
		return arrived.UTC().Format("dt=2006-01-02/")
	case Unpartitioned:
	}
	return ""
}

// later reports whether a record that arrived at t belongs to a later folder than one that arrived
// at first. Arrival times are not always in order. A record with an earlier time stays in the
// folder.
func (p Partition) later(first, t time.Time) bool {
	return t.After(first) && p.folder(first) != p.folder(t)
}

// whole reports whether a position is after the last sub-record of its sequence number.
func whole(p weir.Position) bool { return p.Kind() == shard.Sequence && p.Done() == shard.Whole }
