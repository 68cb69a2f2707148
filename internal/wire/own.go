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
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	operation = "GetRecords"
	target    = "Kinesis_20131202." + operation
)

// Header values that are the same in every request. Nobody changes them.
var (
	targetValue  = []string{target}
	identity     = []string{"identity"}
	cborValue    = []string{cborType}
	jsonValue    = []string{jsonType}
	safeToRepeat = []string{} // is not sent, but says that the request may be, on another connection
)

// own makes one call and reads the answer into p. With a life to live it may leave the rest of a large answer for later.
func (c *Caller) own(ctx context.Context, ep *endpoint, cred *aws.Credentials, f Format, req *Request, p *Page, l *life) (*Rest, error) {
	r := ep.request(time.Now().Add(time.Duration(c.skew.Load())), cred, f, req)
	resp, err := c.http.Do(r.WithContext(ctx))
	if err != nil {
		return nil, sendError(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // whatever was read is all that matters
	var rest *Rest
	switch {
	case resp.StatusCode != http.StatusOK:
		err = readAPIError(ctx, resp)
		c.learnSkew(resp, err)
	case c.inParts(l, resp):
		rest, err = c.begin(l, resp, p)
	default:
		err = c.reading.page(resp, f, p)
	}
	if err == nil {
		p.RequestID = requestID(resp.Header)
		return rest, nil
	}
	if ctx.Err() != nil && !isAPIError(err) {
		err = sendError(ctx, err)
	}
	return nil, responseError(resp, err)
}

// request is a signed request at the time now, for the service's clock.
func (ep *endpoint) request(now time.Time, cred *aws.Credentials, f Format, req *Request) *http.Request {
	body := req.appendTo(make([]byte, 0, 96+len(req.Iterator)+len(req.StreamARN)), f)
	at := signedAt(now)
	content := cborValue
	if f == JSON {
		content = jsonValue
	}
	h := make(http.Header, 9)
	h["Content-Type"] = content
	h["X-Amz-Target"] = targetValue
	h["User-Agent"] = ep.agent
	h["Accept-Encoding"] = identity
	h["Idempotency-Key"] = safeToRepeat
	values := []string{at, cred.SessionToken, ""}
	h["X-Amz-Date"] = values[0:1:1]

	signed := make([]header, 0, 5)
	signed = append(signed, header{"content-type", content[0]}, header{"host", ep.host}, header{"x-amz-date", at})
	if cred.SessionToken != "" {
		h["X-Amz-Security-Token"] = values[1:2:2]
		signed = append(signed, header{"x-amz-security-token", canonical(cred.SessionToken)})
	}
	signed = append(signed, header{"x-amz-target", target})
	values[2] = ep.signer.sign(cred, at, ep.path, signed, body)
	h["Authorization"] = values[2:3:3]

	return &http.Request{
		Method: http.MethodPost, URL: ep.url, Host: ep.host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		GetBody:       func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}
}

// page reads the body of a good answer to a request in the format asked into p.
func (rd *reading) page(resp *http.Response, asked Format, p *Page) error {
	if e := encoding(resp); e != "" {
		return &smithy.DeserializationError{Err: &unexpectedError{asked, "the encoding " + e}}
	}
	b, err := rd.body(resp.Body, resp.ContentLength, p)
	if err != nil {
		return err
	}
	contentType := resp.Header.Get("Content-Type")
	f, ok := formatOf(contentType, b)
	if !ok {
		return &smithy.DeserializationError{Err: &unexpectedError{asked, fmt.Sprintf("the type %.100q", contentType)}}
	}
	if err := Decode(f, b, p); err != nil {
		return deserialization(err)
	}
	// An endpoint that answers in JSON what was asked in CBOR is served better by asking in JSON.
	p.text = p.text || f != asked
	return nil
}

// encoding is how the body of an answer is packed, which it should not be.
func encoding(resp *http.Response) string {
	if e := resp.Header.Get("Content-Encoding"); e != "identity" {
		return e
	}
	return ""
}

// unexpectedError says that an answer is in a form that was not asked for and cannot be read.
type unexpectedError struct {
	asked Format
	what  string
}

func (e *unexpectedError) Error() string {
	return fmt.Sprintf("the answer to a request in %s has %s", e.asked, e.what)
}

// sendError is the error about a call that brought no whole answer, as the SDK would put it. The cause of ctx's end says more
// than what the HTTP client makes of it.
func sendError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return &aws.RequestCanceledError{Err: err}
	}
	return &smithyhttp.RequestSendError{Err: err}
}

func requestID(h http.Header) string {
	if id := h.Get("X-Amzn-Requestid"); id != "" {
		return id
	}
	return h.Get("X-Amz-Requestid")
}

func operationError(err error) error {
	return &smithy.OperationError{ServiceID: kinesis.ServiceID, OperationName: operation, Err: err}
}

// maxTrustedSkew is how far a clock may be off before it counts; signatures are good for five minutes.
const maxTrustedSkew = 4 * time.Minute

// learnSkew corrects the clock that requests are signed by when the service refuses a signature and its own clock says why.
func (c *Caller) learnSkew(resp *http.Response, err error) {
	if !c.fixSkew || !maybeSkew(err) {
		return
	}
	date, perr := smithyhttp.ParseTime(resp.Header.Get("Date"))
	if perr != nil || resp.Header.Get("Age") != "" {
		return
	}
	skew := time.Until(date)
	if d := skew - time.Duration(c.skew.Load()); d > maxTrustedSkew || d < -maxTrustedSkew {
		c.skew.Store(int64(skew))
	}
}
