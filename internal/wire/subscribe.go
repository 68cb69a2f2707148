package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/wire/codec"
)

var (
	// ErrNoAnswer is wrapped by an error if the first message of a stream did not arrive in time
	// after a call of SubscribeToShard.
	ErrNoAnswer = errors.New("the subscription was not answered")
	// ErrSilent is wrapped by an error if no event arrived on a subscription for too long.
	ErrSilent = errors.New("the subscription is silent")
	// ErrEnded is returned at the normal end of a subscription, usually after five minutes.
	ErrEnded = errors.New("the subscription ended")
)

// SubscribeRequest contains the parameters of SubscribeToShard.
type SubscribeRequest struct {
	ConsumerARN, Shard string
	At                 types.StartingPosition
	// Answer is the maximum wait for the first message of the stream. Zero means [Options.Timeout].
	Answer time.Duration
}

func (r *SubscribeRequest) input() *kinesis.SubscribeToShardInput {
	return &kinesis.SubscribeToShardInput{ConsumerARN: &r.ConsumerARN, ShardId: &r.Shard, StartingPosition: &r.At}
}

// Subscription is an event stream that SubscribeToShard has returned. It has no goroutine. The
// caller must close it. Only Stop is safe for concurrent use.
type Subscription struct {
	ctx    context.Context // context of the request and of the whole stream
	cancel context.CancelCauseFunc
	timer  *time.Timer // ends ctx with late
	late   error

	silence time.Duration // the maximum duration of the current call of Next

	c         *Caller
	events    eventReader
	resp      *http.Response // nil on the paths PlainSDK and Methods
	requestID string
	closed    bool
}

// eventReader reads the events of a subscription.
type eventReader interface {
	// next reads an event into p.
	next(s *Subscription, p *codec.Page) error
	close()
}

// Subscribe makes a subscription that lasts until Close. ctx applies only to the call of Subscribe.
// The call uses the path of the Caller over separate connections, with HTTP/2 if the server
// supports it. It requests events in JSON, or in CBOR if [Options.Format] is CBOR. It reads events
// in both formats.
//
// Subscribe returns errors of the SDK like [Caller.GetRecords], the cause of ctx, [ErrEnded] for an
// empty stream, or an error that wraps [ErrNoAnswer], [ErrNoEvents] or [codec.ErrFrame].
func (c *Caller) Subscribe(ctx context.Context, req SubscribeRequest) (*Subscription, error) {
	s := &Subscription{c: c}
	// The context of the call is also the context of the stream. It must outlast ctx, which may
	// have a deadline for the call.
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	bound := req.Answer
	if bound == 0 {
		bound = c.opts.Timeout
	}
	s.bound(bound, ErrNoAnswer)
	unlink := context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	err := c.subscribe(s, &req)
	switch linked := unlink(); {
	case !linked:
		s.cancel(context.Cause(ctx)) // in case ctx has not done that yet
	case !s.timer.Stop():
		s.cancel(s.late)
	}
	// If the answer arrived at the moment of the cancellation, return the cause as well.
	if cause := context.Cause(s.ctx); cause != nil && !isAPIError(err) {
		err = cause
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// bound ends the subscription with a cause after d. Stopping the timer prevents that.
func (s *Subscription) bound(d time.Duration, cause error) {
	s.late = fmt.Errorf("%w for %v", cause, d)
	if s.timer == nil {
		s.timer = time.AfterFunc(d, func() { s.cancel(s.late) })
		return
	}
	s.timer.Reset(d)
}

// Next waits for the next event and reads it into p. It reuses p, and leaves it empty after an
// error. Next ignores events of unknown kinds. After an error the subscription is closed.
//
// If p.Memory is a [codec.WaitingMemory], Next also waits for memory. During that wait the service
// can send at most one flow-control window of data over HTTP/2 ([streamWindow]).
//
// The errors are those of the service, as in [Caller.GetRecords], those of p.Memory,
// [codec.ErrFrame], [codec.ErrTooLarge], and [ErrEnded]. An error wraps [ErrSilent] if no complete
// event arrived within silence; waits for memory do not count. After Stop or Close, the error is
// [ErrClosed].
func (s *Subscription) Next(silence time.Duration, p *codec.Page) error {
	p.Reset()
	if s.closed {
		return ErrClosed
	}
	s.silence = silence
	s.bound(silence, ErrSilent)
	err := s.events.next(s, p)
	if !s.timer.Stop() {
		s.cancel(s.late)
	}
	if cause := context.Cause(s.ctx); cause != nil && !isAPIError(err) {
		err = cause
	}
	if err != nil {
		p.Reset()
		s.Close()
		return err
	}
	p.RequestID = s.requestID
	return nil
}

// room allocates n bytes for an event in p. A wait for memory does not count as silence.
func (s *Subscription) room(n int, p *codec.Page) ([]byte, error) {
	if _, ok := p.Memory.(codec.WaitingMemory); !ok {
		return s.c.bodies.Room(n, n, p)
	}
	if !s.timer.Stop() {
		return nil, s.late
	}
	defer s.timer.Reset(s.silence)
	return s.c.bodies.Wait(s.ctx, n, p)
}

// Context returns a context that ends with the subscription.
func (s *Subscription) Context() context.Context { return s.ctx }

// Stop ends the subscription. The current call of Next and all later calls fail. Stop may be called
// concurrently. Close is still required.
func (s *Subscription) Stop() { s.cancel(ErrClosed) }

// Close ends the subscription and releases its stream. Further calls do nothing.
func (s *Subscription) Close() {
	if s.closed {
		return
	}
	s.closed = true
	s.timer.Stop()
	s.cancel(ErrClosed)
	if s.events != nil {
		s.events.close()
	}
}

// subscribe makes the call and reads the first message.
func (c *Caller) subscribe(s *Subscription, req *SubscribeRequest) error {
	switch c.path {
	case OwnCall:
		cred, err := c.credentials.Retrieve(s.ctx)
		if err != nil {
			return subscribeError(fmt.Errorf("get credentials: %w", err))
		}
		ep, err := c.endpointFor(s.ctx, &cred, req.ConsumerARN)
		if err != nil {
			return err
		}
		if ep.reason == "" {
			return c.subscribeOwn(s, ep, &cred, req)
		}
	case PlainSDK, Methods:
		return c.subscribeSDK(s, req)
	}
	return c.subscribeUnder(s, req)
}

// begin reads the first message of the stream in resp. From then on, s owns resp.
func (s *Subscription) begin(resp *http.Response, body io.ReadCloser) error {
	a := fullAnswer(resp)
	s.resp, s.requestID = resp, a.requestID()
	f := &framedEvents{body: body, frames: codec.NewFrameReader(body, max(0, s.c.opts.MaxBody-codec.ChecksumLength))}
	s.events = f
	if e := a.encoding(); e != "" {
		return s.failed(&smithy.DeserializationError{Err: &unexpectedError{s.c.eventFormat(), "the encoding " + e}})
	}
	err := f.begin()
	if errors.Is(err, codec.ErrFrame) {
		err = fmt.Errorf("an answer of the type %.100q: %w", resp.Header.Get("Content-Type"), err)
	}
	if err != nil {
		return s.failed(err)
	}
	return nil
}

// failed adds information about the call to an error of the stream.
func (s *Subscription) failed(err error) error {
	if errors.Is(err, ErrEnded) {
		return err
	}
	a := fullAnswer(s.resp)
	return subscribeError(responseError(&a, err))
}

// eventFormat returns the format in which events are requested.
func (c *Caller) eventFormat() codec.Format {
	if c.opts.Format == codec.CBOR {
		return codec.CBOR
	}
	return codec.JSON
}

const subscribeOperation = "SubscribeToShard"

func subscribeError(err error) error {
	return &smithy.OperationError{ServiceID: kinesis.ServiceID, OperationName: subscribeOperation, Err: err}
}
