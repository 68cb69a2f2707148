package put

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/producer"
)

// Entry is one record on its way to a stream.
type Entry struct {
	Data []byte
	Key  string
	Line int64 // its place in the input, from 1, rising
}

// Size is the number of bytes that an entry counts against the limits of the service.
func (e Entry) Size() int { return len(e.Data) + len(e.Key) }

// Options say how a [Sender] sends. Client and Stream are required.
type Options struct {
	Client *kinesis.Client
	Stream string // name or ARN
	Loose  bool   // records of a key may be reordered if the service refuses some

	// Patience is how long the service may store nothing before the Sender gives up. Defaults to a
	// minute.
	Patience time.Duration
	// Taken is called with the shard of each stored record, in the order of the input. May be nil.
	Taken func(shard string)
}

// Summary is the result of a Sender.
type Summary struct {
	Records  int64
	Bytes    int64            // of data and keys
	Retries  int64            // records that were sent again
	Refusals map[string]int64 // the same, by the code of the refusal; "" if there was no answer
	Shards   map[string]int64 // records by shard
	Through  int64            // every line up to this one is in the stream
	Beyond   int64            // stored records of later lines
}

// Limits of what a Sender holds. What it holds when a stop is requested is still sent, so it should
// not take long.
const (
	mostRecords = 10_000
	mostBytes   = 16 << 20
	// mostLines limits the records after the oldest one without an outcome.
	mostLines = 100_000
)

// Sender puts entries into a stream, with a producer that stops at the first failure. It counts
// the outcomes in the order of the input.
type Sender struct {
	options  Options
	producer *producer.Producer
	failed   chan struct{} // closed after the first failure
	over     chan struct{} // closed when Close has all outcomes
	ended    sync.WaitGroup

	mu      sync.Mutex // held while an entry is put
	closed  bool
	pending chan sent

	// The fields below belong to collect until it has ended.
	sum   Summary
	err   error           // of a record
	coded *producer.Error // the first with a code
	// gaveUp belongs to watch until it has ended.
	gaveUp time.Duration
}

// sent is an entry that the producer has accepted.
type sent struct {
	pending *producer.Pending
	line    int64
	size    int
}

// NewSender makes a Sender. Close ends its goroutines.
func NewSender(o Options) (*Sender, error) {
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	p, err := producer.New(o.Client, producer.Options{
		Stream: o.Stream, Unordered: o.Loose, NoAggregation: true, StopOnFailure: true, FirstShare: 1,
		MaxRecords: mostRecords, MaxBytes: mostBytes, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	s := &Sender{
		options: o, producer: p, pending: make(chan sent, mostLines),
		failed: make(chan struct{}), over: make(chan struct{}),
		sum: Summary{Shards: map[string]int64{}, Refusals: map[string]int64{}},
	}
	s.ended.Go(s.collect)
	s.ended.Go(s.watch)
	return s, nil
}

// Put accepts an entry. It waits while too many are on their way, until ctx ends or a record fails.
func (s *Sender) Put(ctx context.Context, e Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return producer.ErrClosed
	}
	p, err := s.producer.Put(ctx, producer.Record{PartitionKey: e.Key, Data: e.Data})
	if err != nil {
		return err
	}
	s.pending <- sent{p, e.Line, e.Size()}
	return nil
}

// Failed returns a channel that is closed when a record has failed.
func (s *Sender) Failed() <-chan struct{} { return s.failed }

// Close waits until each entry is stored, ctx ends or a record fails, and returns the summary in
// each case.
func (s *Sender) Close(ctx context.Context) (Summary, error) {
	closing := s.producer.Close(ctx)
	s.mu.Lock()
	s.closed = true
	close(s.pending)
	s.mu.Unlock()
	close(s.over)
	s.ended.Wait()
	counts := s.producer.Counts()
	s.sum.Retries = int64(counts.Retried)
	for code, n := range counts.Codes {
		s.sum.Refusals[code] = int64(n)
	}
	switch {
	case s.gaveUp > 0:
		return s.sum, s.stuck()
	case errors.Is(s.err, producer.ErrClosed) && ctx.Err() != nil:
		return s.sum, ctx.Err()
	case s.err != nil:
		return s.sum, reason(s.err)
	}
	return s.sum, closing
}

// collect waits for the outcomes in the order of the input.
func (s *Sender) collect() {
	for at := range s.pending {
		r, err := at.pending.Wait(context.Background())
		if err != nil {
			s.fail(at, err)
			continue
		}
		s.sum.Records++
		s.sum.Bytes += int64(at.size)
		s.sum.Shards[r.Shard]++
		if s.err == nil {
			s.sum.Through = at.line
		} else {
			s.sum.Beyond++
		}
		if s.options.Taken != nil {
			s.options.Taken(r.Shard)
		}
	}
}

// fail stores the failure of a record. It keeps the one that explains most.
func (s *Sender) fail(at sent, err error) {
	if s.err == nil {
		s.sum.Through = at.line - 1
		close(s.failed)
	}
	if explains(err) > explains(s.err) {
		s.err = err
	}
	var failed *producer.Error
	if s.coded == nil && errors.As(err, &failed) && failed.Code != "" {
		s.coded = failed
	}
}

// explains returns how much an error says about why a Sender failed. Records that were not sent
// because of another failure say least.
func explains(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, producer.ErrStopped):
		return 1
	case cause(err) == nil:
		return 2
	}
	return 3
}

// watch gives up if the service refuses everything for too long.
func (s *Sender) watch() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var before producer.Counts
	since := time.Now()
	for {
		select {
		case <-ticker.C:
		case <-s.over:
			return
		}
		c := s.producer.Counts()
		switch waited := time.Since(since); {
		case c.Stored != before.Stored, c.BufferedRecords == 0:
			before, since = c, time.Now()
		case waited >= s.options.Patience && c.Retried > before.Retried:
			s.gaveUp = waited
			now, cancel := context.WithCancel(context.Background())
			cancel()
			_ = s.producer.Close(now) // the records have the error
			return
		}
	}
}

// stuck returns the error of a Sender that gave up.
func (s *Sender) stuck() error {
	if s.coded == nil {
		return reason(s.err)
	}
	return fmt.Errorf("the stream took no record for %s (%s): %s",
		figures.Duration(s.gaveUp.Round(time.Second)), refusal(s.coded), advice(s.coded.Code))
}

// reason returns the error of a record without the producer's words.
func reason(err error) error {
	var failed *producer.Error
	if !errors.As(err, &failed) {
		return err
	}
	var api smithy.APIError
	if failed.Code != "" && !errors.As(err, &api) {
		return fmt.Errorf("the stream refused a record (%s)", refusal(failed))
	}
	if why := cause(err); why != nil {
		return why
	}
	return errors.New(strings.TrimPrefix(err.Error(), "producer: "))
}

// cause returns the last error of the service for a record, or nil.
func cause(err error) error {
	var failed *producer.Error
	if errors.As(err, &failed) {
		if both := failed.Unwrap(); len(both) > 1 {
			return both[1]
		}
	}
	return nil
}

// refusal returns the code of a refusal, and the service's message.
func refusal(failed *producer.Error) string {
	var api smithy.APIError
	if errors.As(failed, &api) {
		return api.ErrorCode() + ": " + api.ErrorMessage()
	}
	if why := cause(failed); why != nil && strings.HasPrefix(why.Error(), failed.Code) {
		return why.Error()
	}
	return failed.Code
}

// advice returns the next step for the user after a refusal with a code.
func advice(code string) string {
	switch {
	case strings.HasPrefix(code, "KMS"):
		return "the key that encrypts the stream is the limit; try again later"
	case strings.Contains(code, "Throughput"), strings.Contains(code, "Throttl"),
		code == "LimitExceededException":
		return "give it more shards or try again later"
	}
	return "the service failed, and more shards do not help; try again later"
}
