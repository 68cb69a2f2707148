package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"testing"
	"time"
)

// cannedConn is a connection whose answer is available at once.
type cannedConn struct {
	net.Conn
	in   []byte
	step int // maximum bytes per read; 0 for any number
}

func (c *cannedConn) Read(p []byte) (int, error) {
	if len(c.in) == 0 {
		return 0, io.EOF
	}
	if c.step > 0 && len(p) > c.step {
		p = p[:c.step]
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *cannedConn) Write(p []byte) (int, error)      { return len(p), nil }
func (c *cannedConn) Close() error                     { return nil }
func (c *cannedConn) SetDeadline(time.Time) error      { return nil }
func (c *cannedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *cannedConn) SetWriteDeadline(time.Time) error { return nil }

// result is a client's interpretation of an answer.
type result struct {
	status int
	length int64
	header http.Header
	body   []byte
	kept   bool
}

func readHere(in []byte, step int) (result, error) {
	client := New(Options{DialContext: func(context.Context, string, string) (net.Conn, error) { return &cannedConn{in: in, step: step}, nil }})
	defer client.CloseIdle()
	h, err := client.Host("http", "h")
	if err != nil {
		return result{}, err
	}
	r, err := h.Do(context.Background(), []byte(request), true, Bound{})
	if err != nil {
		return result{}, err
	}
	got := result{status: r.Status, length: r.Length, header: r.Header()}
	for name := range got.header {
		if string(r.Field(name)) != got.header.Get(name) {
			return got, errors.New(name + " is two things")
		}
	}
	got.body, err = io.ReadAll(r)
	_ = r.Close()
	got.kept = len(h.idle) == 1
	return got, err
}

// readThere reads the answer with net/http.
func readThere(in []byte) (result, error) {
	b := bufio.NewReader(bytes.NewReader(in))
	for {
		resp, err := http.ReadResponse(b, &http.Request{Method: http.MethodPost})
		if err != nil {
			return result{}, err
		}
		if resp.StatusCode >= 100 && resp.StatusCode < 200 && resp.StatusCode != 101 {
			continue
		}
		want := result{status: resp.StatusCode, length: resp.ContentLength, header: resp.Header}
		want.body, err = io.ReadAll(resp.Body)
		want.kept = !resp.Close && b.Buffered() == 0
		return want, errors.Join(err, resp.Body.Close())
	}
}

// plainAnswer matches answers that the stricter rules do not affect.
var plainAnswer = regexp.MustCompile(`\AHTTP/1\.[01] [2-9][0-9][0-9] [a-zA-Z ]*\r\n(Content-Length: [0-9]{1,5}\r\n)?([A-BD-SU-Z][a-z]{0,10}: [a-z0-9 ]*\r\n){0,9}\r\n`)

// FuzzAnswers compares this package with net/http. If this package accepts an answer, net/http
// accepts it with the same result, in any fragmentation. If only net/http accepts an answer, this
// package is stricter: its error is ErrMalformed or ErrHeadTooLarge, and the answer does not match
// plainAnswer.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		small, small + small, "HTTP/1.1 100 Continue\r\n\r\n" + small, "HTTP/1.0 200 OK\r\n\r\nhello", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\nA: b\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nConnection: keep-alive, close\r\n\r\n", "HTTP/1.1 304\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nabc", "HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"HTTP/1.1 200 OK\r\nA B: c\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 101 X\r\n\r\n", "HTTP/1.1 200 OK\r\nTrailer: A\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		want, werr := readThere(in)
		got, err := readHere(in, 0)
		slow, serr := readHere(in, 1)
		if (err == nil) != (serr == nil) || got.status != slow.status || got.length != slow.length || !bytes.Equal(got.body, slow.body) && err == nil {
			t.Fatalf("%q\nat once: %+v, %v\nbyte by byte: %+v, %v", in, got, err, slow, serr)
		}
		strict := errors.Is(err, ErrMalformed) || errors.Is(err, ErrHeadTooLarge)
		switch {
		case err == nil && werr != nil:
			t.Fatalf("%q\nis %+v here, and there %v", in, got, werr)
		case err == nil:
			if got.status != want.status || got.length != want.length || !bytes.Equal(got.body, want.body) {
				t.Errorf("%q\nis %+v here, and there %+v", in, got, want)
			}
			if got.kept && !want.kept {
				t.Errorf("%q\nis kept here and not there", in)
			}
			for name, values := range want.header {
				if name != "Content-Length" && got.header.Get(name) != values[0] {
					t.Errorf("%q\n%s is %q, and there %q", in, name, got.header.Get(name), values[0])
				}
			}
		case werr == nil && !strict:
			t.Errorf("%q\nis %v here, and there %+v", in, err, want)
		case werr == nil && plainAnswer.Match(in):
			t.Errorf("%q\nis plain: %v", in, err)
		}
	})
}
