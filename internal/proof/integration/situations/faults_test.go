package situations_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fault is how a proxy changes the answer to a call of Kinesis. The zero value changes nothing.
type fault struct {
	code string        // the error of the answer
	text string        // its message
	age  time.Duration // added to the age of records that are at the tip
}

// proxy is between some processes and weir local. It can answer in place of Kinesis, and refuse
// connections.
type proxy struct {
	server *httptest.Server

	mu     sync.Mutex // guards the fields below
	faults func(action, body string) fault
	down   bool
}

// newProxy starts a proxy that forwards calls to a URL.
func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	// A connection that is kept may be closed while a call is being sent, which fails the call.
	transport := &http.Transport{DisableKeepAlives: true}
	p := &proxy{}
	forward := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			f, _ := r.Request.Context().Value(faultKey{}).(fault)
			if f.age == 0 || r.StatusCode != http.StatusOK {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = older(body, f.age)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			r.Header.Del("X-Amz-Crc32")
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway) // the client has left, or the test ends
		},
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has left
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		f, down := p.of(action, string(body))
		switch {
		case down:
			panic(http.ErrAbortHandler) // closes the connection
		case f.code != "":
			f.answer(w, r.Header.Get("Content-Type"))
		default:
			forward.ServeHTTP(w, r.WithContext(withFault(r.Context(), f)))
		}
	}))
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
		transport.CloseIdleConnections()
	})
	return p
}

// of returns the present fault of an action.
func (p *proxy) of(action, body string) (f fault, down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults != nil {
		f = p.faults(action, body)
	}
	return f, p.down
}

// fail sets the faults from now on.
func (p *proxy) fail(faults func(action, body string) fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults
}

// cut closes all connections, and each new one at its first call.
func (p *proxy) cut() {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	p.server.CloseClientConnections()
}

// answer writes an error of Kinesis in the format of the call.
func (f fault) answer(w http.ResponseWriter, format string) {
	body := fmt.Sprintf(`{"__type":%q,"message":%q}`, f.code, f.text)
	if strings.Contains(format, "cbor") {
		body = "\xa2" + cborText("__type") + cborText(f.code) + cborText("message") + cborText(f.text)
	}
	w.Header().Set("Content-Type", format)
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, body) // the client may have left
}

func cborText(text string) string {
	return string(binary.BigEndian.AppendUint32([]byte{0x7a}, uint32(len(text)))) + text //nolint:gosec // it is short
}

var behindInJSON = regexp.MustCompile(`"MillisBehindLatest":(\d+)`)

// older adds an age to MillisBehindLatest in an answer of GetRecords.
func older(body []byte, age time.Duration) []byte {
	if m := behindInJSON.FindSubmatchIndex(body); m != nil {
		n, _ := strconv.ParseInt(string(body[m[2]:m[3]]), 10, 64)
		was, rest := body[:m[2]], body[m[3]:]
		return append(strconv.AppendInt(bytes.Clone(was), n+age.Milliseconds(), 10), rest...)
	}
	at := bytes.Index(body, []byte("MillisBehindLatest"))
	if at < 0 {
		return body
	}
	at += len("MillisBehindLatest")
	n, size := uint64(body[at]), 1
	if n > 23 { // the number has its own bytes, as many as the lowest bits of the first byte say
		size += 1 << (n - 24)
		n = 0
		for _, b := range body[at+1 : at+size] {
			n = n<<8 | uint64(b)
		}
	}
	number := binary.BigEndian.AppendUint64([]byte{0x1b}, n+uint64(age.Milliseconds())) //nolint:gosec // it is positive
	return append(append(bytes.Clone(body[:at]), number...), body[at+size:]...)
}

// faultKey is the key of a call's fault in its context.
type faultKey struct{}

func withFault(ctx context.Context, f fault) context.Context {
	return context.WithValue(ctx, faultKey{}, f)
}
