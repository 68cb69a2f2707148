package wire

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/wire/codec"
)

// echo is a connection that returns the same answer after each write.
type echo struct {
	answer, left string
}

func (e *echo) Write(p []byte) (int, error) {
	e.left = e.answer
	return len(p), nil
}

func (e *echo) Read(p []byte) (int, error) {
	if e.left == "" {
		return 0, io.EOF
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

func (*echo) Close() error                     { return nil }
func (*echo) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "echo"} }
func (*echo) RemoteAddr() net.Addr             { return &net.UnixAddr{Name: "echo"} }
func (*echo) SetDeadline(time.Time) error      { return nil }
func (*echo) SetReadDeadline(time.Time) error  { return nil }
func (*echo) SetWriteDeadline(time.Time) error { return nil }

// This test counts the heap objects of a whole call with this package's HTTP client, from the
// request to the page.
func TestAllocationsOfALeanCall(t *testing.T) {
	for _, records := range []int{0, 10, 1000} {
		for _, c := range []struct {
			opts  Options
			parts bool
			most  float64
		}{
			{Options{Reuse: true}, false, 14},
			{Options{Reuse: true}, true, 18}, // each of three parts needs three objects
			{Options{}, false, 16},
		} {
			body := cborPage(records, 1024)
			conn := &echo{answer: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nX-Amzn-Requestid: 01234567-89ab-cdef-0123-456789abcdef\r\nContent-Length: %d\r\n\r\n%s", codec.CBORType, len(body), body)}
			client := fakeClient("http://localhost", func(o *kinesis.Options) {
				o.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
			})
			caller := newCaller(t, client, c.opts)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var line *Line // a line needs no more objects than no line
			if c.parts {
				line = new(Line)
			}
			n := testing.AllocsPerRun(100, func() {
				var p codec.Page
				var rest *Rest
				var err error
				if c.parts {
					rest, err = caller.Read(ctx, Request{Iterator: "it", Line: line}, &p)
				} else {
					err = caller.GetRecords(ctx, Request{Iterator: "it"}, &p)
				}
				n := len(p.Records)
				for err == nil && rest != nil && !p.Last {
					err = rest.Next(&p)
					n += len(p.Records)
				}
				if err != nil || n != records {
					t.Fatal(err, n)
				}
				p.Release()
			})
			t.Logf("%d records, reuse %v, parts %v: %v allocations", records, c.opts.Reuse, c.parts, n)
			if n > atMost(c.most) {
				t.Errorf("%d records, reuse %v, parts %v: %v allocations, want at most %v", records, c.opts.Reuse, c.parts, n, c.most)
			}
			caller.Close()
		}
	}
}
