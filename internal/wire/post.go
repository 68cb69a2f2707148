package wire

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir/internal/wire/codec"
)

// post makes a call over net/http. The caller must close the answer.
func (c *Caller) post(l *life, of call, body []byte) (answer, error) {
	resp, err := l.listenTo(c.posts, l.ep.request(l, c.now(), &l.cred, of, body)) //nolint:bodyclose // it is the caller's
	if err != nil {
		return answer{}, err
	}
	return fullAnswer(resp), nil
}

// poster returns the HTTP client for [Caller.post]. It returns the transport itself if the client
// has no settings that a call needs.
func poster(own doer) doer {
	if c, ok := own.(*http.Client); ok && c.Transport != nil && c.Timeout == 0 && c.Jar == nil && c.CheckRedirect == nil {
		return direct{c.Transport}
	}
	return own
}

// direct is an [http.Client] without its expensive parts, which would cost as much as the rest of a
// small call. It does not copy the header, which is only needed for redirects. It does not follow
// redirects, because the signature covers the host.
type direct struct{ transport http.RoundTripper }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	resp, err := d.transport.RoundTrip(r)
	if err == nil && resp == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, &url.Error{Op: "Post", URL: r.URL.Redacted(), Err: err}
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	return resp, nil
}

var errNoAnswer = errors.New("wire: the transport returned neither an answer nor an error")

// content is the body of a request.
type content struct{ bytes.Reader }

// Close implements [io.Closer].
func (*content) Close() error { return nil }

// request returns a signed request. now is the time according to the service's clock.
func (ep *endpoint) request(ctx context.Context, now time.Time, cred *aws.Credentials, of call, body []byte) *http.Request {
	at := ep.templates.signedAt(now)
	t := ep.templateFor(cred, at)
	d := drafts.Get().(*draft)
	signature := t.signature(d, of, at, sha256.Sum256(body))
	values := []string{at, cred.SessionToken, t.credential + string(signature)}
	drafts.Put(d)

	h := make(http.Header, 8) // one group of Go's maps
	h["Content-Type"] = jsonValue
	if of.contentType() == codec.CBORType {
		h["Content-Type"] = cborValue
	}
	h["User-Agent"] = ep.agent
	h["Accept-Encoding"] = identity
	switch of {
	case iteratorJSON:
		h["X-Amz-Target"] = iteratorTargetValue
	case putCBOR, putJSON:
		h["X-Amz-Target"] = putTargetValue
	default:
		h["X-Amz-Target"] = targetValue
	}
	if of != putCBOR && of != putJSON {
		h["Idempotency-Key"] = safeToRepeat
	}
	h["X-Amz-Date"] = values[0:1:1]
	if cred.SessionToken != "" {
		h["X-Amz-Security-Token"] = values[1:2:2]
	}
	h["Authorization"] = values[2:3:3]

	open := func() *content {
		c := new(content)
		c.Reset(body)
		return c
	}
	r := blank.WithContext(ctx)
	r.Method, r.URL, r.Host, r.Header = http.MethodPost, ep.url, ep.host, h
	r.Body, r.ContentLength = open(), int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return open(), nil }
	return r
}

// blank is the base of all requests. blank.WithContext makes a request with one allocation.
var blank = &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
