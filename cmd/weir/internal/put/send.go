package put

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/cmd/weir/internal/figures"
)

// The limits of the queue: large enough that a request finds many keys even in a partly sorted
// input.
const (
	windowEntries = 10_000
	windowBytes   = 16 << 20
)

// Sender puts entries into a stream, one request at a time.
type Sender struct {
	Client *kinesis.Client
	Stream string // name or ARN
	Loose  bool   // see Queue

	// Patience is how long the service may refuse every record before Send gives up. Defaults to a
	// minute.
	Patience time.Duration
	// Taken is called for each record that the service took, from the goroutine of Send. May be
	// nil.
	Taken func(e Entry, shard, sequence string)
}

// Summary is the result of a Send.
type Summary struct {
	Records  int64
	Bytes    int64 // of data and keys
	Requests int64
	Retries  int64 // records that were sent again
	// those of them that were beyond what a shard or the stream takes in a second
	Throttled int64
	Refusals  map[string]int64 // records that were sent again, by the code of the refusal
	Shards    map[string]int64 // records by shard
	Through   int64            // every line up to this one is in the stream
	Beyond    int64            // accepted records of later lines
}

// Send sends what comes from entries until that is closed and everything was taken, or ctx ends, or
// the service fails for longer than retrying helps. The summary is right in every case.
func (s *Sender) Send(ctx context.Context, entries <-chan Entry) (Summary, error) {
	q := Queue{Loose: s.Loose}
	sum := Summary{Shards: map[string]int64{}, Refusals: map[string]int64{}}
	patience := s.Patience
	if patience == 0 {
		patience = time.Minute
	}
	progress := time.Now()
	failures := 0
	finish := func(err error) (Summary, error) {
		sum.Through = q.Through()
		sum.Beyond = q.Beyond()
		return sum, err
	}
	for {
		open, err := fill(ctx, &q, entries)
		if err != nil {
			return finish(err)
		}
		if !open {
			entries = nil
		}
		if q.Len() == 0 {
			if entries == nil {
				return finish(nil)
			}
			continue
		}
		picked := q.Next()
		took, refusal, err := s.request(ctx, &q, picked, &sum)
		if err != nil {
			return finish(err)
		}
		if took > 0 {
			progress = time.Now()
		}
		if took == len(picked) {
			failures = 0
			continue
		}
		sum.Retries += int64(len(picked) - took)
		if waited := time.Since(progress); waited > patience {
			return finish(fmt.Errorf("the stream took no record for %s (%s): %s", figures.Duration(waited.Round(time.Second)), refusal, advice(refusal)))
		}
		if took > 0 {
			failures = min(failures, 2) // it moves: keep the pauses short
		}
		failures++
		if err := sleep(ctx, pause(failures, rand.Float64())); err != nil {
			return finish(err)
		}
	}
}

// fill takes over what has arrived, and waits for the first entry when nothing else is left to do.
// It reports whether more can come.
func fill(ctx context.Context, q *Queue, entries <-chan Entry) (open bool, err error) {
	if entries == nil {
		return false, ctx.Err()
	}
	if q.Len() == 0 {
		select {
		case e, more := <-entries:
			if !more {
				return false, nil
			}
			q.Add(e)
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
	for q.Len() < windowEntries && q.Bytes() < windowBytes {
		select {
		case e, more := <-entries:
			if !more {
				return false, nil
			}
			q.Add(e)
		default:
			return true, ctx.Err()
		}
	}
	return true, ctx.Err()
}

// request sends the picked entries once. A refusal says why the service refused some.
func (s *Sender) request(ctx context.Context, q *Queue, picked []int, sum *Summary) (took int, refusal string, err error) {
	in := &kinesis.PutRecordsInput{Records: make([]types.PutRecordsRequestEntry, len(picked))}
	if strings.HasPrefix(s.Stream, "arn:") {
		in.StreamARN = aws.String(s.Stream)
	} else {
		in.StreamName = aws.String(s.Stream)
	}
	for i, at := range picked {
		e := q.Entry(at)
		in.Records[i] = types.PutRecordsRequestEntry{Data: e.Data, PartitionKey: aws.String(e.Key)}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := s.Client.PutRecords(ctx, in)
	sum.Requests++
	var api smithy.APIError
	if errors.As(err, &api) && isThrottle(api.ErrorCode()) {
		sum.Throttled += int64(len(picked))
		sum.Refusals[api.ErrorCode()] += int64(len(picked))
		return 0, api.ErrorCode() + ": " + api.ErrorMessage(), nil
	}
	if err != nil {
		return 0, "", err
	}
	if len(out.Records) != len(picked) {
		return 0, "", fmt.Errorf("the service answered for %d records when %d were put", len(out.Records), len(picked))
	}
	taken := make([]bool, len(picked))
	for i, r := range out.Records {
		if r.ErrorCode != nil {
			refusal = aws.ToString(r.ErrorCode)
			sum.Refusals[refusal]++
			if isThrottle(refusal) {
				sum.Throttled++
			}
			if m := aws.ToString(r.ErrorMessage); m != "" {
				refusal += ": " + m
			}
			continue
		}
		taken[i] = true
		took++
		e, shard := q.Entry(picked[i]), aws.ToString(r.ShardId)
		sum.Records++
		sum.Bytes += int64(e.Size())
		sum.Shards[shard]++
		if s.Taken != nil {
			s.Taken(e, shard, aws.ToString(r.SequenceNumber))
		}
	}
	q.Done(picked, taken)
	return took, refusal, nil
}

func isThrottle(code string) bool {
	return strings.Contains(code, "Throughput") || strings.Contains(code, "Throttl") || code == "LimitExceededException"
}

// advice returns the next step for the user after a refusal. A refusal begins with its code.
func advice(refusal string) string {
	code, _, _ := strings.Cut(refusal, ":")
	switch {
	case strings.HasPrefix(code, "KMS"):
		return "the key that encrypts the stream is the limit; try again later"
	case isThrottle(code):
		return "give it more shards or try again later"
	}
	return "the service failed, and more shards do not help; try again later"
}

// pause is how long to wait before the nth attempt in a row that leaves something behind, jitter in
// [0, 1).
func pause(n int, jitter float64) time.Duration {
	d := 50 * time.Millisecond << min(n-1, 5)
	return d/2 + time.Duration(jitter*float64(d)/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
