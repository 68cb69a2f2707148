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

// Entry is one record to put.
type Entry struct {
	Data []byte
	Key  string
	Line int64 // its place in the input, from 1, rising
	// Given is the size of the line in bytes, before it was compressed.
	Given int
}

// Size returns the size of the entry in bytes, as the service counts it.
func (e Entry) Size() int { return len(e.Data) + len(e.Key) }

// Options configures a [Sender]. Client and Stream are required.
type Options struct {
	Client *kinesis.Client
	Stream string // name or ARN
	Loose  bool   // records of a key may be reordered if the service refuses some
	// Aggregate packs records in the format of the KPL.
	Aggregate bool
	// Numbered is that of [producer.Options].
	Numbered bool

	// Patience is how long the Sender continues while the service stores no record. The default is
	// a minute.
	Patience time.Duration
	// Taken is called with the shard of each stored record, in the order of the input. It may be
	// nil.
	Taken func(shard string)
}

// Summary is the result of a Sender.
type Summary struct {
	Records  int64
	Bytes    int64             // of data and keys
	Given    int64             // of the lines, before they were compressed
	Retries  uint64            // records that were sent again
	Refusals map[string]uint64 // by the code of the refusal; "" if there was no answer
	// Misplaced is the number of records that were sent again because a shard was split or merged.
	Misplaced uint64
	// StreamRecords is the number of records in the stream. It is lower than Records if records
	// were packed.
	StreamRecords uint64
	Shards        map[string]int64 // records by shard
	Through       int64            // every line up to this one is in the stream
	Beyond        int64            // stored records of later lines
}

// Limits for the records that a Sender holds. A Sender still sends these records after a request to
// stop, and that must not take long.
const (
	mostRecords = 10_000
	mostBytes   = 16 << 20
	// mostLines limits the number of records that wait behind a record without an outcome.
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
	pending chan sent

	// Only collect uses the fields below until collect has ended.
	sum Summary
	err *producer.Error // of a record
	// Only watch uses gaveUp until watch has ended.
	gaveUp time.Duration
}

// sent is an entry that the producer has accepted.
type sent struct {
	pending *producer.Pending
	line    int64
	size    int
	given   int
}

// NewSender makes a Sender. Close ends its goroutines.
func NewSender(o Options) (*Sender, error) {
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	p, err := producer.New(o.Client, producer.Options{
		Stream: o.Stream, Unordered: o.Loose, NoAggregation: !o.Aggregate, Numbered: o.Numbered, StopOnFailure: true,
		FirstShare: 1, // most users run one weir put at a time
		MaxRecords: mostRecords, MaxBytes: mostBytes, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	s := &Sender{
		options: o, producer: p, pending: make(chan sent, mostLines),
		failed: make(chan struct{}), over: make(chan struct{}),
		sum: Summary{Shards: map[string]int64{}},
	}
	s.ended.Go(s.collect)
	s.ended.Go(s.watch)
	return s, nil
}

// Put accepts an entry. If too many entries have no outcome yet, it waits until there is room, ctx
// ends or a record fails.
func (s *Sender) Put(ctx context.Context, e Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.producer.Put(ctx, producer.Record{PartitionKey: e.Key, Data: e.Data})
	if err != nil {
		return err
	}
	s.pending <- sent{p, e.Line, e.Size(), e.Given}
	return nil
}

// Failed returns a channel that is closed when a record has failed.
func (s *Sender) Failed() <-chan struct{} { return s.failed }

// Close waits until each entry is stored, ctx ends or a record fails. It returns the summary in
// each of these cases.
func (s *Sender) Close(ctx context.Context) (Summary, error) {
	closing := s.producer.Close(ctx)
	s.mu.Lock()
	close(s.pending) // from now on the producer accepts nothing
	s.mu.Unlock()
	close(s.over)
	s.ended.Wait()
	counts := s.producer.Counts()
	s.sum.Retries, s.sum.Refusals = counts.Retried, counts.Codes
	s.sum.Misplaced, s.sum.StreamRecords = counts.Misplaced, counts.StoredEntries
	switch {
	case s.err == nil:
		return s.sum, closing
	case errors.Is(s.err, producer.ErrClosed) && s.gaveUp == 0 && ctx.Err() != nil:
		return s.sum, ctx.Err()
	}
	return s.sum, s.reason()
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
		s.sum.Given += int64(at.given)
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

// fail records the failure of a record. It keeps the error that explains the failure best.
func (s *Sender) fail(at sent, err error) {
	var failed *producer.Error
	if !errors.As(err, &failed) {
		return // all records fail with an *Error
	}
	if s.err == nil {
		s.sum.Through = at.line - 1
		close(s.failed)
	}
	if s.err == nil || explains(failed) > explains(s.err) {
		s.err = failed
	}
}

// explains rates how well an error explains why a Sender failed. An error of a record that was not
// sent because of another failure gets the lowest rating.
func explains(failed *producer.Error) int {
	switch {
	case errors.Is(failed, producer.ErrStopped):
		return 0
	case failed.Code != "":
		return 3
	case failed.Cause() != nil:
		return 2
	}
	return 1
}

// watch ends the sending if the service refuses all records for too long.
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

// reason returns why the Sender failed, without the texts of the producer.
func (s *Sender) reason() error {
	failed, why := s.err, s.err.Cause()
	var api smithy.APIError
	refusal := failed.Code
	if errors.As(why, &api) {
		refusal = api.ErrorCode() + ": " + api.ErrorMessage()
	} else if why != nil && strings.HasPrefix(why.Error(), failed.Code+": ") {
		refusal = why.Error()
	}
	switch {
	case failed.Code != "" && s.gaveUp > 0:
		return fmt.Errorf("the stream took no record for %s (%s): %s",
			figures.Duration(s.gaveUp.Round(time.Second)), refusal, advice(failed.Code))
	case failed.Code != "" && api == nil:
		return fmt.Errorf("the stream refused a record (%s)", refusal)
	case why != nil:
		return why
	}
	return errors.New(strings.TrimPrefix(failed.Error(), "producer: "))
}

// advice returns advice for the user about an error code of the service.
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
