package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/weir-go/weir/internal/wire/codec"
)

// underSDK makes one call through the client, with a protocol that reads the answer into p.
func (c *Caller) underSDK(l *life, f codec.Format, req *Request, p *codec.Page) error {
	protocol := &protocol{Protocol: sdkProtocol, format: f, bodies: &c.bodies, page: p}
	out, err := c.client.GetRecords(l, req.input(), c.once(l), func(o *kinesis.Options) { o.Protocol = protocol })
	if err != nil {
		return err
	}
	if !protocol.read {
		// A middleware of the user answered the call itself.
		p.FromSDK(out)
	}
	p.RequestID, _ = awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
	return nil
}

// once configures a call without the SDK's retries. The call uses the Caller's connections and
// sends its request in one piece.
func (c *Caller) once(l *life) func(*kinesis.Options) {
	return func(o *kinesis.Options) {
		o.Retryer = aws.NopRetryer{}
		o.HTTPClient = wholeRequest{listener{c, l}}
	}
}

// listener checks for silence until the answer to a request of the SDK arrives.
type listener struct {
	c *Caller
	l *life
}

func (h listener) Do(r *http.Request) (*http.Response, error) {
	quiet := h.c.silenceOf(r.URL.Scheme + "://" + r.URL.Host)
	h.l.mu.Lock()
	h.l.quiet = quiet
	h.l.mu.Unlock()
	return h.l.listenTo(h.c.http, r)
}

// wholeRequest sends the body of each request as one buffer. The SDK closes a body as soon as the
// head of the answer has arrived. With nearby servers, the transport may not have finished with the
// body at that time. It then treats the write as failed and closes the connection in the middle of
// the answer.
type wholeRequest struct{ doer }

func (w wholeRequest) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return w.doer.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if cerr := r.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	again := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	whole := r.WithContext(r.Context())
	whole.Body, _ = again()
	whole.GetBody, whole.ContentLength = again, int64(len(body))
	whole.Header = r.Header.Clone() // the original is already signed
	whole.Header["Idempotency-Key"] = safeToRepeat
	return w.doer.Do(whole)
}

// protocol is the SDK's Kinesis protocol with one change: it decodes the answer of one GetRecords
// call into a page.
type protocol struct {
	*awsjson.Protocol
	format codec.Format
	bodies *codec.Bodies
	page   *codec.Page
	read   bool
}

var _ smithyhttp.ClientProtocol = (*protocol)(nil)

// SerializeRequest writes the request in the protocol's format.
func (pr *protocol) SerializeRequest(ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable, r *smithyhttp.Request) error {
	input, ok := in.(*kinesis.GetRecordsInput)
	if err := pr.Protocol.SerializeRequest(ctx, schema, in, r); err != nil || !ok {
		return err
	}
	r.Header["Accept-Encoding"] = identity
	if pr.format == codec.JSON {
		return nil
	}
	r.Header["Content-Type"] = cborValue
	with, err := r.SetStream(bytes.NewReader(appendInput(nil, input)))
	if err != nil {
		return fmt.Errorf("set stream: %w", err)
	}
	*r = *with
	return nil
}

// DeserializeResponse reads the answer into the page. The SDK's output contains everything except
// the records.
func (pr *protocol) DeserializeResponse(ctx context.Context, schema *smithy.OperationSchema, registry *smithy.TypeRegistry, resp *smithyhttp.Response, out smithy.Deserializable) error {
	output, ok := out.(*kinesis.GetRecordsOutput)
	if !ok {
		return pr.Protocol.DeserializeResponse(ctx, schema, registry, resp, out)
	}
	a := fullAnswer(resp.Response)
	if a.status != http.StatusOK {
		return readAPIError(ctx, &a)
	}
	p := pr.page
	if err := readPage(pr.bodies, &a, pr.format, p); err != nil {
		return err
	}
	pr.read = true
	if p.Next != "" {
		output.NextShardIterator = aws.String(p.Next)
	}
	if p.Behind >= 0 {
		output.MillisBehindLatest = aws.Int64(p.Behind.Milliseconds())
	}
	output.ChildShards = p.Children
	return nil
}

// plainSDK makes one call whose answer the SDK or the user's client decodes.
func (c *Caller) plainSDK(l *life, req *Request, p *codec.Page) error {
	configure := asWrapped
	if c.path == PlainSDK {
		configure = c.once(l)
	}
	out, err := c.client.GetRecords(l, req.input(), configure)
	if err != nil {
		return err
	}
	p.FromSDK(out)
	p.RequestID, _ = awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
	return nil
}
