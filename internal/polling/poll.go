package polling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/shard"
)

// Poll reads one shard with GetRecords. One goroutine at a time may use it.
type Poll struct {
	*source.Setup
	Shard string
	// From is the position where reading begins. It must not be Latest, which has no fixed place:
	// convert it to a time first.
	From     shard.Position
	Listener source.Listener // receives events about reading; may be nil
	Limit    int32           // records per page, 1 to 10,000

	failures uint8 // consecutive failed reads
	begun    bool  // an iterator has been requested
	made     bool  // the iterator was requested since the last page
	tempo    tempo
	iterator string
	page     *whole    // nil until a whole page is read
	doubt    *doubt    // about the position where reading began; nil if there is none
	began    mono.Time // start of the last read
	due      mono.Time // earliest time of the next read
}

// readShare returns the configured ReadShare, or 1 if it is not set.
func (p *Poll) readShare() float64 {
	if p.ReadShare == 0 {
		return 1
	}
	return p.ReadShare
}

// spacing returns the minimum time from the beginning of a read to the next read. bytes is the size
// of the answer.
func (p *Poll) spacing(bytes int) time.Duration { return spacing(bytes, p.readShare()) }

// whole contains the state for reading whole pages: a buffer that is reused, and the parameters of
// the next read.
type whole struct {
	codec.Page
	reading
	mean  int32 // memory of a record in bytes, 0 if unknown
	most  int   // maximum memory of an answer in bytes, 0 for any
	retry wire.Retry
}

// Next waits until a read is due and returns the next page, which may be empty. It retries failed
// reads until ctx ends. It returns the cause of ctx, or an error that wraps [streams.ErrNoShard] or
// [streams.ErrNoStream].
func (p *Poll) Next(ctx context.Context) (source.Page, error) { return p.next(ctx, false) }

// Once is like Next, but returns an empty page after a read that lacked memory. The caller must
// then wait for the memory that Needs returns.
func (p *Poll) Once(ctx context.Context) (source.Page, error) { return p.next(ctx, true) }

// Needs returns the number of bytes that the next read needs to return one record. It returns 0 if
// the last read did not lack memory. After a shortage, the next read requests one record.
func (p *Poll) Needs() int { return int(p.whole().needs) }

func (p *Poll) next(ctx context.Context, once bool) (source.Page, error) {
	for {
		if err := retry.Wait(ctx, mono.Until(p.due)); err != nil {
			return source.Page{}, err
		}
		page, err := p.read(ctx)
		if err == nil {
			p.failures = 0
			return page, nil
		}
		if ctx.Err() != nil {
			return source.Page{}, context.Cause(ctx)
		}
		lacked := shortage(err) != nil
		wait, err := p.judge(ctx, err)
		if err != nil {
			return source.Page{}, err
		}
		p.due = later(p.due, mono.Now().Add(wait))
		if once && lacked {
			return source.Page{Behind: -1}, nil
		}
	}
}

// Last reads once more. It does not wait for the idle interval and does not retry. A reader calls
// Last before it hands the shard off, so that the next reader has to catch up with fewer records.
func (p *Poll) Last(ctx context.Context) (source.Page, error) {
	if err := retry.Wait(ctx, mono.Until(p.began.Add(p.spacing(0)))); err != nil {
		return source.Page{}, err
	}
	return p.read(ctx)
}

// Close does nothing, because a Poll holds nothing between two reads.
func (p *Poll) Close() {}

// judge returns how long to wait after a failed read, or an error that ends reading.
func (p *Poll) judge(ctx context.Context, failed error) (time.Duration, error) {
	backoff := retry.Backoff{Low: 50 * time.Millisecond, High: 10 * time.Second, Failures: int(p.failures)}
	defer func() { p.failures = uint8(min(backoff.Failures, math.MaxUint8)) }()
	throttled := false
	var wait time.Duration
	switch c := streams.Code(failed); {
	case c == "ExpiredIteratorException":
		p.iterator = "" // made again from the position, which has not moved
		wait = backoff.Next()
	case streams.Throttled(failed):
		throttled = true
		p.tempo = p.tempo.throttled()
		wait = time.Second + backoff.Next()
	case c == "ResourceNotFoundException":
		if gone := streams.Gone(ctx, p.Client, p.Stream, p.Shard); gone != nil {
			return 0, gone
		}
		p.iterator = ""
		wait = backoff.Next()
	case errors.Is(failed, codec.ErrTooLarge) && p.Limit > 1:
		p.Limit = max(p.Limit/2, 1)
		wait = backoff.Next()
	case c == "InvalidArgumentException" && !p.made:
		// The server does not know its own iterator. It was probably restarted or replaced.
		p.iterator = ""
		wait = backoff.Next()
	case c == "InvalidArgumentException":
		p.iterator = ""
		failed = noPosition(p.From, failed)
		wait = backoff.Next()
		if !p.leave(ctx, failed) {
			// Waiting rarely helps, but skipping would lose records and an error would stop the
			// shard. So reads are retried slowly, and the failure is reported.
			wait = max(wait, 5*time.Second)
		}
	default:
		wait = backoff.Next()
	}
	if p.Listener != nil {
		p.Listener.Failed(failed, throttled, wait)
	}
	return wait, nil
}

// read reads a whole page.
func (p *Poll) read(ctx context.Context) (source.Page, error) {
	p.began = mono.Now()
	all := p.whole()
	if err := p.open(ctx, nil, &all.retry); err != nil {
		return source.Page{}, err
	}
	p.retried(&all.retry)
	p.due = p.began.Add(p.spacing(0)) // even if the read fails, because Kinesis may have counted it
	w, request := &all.Page, p.request(&all.retry)
	request.Limit = int(min(all.limit, p.Limit))
	if all.needs > 0 {
		request.Limit = 1
	}
	err := p.Caller.GetRecords(ctx, request, w)
	p.retried(&all.retry)
	room, most := answerRoom(p.readShare()), cmp.Or(all.most, anyRoom)
	if err != nil {
		p.due = p.began.Add(p.spacing(0))
		all.reading = all.after(err, taken{asked: request.Limit}, false, false, all.mean, p.Limit, room, most)
		return source.Page{}, err
	}
	p.due = p.began.Add(p.spacing(w.Bytes))
	page, err := p.check(ctx, w)
	if err == nil {
		err = p.deliver(w, page)
	}
	if err != nil {
		w.Release()
		return source.Page{}, err
	}
	tip := p.schedule(page.Bytes, page)
	got := taken{asked: request.Limit, records: len(w.Records), bytes: w.Bytes, memory: max(w.Held(), w.Bytes), whole: true, tip: tip}
	if got.records > 0 {
		all.mean = int32(min(got.memory/got.records, math.MaxInt32/2))
	}
	all.reading = all.after(nil, got, true, false, all.mean, p.Limit, room, most)
	page.Wire = w
	return page, nil
}

func (p *Poll) whole() *whole {
	if p.page == nil {
		p.page = &whole{reading: reading{limit: firstLimit(p.readShare(), p.Limit)}}
	}
	return p.page
}

// DueIn returns the time until the next read is due.
func (p *Poll) DueIn() time.Duration { return mono.Until(p.due) }

// UseMemory makes later pages take their memory from m. most is the maximum that m can provide, in
// bytes.
func (p *Poll) UseMemory(m codec.Memory, most int) { p.whole().Memory, p.page.most = m, most }

// Forget makes the next read begin at From, even if From was changed.
func (p *Poll) Forget() { p.iterator = "" }

// retried reports whether a call was retried. If so, the minimum time until the next read counts
// from the retry.
func (p *Poll) retried(r *wire.Retry) bool {
	if r.At.IsZero() {
		return false
	}
	p.began, r.At = mono.Of(r.At), time.Time{}
	return true
}

// open requests an iterator at the position if there is none. line may be nil.
func (p *Poll) open(ctx context.Context, line *wire.Line, retry *wire.Retry) error {
	if p.iterator != "" {
		return nil
	}
	p.Begin()
	p.made = true // from here on, a failure concerns the position
	it, err := p.iterate(ctx, line, retry)
	p.iterator = it
	return err
}

// request returns the next request. A retry counts as a read, so it keeps the minimum time from the
// first attempt.
func (p *Poll) request(retry *wire.Retry) wire.Request {
	retry.After = p.spacing(0)
	return wire.Request{Iterator: p.iterator, Limit: int(p.Limit), StreamARN: p.Stream.ARN, Retry: retry}
}

// deliver records that a page, or a part of a page, was delivered.
func (p *Poll) deliver(w *codec.Page, page source.Page) (err error) {
	if n := len(page.Records); n > 0 {
		if p.From, err = shard.After(strings.Clone(page.Records[n-1].SequenceNumber)); err != nil {
			return err
		}
	}
	if w.Last {
		p.iterator, p.made = w.Next, false
	}
	return nil
}

// check validates a page or a part of a page, and removes records at or before the position.
func (p *Poll) check(ctx context.Context, w *codec.Page) (source.Page, error) {
	page := source.Page{Records: w.Records, Bytes: w.Bytes, Behind: w.Behind, Marked: w.Marked, Took: mono.Since(p.began), Tip: p.began.Time()}
	if err := source.Placed(w); err != nil {
		return source.Page{}, err
	}
	skip := 0
	for skip < len(page.Records) && source.Covers(p.From, page.Records[skip].SequenceNumber) {
		skip++ // the server starts at the position, and not after it
	}
	if len(page.Records) > 0 {
		p.Resolve(&page.Records[0])
	}
	page.Records = page.Records[skip:]
	if !w.Last || w.Next != "" {
		return page, nil
	}
	// At the end of a shard there is no iterator, and the answer contains the children.
	var err error
	if len(w.Children) > 0 {
		page.Children, err = streams.Children(w.Children)
		page.End = err == nil
	} else {
		// Older servers omit the children at the end of a shard, and broken answers look the same.
		// The listing shows whether the shard has ended.
		page.End, page.Children, err = streams.Closed(ctx, p.Client, p.Stream, p.Shard)
	}
	return page, err
}

// schedule sets the time of the next read and reports whether the shard is at its tip. bytes is the
// size of the last answer, and page is its last page.
func (p *Poll) schedule(bytes int, page source.Page) (tip bool) {
	tip = page.Behind == 0 || (page.Behind < 0 && len(page.Records) == 0)
	next := p.tempo.after(tip, bytes > 0)
	var pause time.Duration
	if tip {
		t := p.tempo
		if t != unsettled {
			t = next
		}
		pause = idlePause(p.Idle, p.spacing(0), t)
	}
	p.tempo = next
	p.due = p.began.Add(pace(bytes, p.readShare(), tip, pause))
	return tip
}

func (p *Poll) iterate(ctx context.Context, line *wire.Line, retry *wire.Retry) (string, error) {
	in := &kinesis.GetShardIteratorInput{ShardId: aws.String(p.Shard)}
	in.StreamName, in.StreamARN = p.Stream.NameAndARN()
	switch p.From.Kind() {
	case shard.Time:
		in.ShardIteratorType, in.Timestamp = types.ShardIteratorTypeAtTimestamp, aws.Time(p.From.Time())
	case shard.First:
		in.ShardIteratorType = types.ShardIteratorTypeTrimHorizon
	case shard.Sequence:
		in.StartingSequenceNumber = aws.String(p.From.SequenceNumber())
		in.ShardIteratorType = types.ShardIteratorTypeAfterSequenceNumber
		if p.From.Done() != shard.Whole || p.InDoubt() {
			in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		}
	default:
		return "", fmt.Errorf("%w: %q is not a position that reading can begin at", source.ErrNoPosition, p.From)
	}
	return p.Caller.Iterator(ctx, in, line, retry)
}
