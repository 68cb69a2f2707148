// Package kinesisletters puts dead letters into another stream of Amazon Kinesis Data Streams.
package kinesisletters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/retry"
)

// Kinesis contains the calls of a [Stream]. A *kinesis.Client implements it. [weir.Kinesis] lists
// the duties of other implementations. PutRecords is called with the client's own retries.
// [Stream.Put] and [Stream.Check] only call PutRecords and DescribeStreamSummary.
type Kinesis interface {
	weir.Kinesis
	PutRecords(context.Context, *kinesis.PutRecordsInput, ...func(*kinesis.Options)) (*kinesis.PutRecordsOutput, error)
}

// Stream is a [deadletter.Destination] in a stream. It puts one record for each dead letter, as
// JSON, with the partition key of the original record. Dead letters with the same key are put one
// after the other, so they are in order in the stream. A stream replaces no records, so a dead
// letter that is put again occurs twice, with the same ID. A stream stores no marks, so Stream is
// not a [deadletter.Box].
//
// A dead letter contains its record in base64, which is a third larger. In a stream with the
// default maximum record size of 1 MiB, a record of up to 750 KiB certainly fits. Put returns
// [ErrTooLarge] for a dead letter that is larger than the stream allows, each time that it is put.
// The shard then waits at that record. It continues when the stream allows larger records (up to 10
// MiB).
//
// The methods of Stream may be called concurrently.
type Stream struct {
	client    Kinesis
	name, arn *string // one of them is nil
	given     string
}

var (
	// ErrTooLarge is returned by [Stream.Put] if a dead letter is larger than the stream allows.
	ErrTooLarge = errors.New("kinesisletters: the dead letter is larger than the stream allows")
	// ErrSource is returned for dead letters about records of the destination stream itself. Such
	// dead letters would be read, fail, and be put again.
	ErrSource = errors.New("kinesisletters: a stream cannot be the destination of dead letters about its own records")
)

// New returns the stream with the given name or ARN. It makes no call.
func New(client Kinesis, stream string) (*Stream, error) {
	switch {
	case client == nil, client == Kinesis((*kinesis.Client)(nil)):
		return nil, errors.New("kinesisletters: the client is nil")
	case stream == "":
		return nil, errors.New("kinesisletters: no stream is named")
	}
	s := &Stream{client: client, given: stream}
	if strings.HasPrefix(stream, "arn:") {
		s.arn = &stream
	} else {
		s.name = &stream
	}
	return s, nil
}

// Check finds problems at the start, before a record depends on the stream. It returns [ErrSource]
// if the stream is one of sources, which contains names or ARNs. It returns the service's error if
// letters cannot be put. It puts nothing.
func (s *Stream) Check(ctx context.Context, sources ...string) error {
	for _, source := range sources {
		if s.is(source) {
			return fmt.Errorf("%w: %s", ErrSource, source)
		}
	}
	if _, err := s.largest(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// Kinesis first checks the caller's permissions, and then rejects a hash key of 2^128.
	_, err := s.client.PutRecords(ctx, &kinesis.PutRecordsInput{
		StreamName: s.name, StreamARN: s.arn,
		Records: []types.PutRecordsRequestEntry{{
			Data: []byte("{}"), PartitionKey: aws.String("weir"), ExplicitHashKey: aws.String("340282366920938463463374607431768211456"),
		}},
	})
	var api smithy.APIError
	if errors.As(err, &api) && (api.ErrorCode() == "InvalidArgumentException" || api.ErrorCode() == "ValidationException") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kinesisletters: trying to put: %w", err)
	}
	return nil
}

// is reports whether another stream may be this stream. Two ARNs must be equal. If at least one
// stream is given as a name, its account is unknown, so this method compares only the names.
func (s *Stream) is(other string) bool {
	if strings.HasPrefix(other, "arn:") && s.arn != nil {
		return other == s.given
	}
	return nameOf(other) == nameOf(s.given)
}

func nameOf(stream string) string { return stream[strings.LastIndexByte(stream, '/')+1:] }

const (
	callTimeout = 30 * time.Second
	// mostEntries and mostBytes limit a request. mostBytes was once the service's limit, and is
	// half of its current limit.
	mostEntries = 500
	mostBytes   = 5 << 20
	// mostRecord is the maximum record size of any stream. everyRecord is allowed by every stream.
	mostRecord  = 10 << 20
	everyRecord = 1 << 20
	mostKey     = 256 // characters
	// mostTries is the maximum number of further requests after one that leaves dead letters
	// unsent.
	mostTries = 8
	firstWait = 100 * time.Millisecond
	mostWait  = 5 * time.Second
)

// entry is a dead letter to put.
type entry struct {
	id, key string
	text    []byte
}

func (e *entry) size() int { return len(e.text) + len(e.key) }

// Put puts dead letters, and returns nil when the stream has all of them. If the service
// temporarily refuses a dead letter, Put retries it a few times. The later dead letters with the
// same key follow after it. See [deadletter.Destination].
func (s *Stream) Put(ctx context.Context, letters []deadletter.Letter) error {
	left := make([]entry, 0, len(letters))
	for i := range letters {
		l := &letters[i]
		if s.is(l.Stream) {
			return fmt.Errorf("%w: letter %s", ErrSource, l.ID)
		}
		text, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("kinesisletters: letter %s: %w", l.ID, err)
		}
		e := entry{l.ID, keyOf(l), text}
		if err := s.fits(ctx, &e); err != nil {
			return err
		}
		left = append(left, e)
	}
	for tries := 0; len(left) > 0; {
		batch, rest := next(left)
		refused, why, err := s.request(ctx, batch)
		if err != nil {
			return err
		}
		left = append(refused, rest...)
		if len(refused) == 0 {
			tries = 0
			continue
		}
		if tries++; tries > mostTries {
			return fmt.Errorf("kinesisletters: the stream %s did not accept dead letter %s and others: %s", s.given, refused[0].id, why)
		}
		if err := retry.Wait(ctx, retry.Pause(firstWait, mostWait, tries)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// keyOf returns the partition key for a dead letter. That is the key of its record, or a hash if
// that key is not valid.
func keyOf(l *deadletter.Letter) string {
	if n := utf8.RuneCountInString(l.PartitionKey); n > 0 && n <= mostKey && utf8.ValidString(l.PartitionKey) {
		return l.PartitionKey
	}
	sum := sha256.Sum256([]byte(l.Stream + "\n" + l.Shard + "\n" + l.PartitionKey))
	return hex.EncodeToString(sum[:])
}

// next splits entries into those of the next request and the rest, each in order. A request
// contains only one entry for each key, because the service may refuse the first of two entries and
// accept the second.
func next(all []entry) (batch, rest []entry) {
	keys, bytes := map[string]bool{}, 0
	for _, e := range all {
		if keys[e.key] || len(batch) == mostEntries || len(batch) > 0 && bytes+e.size() > mostBytes {
			rest = append(rest, e)
			keys[e.key] = true // later dead letters with this key must wait as well
			continue
		}
		keys[e.key], bytes = true, bytes+e.size()
		batch = append(batch, e)
	}
	return batch, rest
}

// request makes one request. It returns the entries that the service temporarily refused.
func (s *Stream) request(ctx context.Context, batch []entry) (refused []entry, why string, err error) {
	in := &kinesis.PutRecordsInput{StreamName: s.name, StreamARN: s.arn}
	for i := range batch {
		in.Records = append(in.Records, types.PutRecordsRequestEntry{Data: batch[i].text, PartitionKey: &batch[i].key})
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := s.client.PutRecords(ctx, in)
	if err != nil {
		return nil, "", fmt.Errorf("kinesisletters: putting dead letter %s: %w", batch[0].id, err)
	}
	if len(out.Records) != len(batch) {
		return nil, "", fmt.Errorf("kinesisletters: the service answered for %d dead letters when %d were put", len(out.Records), len(batch))
	}
	for i, r := range out.Records {
		if r.ErrorCode != nil {
			refused = append(refused, batch[i])
			why = fmt.Sprintf("%.100s: %.300s", aws.ToString(r.ErrorCode), aws.ToString(r.ErrorMessage))
		}
	}
	return refused, why, nil
}

// fits returns an error if a dead letter is too large. It reads the stream's limit only for a dead
// letter that some streams do not allow. It reads the limit each time, so that an increased limit
// takes effect.
func (s *Stream) fits(ctx context.Context, e *entry) error {
	if e.size() <= everyRecord {
		return nil
	}
	most := mostRecord
	if e.size() <= mostRecord {
		var err error
		if most, err = s.largest(ctx); err != nil {
			return err
		}
	}
	if e.size() <= most {
		return nil
	}
	return fmt.Errorf("%w: dead letter %s has %d bytes, and records of %s may have %d: allow larger ones (UpdateMaxRecordSize, up to %d), or use S3",
		ErrTooLarge, e.id, e.size(), s.given, most, mostRecord)
}

// largest returns the maximum record size of the stream.
func (s *Stream) largest(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := s.client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: s.name, StreamARN: s.arn})
	if err != nil {
		return 0, fmt.Errorf("kinesisletters: looking at the stream: %w", err)
	}
	if d := out.StreamDescriptionSummary; d != nil && d.MaxRecordSizeInKiB != nil {
		return int(*d.MaxRecordSizeInKiB) << 10, nil
	}
	return everyRecord, nil
}
