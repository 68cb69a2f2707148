package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir/internal/http1"
	"github.com/weir-go/weir/internal/wire/codec"
)

// template is the common part of all requests to an endpoint. It changes with the credentials and
// the day.
type template struct {
	key   *signingKey
	token string
	text  [calls]templateText
	// credential is the value of Authorization up to the signature.
	credential string
	// authorization is the header field up to the signature, with the line break before it.
	authorization string
}

// templateText is the part of the template for one kind of call.
type templateText struct {
	head   string // of the request, up to the date
	signed string // the signed text, up to the date
	after  string // the signed text, from after the date to before the hash of the body
}

// call is a kind of call without the SDK, including its format.
type call uint8

const (
	recordsCBOR call = iota
	recordsJSON
	iteratorJSON
	putCBOR
	putJSON
	calls
)

// callFor returns the GetRecords call in a format.
func callFor(f codec.Format) call {
	if f == codec.JSON {
		return recordsJSON
	}
	return recordsCBOR
}

func (c call) contentType() string {
	if c == recordsCBOR || c == putCBOR {
		return codec.CBORType
	}
	return codec.JSONType
}

func (c call) target() string {
	switch c {
	case iteratorJSON:
		return iteratorTarget
	case putCBOR, putJSON:
		return putTarget
	}
	return target
}

// templates caches the current template and the formatted time.
type templates struct {
	now  atomic.Pointer[template]
	time atomic.Pointer[timeText]
}

type timeText struct {
	second int64
	text   string
}

// signedAt returns a formatted time. It formats once per second.
func (ts *templates) signedAt(t time.Time) string {
	if last := ts.time.Load(); last != nil && last.second == t.Unix() {
		return last.text
	}
	now := &timeText{t.Unix(), signedAt(t)}
	ts.time.Store(now)
	return now.text
}

func (ep *endpoint) templateFor(cred *aws.Credentials, at string) *template {
	key := ep.signer.keyFor(cred, at)
	if t := ep.templates.now.Load(); t != nil && t.key == key && t.token == cred.SessionToken {
		return t
	}
	t := &template{key: key, token: cred.SessionToken}
	names := "content-type;host;x-amz-date;x-amz-target"
	field, signedToken := "", ""
	if t.token != "" {
		names = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
		field = "X-Amz-Security-Token: " + strings.TrimSpace(t.token) + "\r\n"
		signedToken = "x-amz-security-token:" + canonical(t.token) + "\n"
	}
	for c := range calls {
		t.text[c] = templateText{
			head: "POST " + ep.url.RequestURI() + " HTTP/1.1\r\nHost: " + ep.host + "\r\nUser-Agent: " + ep.agent[0] +
				"\r\nContent-Type: " + c.contentType() + "\r\nX-Amz-Target: " + c.target() + "\r\nAccept-Encoding: identity\r\n" + field + "X-Amz-Date: ",
			signed: "POST\n" + ep.path + "\n\ncontent-type:" + c.contentType() + "\nhost:" + ep.host + "\nx-amz-date:",
			after:  "\n" + signedToken + "x-amz-target:" + c.target() + "\n\n" + names + "\n",
		}
	}
	t.credential = algorithm + " Credential=" + key.id + "/" + key.scope + ", SignedHeaders=" + names + ", Signature="
	t.authorization = "\r\nAuthorization: " + t.credential
	ep.templates.now.Store(t)
	return t
}

// drafts is a pool of buffers for requests.
var drafts = sync.Pool{New: func() any { return new(draft) }}

type draft struct{ message, body, scratch []byte }

// message returns a signed request with head and body. now is the time according to the service's
// clock. The result is valid until the draft is reused.
func (ep *endpoint) message(d *draft, now time.Time, cred *aws.Credentials, f codec.Format, req *Request) []byte {
	d.body = req.appendTo(d.body[:0], f)
	return ep.signed(d, now, cred, callFor(f))
}

// signed is like message, for a body that is already in the draft.
func (ep *endpoint) signed(d *draft, now time.Time, cred *aws.Credentials, of call) []byte {
	at := ep.templates.signedAt(now)
	t := ep.templateFor(cred, at)
	signature := t.signature(d, of, at, sha256.Sum256(d.body))
	m := append(append(append(d.message[:0], t.text[of].head...), at...), t.authorization...)
	m = append(append(m, signature...), lengthField...)
	m = append(strconv.AppendInt(m, int64(len(d.body)), 10), "\r\n\r\n"...)
	d.message = append(m, d.body...)
	return d.message
}

const lengthField = "\r\nContent-Length: "

// signature returns the signature of a request in hexadecimal digits. sum is the hash of the body.
// The result is valid until the draft is reused.
func (t *template) signature(d *draft, of call, at string, sum [sha256.Size]byte) []byte {
	text := &t.text[of]
	b := append(append(append(d.scratch[:0], text.signed...), at...), text.after...)
	b = hex.AppendEncode(b, sum[:])
	sum = sha256.Sum256(b)
	signature := t.key.signature(&b, at, sum)
	n := len(signature)
	d.scratch = hex.AppendEncode(signature, signature)
	return d.scratch[n:]
}

// writable reports whether this package can write a request with these credentials. For other
// credentials, net/http returns the error.
func (ep *endpoint) writable(cred *aws.Credentials) bool {
	if t := ep.templates.now.Load(); t != nil && t.token == cred.SessionToken && t.key.id == cred.AccessKeyID {
		return true // the credentials were already checked
	}
	return plainText(cred.SessionToken) && plainText(cred.AccessKeyID) && plainText(ep.agent[0])
}

// plainText reports whether s is a valid value of a header field.
func plainText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// leanHost returns the endpoint's host for this package's HTTP client. It returns nil if net/http
// must make the calls.
func (c *Caller) leanHost(ep *endpoint) *http1.Host {
	if c.lean == nil || ep.reason != "" || ep.url.User != nil || ep.host != withoutDefaultPort(ep.url.Host, ep.url.Scheme) {
		return nil
	}
	if c.proxy != nil {
		through, err := c.proxy(&http.Request{Method: http.MethodPost, URL: cloneURL(ep.url), Host: ep.host, Header: make(http.Header)})
		if err != nil || through != nil {
			return nil
		}
	}
	host, err := c.lean.Host(ep.url.Scheme, ep.url.Host)
	if err != nil {
		return nil
	}
	return host
}

func cloneURL(u *url.URL) *url.URL {
	same := *u
	return &same
}
