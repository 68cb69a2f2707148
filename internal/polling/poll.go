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
	// From is where to begin. It must not be Latest, which has no fixed place: pin it first.
	From     shard.Position
	Listener source.Listener // notified about reading; may be nil
	Limit    int32           // records per page, 1 to 10,000

	failures uint8 // consecutive
	begun    bool  // an iterator has been requested
	made     bool  // the iterator is being made, or was made since the last page
	tempo    tempo
	iterator string
	page     *whole    // nil until a whole page is read
	doubt    *doubt    // about the position that reading began at
	began    mono.Time // the last read
	due      mono.Time // earliest time of the next read
}

// readShare returns the effective ReadShare.
func (p *Poll) readShare() float64 {
	if p.ReadShare == 0 {
		return 1
	}
	return p.ReadShare
}

// spacing returns the minimum time between the beginning of a read that brought this many bytes and
// the next read.
func (p *Poll) spacing(bytes int) time.Duration { return spacing(bytes, p.readShare()) }

// whole holds the buffer for pages that are read one after the other, and the size of the next one.
type whole struct {
	codec.Page
	reading
	mean  int32 // memory of a record in bytes, 0 if unknown
	most  int   // maximum memory of an answer in bytes, 0 for any
	retry wire.Retry
}

// Next waits until a read is due and returns the next page, which may be empty. It retries for as
// long as that can help. Its errors are ctx's cause, and errors that wrap [ErrNoShard] or
// [ErrNoStream].
func (p *Poll) Next(ctx context.Context) (source.Page, error) { return p.next(ctx, false) }

// Once is like Next, but returns an empty page after a read that lacked memory. The caller then
// waits for as many bytes as Needs returns.
func (p *Poll) Once(ctx context.Context) (source.Page, error) { return p.next(ctx, true) }

// Needs returns how many bytes of memory the next read needs to bring a record, or 0 if there is no
// known shortage. That read asks for one record.
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

// Last reads once more, without waiting for the idle interval and without retries. A reader calls
// it before it hands the shard on, so that the next reader has less to catch up with.
func (p *Poll) Last(ctx context.Context) (source.Page, error) {
	if err := retry.Wait(ctx, mono.Until(p.began.Add(p.spacing(0)))); err != nil {
		return source.Page{}, err
	}
	return p.read(ctx)
}

// Close does nothing: there is nothing to release between two reads.
func (p *Poll) Close() {}

// judge decides what a failed read means: how long to wait before the next read, or an error that
// ends reading.
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
		// the iterator is unknown: the server was restarted or replaced
		p.iterator = ""
		wait = backoff.Next()
	case c == "InvalidArgumentException":
		p.iterator = ""
		failed = noPosition(p.From, failed)
		wait = backoff.Next()
		if !p.leave(ctx, failed) {
			// Waiting rarely helps, but skipping would lose records and failing would stop the
			// shard. So the read is retried slowly and reported.
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
	p.due = p.began.Add(p.spacing(0)) // even if it fails: the service may have counted it
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

// UseMemory takes the memory of later pages from m, which can have most bytes.
func (p *Poll) UseMemory(m codec.Memory, most int) { p.whole().Memory, p.page.most = m, most }

// Forget makes the next read begin at From, even if that was moved.
func (p *Poll) Forget() { p.iterator = "" }

// retried records that a call was made a second time. The next read keeps its distance from that
// attempt.
func (p *Poll) retried(r *wire.Retry) bool {
	if r.At.IsZero() {
		return false
	}
	p.began, r.At = mono.Of(r.At), time.Time{}
	return true
}

// open makes an iterator at the position if there is none. line may be nil.
func (p *Poll) open(ctx context.Context, line *wire.Line, retry *wire.Retry) error {
	if p.iterator != "" {
		return nil
	}
	p.Begin()
	p.made = true // from here on, a failure is about the position
	it, err := p.iterate(ctx, line, retry)
	p.iterator = it
	return err
}

// request returns the next request. A second attempt counts as a read, so it keeps the same
// distance.
func (p *Poll) request(retry *wire.Retry) wire.Request {
	retry.After = p.spacing(0)
	return wire.Request{Iterator: p.iterator, Limit: int(p.Limit), StreamARN: p.Stream.ARN, Retry: retry}
}

// deliver records that a page, or a part of one, counts as delivered.
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

// check validates a page or a part of one, and removes records before the position.
func (p *Poll) check(ctx context.Context, w *codec.Page) (source.Page, error) {
	page := source.Page{Records: w.Records, Bytes: w.Bytes, Behind: w.Behind, Marked: w.Marked, Took: mono.Since(p.began), Tip: p.began.Time()}
	if err := source.Placed(w); err != nil {
		return source.Page{}, err
	}
	skip := 0
	for skip < len(page.Records) && source.Covers(p.From, page.Records[skip].SequenceNumber) {
		skip++ // a server that starts at the position instead of after it
	}
	if len(page.Records) > 0 {
		p.Resolve(&page.Records[0])
	}
	page.Records = page.Records[skip:]
	if !w.Last || w.Next != "" {
		return page, nil
	}
	// The end of a shard has no iterator and names children. One without the other is a broken
	// answer.
	var err error
	if len(w.Children) > 0 {
		page.Children, err = streams.Children(w.Children)
		page.End = err == nil
	} else {
		// Older servers end a shard without naming its children, and broken answers look the same.
		// The listing decides.
		page.End, page.Children, err = streams.Closed(ctx, p.Client, p.Stream, p.Shard)
	}
	return page, err
}

// schedule sets when the next read is due. The last read brought this many bytes and ended with
// page.
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
