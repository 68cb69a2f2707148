package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/weir-go/weir/internal/wire/codec"
)

const (
	operation = "GetRecords"
	target    = "Kinesis_20131202." + operation
)

// These header values are the same in every request. They are never modified.
var (
	targetValue = []string{target}
	identity    = []string{"identity"}
	cborValue   = []string{codec.CBORType}
	jsonValue   = []string{codec.JSONType}
	// safeToRepeat is a value for the header Idempotency-Key. net/http does not send a header
	// without values, but the header makes net/http repeat the request on another connection if
	// necessary.
	safeToRepeat = []string{}
)

// own makes one call and reads the answer into p. For a large answer it may return a Rest.
func (c *Caller) own(l *life, f codec.Format, req *Request, p *codec.Page) (*Rest, error) {
	a, err := c.send(l, f, req)
	if err != nil {
		return nil, l.sendError(err)
	}
	var rest *Rest
	switch {
	case a.status != http.StatusOK:
		err = readAPIError(l, &a)
		c.learnSkew(&a, err)
	case c.inParts(l, &a):
		rest, err = c.begin(l, &a, p)
	default:
		err = readPage(&c.bodies, &a, f, p)
	}
	if rest != nil { // the rest now owns the answer
		return rest, nil
	}
	defer func() { _ = a.body.Close() }() // the data was read, so an error does not matter
	if err == nil {
		p.RequestID = a.requestID()
		return nil, nil
	}
	if l.over(err) && !isAPIError(err) {
		err = l.sendError(err)
	}
	return nil, responseError(&a, err)
}

// send makes the call over this package's HTTP client, or over net/http if that is necessary.
func (c *Caller) send(l *life, f codec.Format, req *Request) (answer, error) {
	ep := l.ep
	var again bool
	var err error
	if l.asked {
		l.asked = false
		if l.answer, again, err = l.line.line.Answer(l.caller); !again {
			return l.answered(err)
		}
	}
	if !c.byHand(l) {
		return c.post(l, callFor(f), req.appendTo(make([]byte, 0, 96+len(req.Iterator)+len(req.StreamARN)), f))
	}
	d := drafts.Get().(*draft)
	err = l.do(ep.message(d, c.now(), &l.cred, f, req), !again)
	drafts.Put(d)
	return l.answered(err)
}

// do sends a request over this package's HTTP client. It uses the line if there is one, and a new
// connection for a retry.
func (l *life) do(message []byte, repeat bool) (err error) {
	switch {
	case l.line != nil && l.second:
		l.answer, err = l.line.line.Fresh(l.caller, l.ep.lean, message, l.limits())
	case l.line != nil:
		l.answer, err = l.line.line.Do(l.caller, l.ep.lean, message, repeat, l.limits())
	case l.second:
		l.answer, err = l.ep.lean.Fresh(l.caller, message, l.limits())
	default:
		l.answer, err = l.ep.lean.Do(l.caller, message, repeat, l.limits())
	}
	return err
}

// byHand reports whether this package's HTTP client makes the call.
func (c *Caller) byHand(l *life) bool {
	return l.ep.lean != nil && !l.ep.strange.Load() && l.ep.writable(&l.cred) && httptrace.ContextClientTrace(l) == nil
}

// now returns the time according to the service's clock.
func (c *Caller) now() time.Time { return time.Now().Add(time.Duration(c.skew.Load())) }

// answered returns the answer that this package's HTTP client received.
func (l *life) answered(err error) (answer, error) {
	if err != nil {
		return answer{}, &url.Error{Op: "Post", URL: l.ep.url.Redacted(), Err: err}
	}
	l.quiet.heard(l.answer.Waited)
	return leanAnswer(l.answer, l.ep.url), nil
}

// readPage reads the body of a successful answer into p. asked is the format of the request.
func readPage(rd *codec.Bodies, a *answer, asked codec.Format, p *codec.Page) error {
	if e := a.encoding(); e != "" {
		return &smithy.DeserializationError{Err: &unexpectedError{asked, "the encoding " + e}}
	}
	b, err := rd.Read(a.body, a.length, p)
	if err != nil {
		return err
	}
	contentType := a.field("Content-Type")
	f, ok := codec.FormatOf(contentType, b)
	if !ok {
		return &smithy.DeserializationError{Err: &unexpectedError{asked, fmt.Sprintf("the type %.100q", contentType)}}
	}
	if err := codec.Decode(f, b, p); err != nil {
		return deserialization(err)
	}
	// If an endpoint answers a CBOR request in JSON, it is better to request JSON.
	p.Text = p.Text || f != asked
	return nil
}

// unexpectedError is returned for an answer in an unexpected form that cannot be read.
type unexpectedError struct {
	asked codec.Format
	what  string
}

func (e *unexpectedError) Error() string {
	return fmt.Sprintf("the answer to a request in %s has %s", e.asked, e.what)
}

// sendError returns the error of a call without a complete answer, in the form of the SDK.
func (l *life) sendError(err error) error {
	if l.over(err) {
		return canceled(l.cause(), err)
	}
	return &smithyhttp.RequestSendError{Err: err}
}

// sendError is like the method of life, for a call that only ctx can end.
func sendError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return canceled(context.Cause(ctx), err)
	}
	return &smithyhttp.RequestSendError{Err: err}
}

// canceled adds the cause of the cancellation to the error, because it says more than the HTTP
// client's error.
func canceled(cause, err error) error {
	if !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return &aws.RequestCanceledError{Err: err}
}

func operationError(err error) error { return errorOf(operation, err) }

func errorOf(operation string, err error) error {
	return &smithy.OperationError{ServiceID: kinesis.ServiceID, OperationName: operation, Err: err}
}

// maxTrustedSkew is the clock difference above which signatures use a corrected time. Signatures
// are valid for five minutes.
const maxTrustedSkew = 4 * time.Minute

// learnSkew corrects the clock for signatures. It does so if the service rejected a signature and
// the service's clock explains the rejection.
func (c *Caller) learnSkew(a *answer, err error) {
	if !c.fixSkew || !maybeSkew(err) {
		return
	}
	date, perr := smithyhttp.ParseTime(a.field("Date"))
	if perr != nil || a.field("Age") != "" {
		return
	}
	skew := time.Until(date)
	if d := skew - time.Duration(c.skew.Load()); d > maxTrustedSkew || d < -maxTrustedSkew {
		c.skew.Store(int64(skew))
	}
}
