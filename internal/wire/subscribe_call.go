package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/weir-go/weir/internal/wire/codec"
)

// subscribeOwn makes the call without the SDK's stack.
func (c *Caller) subscribeOwn(s *Subscription, ep *endpoint, cred *aws.Credentials, req *SubscribeRequest) error {
	f := c.eventFormat()
	r := ep.subscribeRequest(time.Now().Add(time.Duration(c.skew.Load())), cred, f, req.appendTo(nil, f))
	resp, err := c.streams.of(c).Do(r.WithContext(s.ctx))
	if err != nil {
		return subscribeError(sendError(s.ctx, err))
	}
	if resp.StatusCode != http.StatusOK {
		a := fullAnswer(resp)
		err := readAPIError(s.ctx, &a)
		_ = resp.Body.Close() // the data was read, so an error does not matter
		c.learnSkew(&a, err)
		return subscribeError(responseError(&a, err))
	}
	return s.begin(resp, resp.Body)
}

// subscribeRequest returns a signed request. now is the time according to the service's clock.
func (ep *endpoint) subscribeRequest(now time.Time, cred *aws.Credentials, f codec.Format, body []byte) *http.Request {
	const target = "Kinesis_20131202." + subscribeOperation
	at := signedAt(now)
	h := http.Header{
		"Content-Type": {f.ContentType()}, "X-Amz-Target": {target}, "User-Agent": ep.agent, "Accept-Encoding": identity,
		"Idempotency-Key": safeToRepeat, "X-Amz-Date": {at},
	}
	signed := append(make([]header, 0, 5), header{"content-type", f.ContentType()}, header{"host", ep.host}, header{"x-amz-date", at})
	if cred.SessionToken != "" {
		h["X-Amz-Security-Token"] = []string{cred.SessionToken}
		signed = append(signed, header{"x-amz-security-token", canonical(cred.SessionToken)})
	}
	signed = append(signed, header{"x-amz-target", target})
	h["Authorization"] = []string{ep.signer.sign(cred, at, ep.path, signed, body)}
	again := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r := &http.Request{
		Method: http.MethodPost, URL: ep.url, Host: ep.host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: int64(len(body)), GetBody: again,
	}
	r.Body, _ = again()
	return r
}

// subscribeUnder makes the call through the SDK, so that the client's middleware, tracing and
// logging see it. It takes the stream from the SDK before the SDK decodes it. The SDK gets an empty
// stream.
func (c *Caller) subscribeUnder(s *Subscription, req *SubscribeRequest) error {
	p := &streamProtocol{Protocol: sdkProtocol, format: c.eventFormat()}
	out, err := c.client.SubscribeToShard(s.ctx, req.input(), c.overStreams, func(o *kinesis.Options) { o.Protocol = p })
	if err == nil {
		_ = out.GetStream().Close() // ends the SDK's goroutines, which have nothing to do
	}
	if p.resp == nil {
		if err == nil {
			err = errors.New("a middleware of the client answered SubscribeToShard by itself; select the path PlainSDK")
		}
		return err
	}
	if err != nil {
		_ = p.body.Close()
		return err
	}
	err = s.begin(p.resp, p.body)
	if id, ok := awsmiddleware.GetRequestIDMetadata(out.ResultMetadata); ok {
		s.requestID = id
	}
	return err
}

// overStreams configures a call without the SDK's retries. The call uses connections for
// subscriptions and sends its request in one piece.
func (c *Caller) overStreams(o *kinesis.Options) {
	o.Retryer = aws.NopRetryer{}
	o.HTTPClient = wholeRequest{c.streams.of(c)}
}

// streamProtocol is the SDK's Kinesis protocol with one change: it keeps the answer of one call of
// SubscribeToShard.
type streamProtocol struct {
	*awsjson.Protocol
	format codec.Format
	resp   *http.Response
	body   io.ReadCloser
}

var _ smithyhttp.ClientProtocol = (*streamProtocol)(nil)

// SerializeRequest writes the request in the protocol's format.
func (pr *streamProtocol) SerializeRequest(ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable, r *smithyhttp.Request) error {
	input, ok := in.(*kinesis.SubscribeToShardInput)
	if err := pr.Protocol.SerializeRequest(ctx, schema, in, r); err != nil || !ok {
		return err
	}
	r.Header["Accept-Encoding"] = identity
	if pr.format == codec.JSON {
		return nil
	}
	r.Header["Content-Type"] = cborValue
	req := SubscribeRequest{ConsumerARN: aws.ToString(input.ConsumerARN), Shard: aws.ToString(input.ShardId), At: *input.StartingPosition}
	with, err := r.SetStream(bytes.NewReader(req.appendTo(nil, codec.CBOR)))
	if err != nil {
		return fmt.Errorf("set stream: %w", err)
	}
	*r = *with
	return nil
}

// DeserializeResponse takes the stream from a successful answer.
func (pr *streamProtocol) DeserializeResponse(ctx context.Context, schema *smithy.OperationSchema, registry *smithy.TypeRegistry, resp *smithyhttp.Response, out smithy.Deserializable) error {
	if _, ok := out.(*kinesis.SubscribeToShardOutput); !ok {
		return pr.Protocol.DeserializeResponse(ctx, schema, registry, resp, out)
	}
	if resp.StatusCode != http.StatusOK {
		a := fullAnswer(resp.Response)
		return readAPIError(ctx, &a)
	}
	pr.resp, pr.body = resp.Response, resp.Body
	resp.Body = http.NoBody
	return nil
}

// HasInitialEventMessage returns false, because the first message is read later like all others.
func (pr *streamProtocol) HasInitialEventMessage() bool { return false }

// DeserializeEventMessage returns io.EOF, because the SDK's stream has no events.
func (pr *streamProtocol) DeserializeEventMessage(*smithy.Schema, *smithy.TypeRegistry, io.Reader) (smithy.Deserializable, error) {
	return nil, io.EOF
}

// subscribeSDK makes a call whose events the SDK decodes.
func (c *Caller) subscribeSDK(s *Subscription, req *SubscribeRequest) error {
	var out *kinesis.SubscribeToShardOutput
	var err error
	if c.path == Methods {
		out, err = c.client.SubscribeToShard(s.ctx, req.input(), asWrappedStream)
	} else {
		// A separate client is necessary, because the SDK decodes all event streams of a client
		// with the same unguarded buffer.
		out, err = kinesis.New(c.real.Options()).SubscribeToShard(s.ctx, req.input(), c.overStreams)
	}
	if err != nil {
		return err
	}
	s.requestID, _ = awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
	stream := out.GetStream()
	if stream == nil {
		return subscribeError(ErrNoEvents)
	}
	s.events = sdkEvents{stream}
	return nil
}

// sdkEvents is a stream that the SDK reads.
type sdkEvents struct {
	stream *kinesis.SubscribeToShardEventStream
}

func (e sdkEvents) next(s *Subscription, p *codec.Page) error {
	for {
		select {
		case ev, more := <-e.stream.Events():
			if !more {
				if err := e.stream.Err(); err != nil {
					return err
				}
				return ErrEnded
			}
			if ev, known := ev.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent); known {
				p.EventFromSDK(&ev.Value)
				return nil
			} // otherwise it is an unknown event, which does not prove that records still arrive
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

// sdkClose is the maximum wait for the SDK's goroutine, which a user's HTTP client could block.
const sdkClose = 5 * time.Second

func (e sdkEvents) close() {
	_ = e.stream.Close() // the stream has ended, so an error does not matter
	timer := time.NewTimer(sdkClose)
	defer timer.Stop()
	for {
		select {
		case _, more := <-e.stream.Events():
			if !more {
				return
			}
		case <-timer.C:
			return
		}
	}
}
