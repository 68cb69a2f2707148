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

// Options configures where objects are written and how large they become. The zero Options are
// useful.
type Options struct {
	// Prefix begins all keys. A slash is appended if it has none. Defaults to no prefix, at most
	// 256 bytes. Two applications with the same bucket, prefix and stream write one common chain.
	Prefix string
	// Partition determines the folders of objects. Defaults to [Hourly].
	Partition Partition
	// Lines determines the form of a line. Defaults to [Payloads].
	Lines Lines
	// Plain leaves objects uncompressed: they end in .ndjson instead of .ndjson.gz.
	Plain bool
	// MaxBytes ends an object with this many bytes of payloads and keys, before compression. One
	// record or aggregate may exceed it. Defaults to 16 MiB, 1 byte to 1 GiB.
	MaxBytes int
	// MaxAge ends an object when its first record was read this long ago, even if no record
	// follows. Defaults to 1 min, 1 s to 24 h. Each object costs two writes.
	MaxAge time.Duration
	// MaxMemory is how many bytes of records of all shards may wait for their objects before
	// objects are ended early. Defaults to 256 MiB, 1 MiB to 1 TiB. It may be exceeded by a half
	// and by one batch per shard. In addition, at most eight encoded objects are in memory. An
	// object that was begun by a worker with a larger MaxBytes is held as a whole.
	MaxMemory int
}

// Partition determines the folders of objects, by the time in UTC at which the first record of an
// object arrived at the service.
type Partition uint8

const (
	Hourly        Partition = iota // dt=2026-11-24/hour=03/
	Daily                          // dt=2026-11-24/
	Unpartitioned                  // no folder
)

// Lines is the form of the lines in objects.
type Lines uint8

const (
	// Payloads writes the payload alone. JSON on one line stays unchanged. In JSON on several lines
	// the white space between its parts is removed. Anything else becomes {"data_base64":"…"}.
	Payloads Lines = iota
	// Envelopes writes JSON objects with the members shard, sequence, position (only for a record
	// that others follow in an aggregate), key, arrival, and data, which is the payload as a text,
	// or data_base64 if it is not UTF-8. It is the output of "weir consume -o json".
	Envelopes
)

// uploads is how many objects a Sink sends at a time. Each of them is in memory.
const uploads = 8

// Sink writes shards into a bucket. Its methods may be called concurrently.
type Sink struct {
	bucket bucket.Bucket
	o      Options

	probing   chan struct{} // holds a token while a goroutine checks the bucket's conditions
	probed    atomic.Bool
	uploading chan struct{}
	waiting   atomic.Int64 // bytes of records that are not in an object yet
	shards    atomic.Int64 // number of shards that are being written
}

// New makes a sink. It makes no call. The client's region must be the bucket's. An error lists all
// invalid arguments.
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

// Handlers returns the handlers for [weir.Consumer.RunShards]. Their Position must not be replaced.
// The sink keeps records until it writes their object, so RunShards refuses
// [weir.Options].ReuseBuffers. It repeats a failed write until the write succeeds, so RunShards
// also refuses [weir.Options].GiveUp.
func (s *Sink) Handlers() weir.ShardHandlers {
	return weir.ShardHandlers{Position: s.Position, Pull: s.pull, KeepsRecords: true}
}

// Position returns the end of a shard's objects, or the zero Position if there are none. It takes
// three requests for a chain of any length.
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

func (s *Sink) pull(ctx context.Context, of *weir.Shard) error {
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

// Check returns an error if the bucket cannot be written, or overwrites an object although a
// request forbids it. Once it has succeeded it makes no more calls. Handlers call it themselves.
// Call it to detect a mistake before a stream is read.
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
	for range 2 { // the first may create the object
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

// folder returns the folder of an object whose first record arrived at a time, "" or with a slash
// at its end.
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
// at first. Arrival times do not increase strictly: a slightly earlier record stays.
func (p Partition) later(first, t time.Time) bool {
	return t.After(first) && p.folder(first) != p.folder(t)
}

// whole reports whether the position is after the last sub-record of its sequence number.
func whole(p weir.Position) bool { return p.Kind() == shard.Sequence && p.Done() == shard.Whole }
