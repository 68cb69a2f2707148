package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/wire/codec"
)

// Ask and a later Read together have the result of a Read alone, and need the credentials once.
func TestAskedCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter, r seen, n int32)
		opts   Options
		calls  int32 // number of calls that the server receives for the asked call
		good   func(p *codec.Page, err error) bool
	}{
		{"a page", func(w http.ResponseWriter, _ seen, _ int32) { write(w, 200, codec.CBORType, cborPage(3, 10)) }, Options{}, 1,
			func(p *codec.Page, err error) bool { return err == nil && len(p.Records) == 3 && p.Last }},
		{"an error", func(w http.ResponseWriter, _ seen, n int32) {
			if n == 1 {
				write(w, 200, codec.CBORType, cborPage(3, 10))
				return
			}
			write(w, 400, codec.JSONType, `{"__type":"ExpiredIteratorException","message":"old"}`)
		}, Options{}, 1, func(_ *codec.Page, err error) bool {
			expired := (*types.ExpiredIteratorException)(nil)
			return errors.As(err, &expired)
		}},
		{"the format is refused: once more in the other", func(w http.ResponseWriter, r seen, n int32) {
			switch {
			case n == 1:
				write(w, 200, codec.CBORType, "\xa0")
			case r.Header.Get("Content-Type") == codec.JSONType:
				write(w, 200, codec.JSONType, `{"Records":[]}`)
			default:
				write(w, 415, "text/plain", "no CBOR")
			}
		}, Options{}, 2, func(p *codec.Page, err error) bool { return err == nil && p.Last }},
		{"the connection is closed: once more over another", func(w http.ResponseWriter, _ seen, n int32) {
			if n == 2 {
				panic(http.ErrAbortHandler)
			}
			write(w, 200, codec.CBORType, cborPage(3, 10))
		}, Options{}, 2, func(p *codec.Page, err error) bool { return err == nil && len(p.Records) == 3 }},
		{"in JSON", func(w http.ResponseWriter, _ seen, _ int32) { write(w, 200, codec.JSONType, `{"Records":[]}`) }, Options{Format: codec.JSON}, 1,
			func(p *codec.Page, err error) bool { return err == nil && p.Last }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var n, asked atomic.Int32
			server := newFake(t, func(w http.ResponseWriter, r seen) { c.answer(w, r, n.Add(1)) })
			client := fakeClient(server.URL, func(o *kinesis.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					asked.Add(1)
					return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
				})
			})
			caller := newCaller(t, client, c.opts)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var line Line
			req := Request{Iterator: "it", Line: &line}
			if caller.Ask(ctx, req) {
				t.Fatal("it was asked without a connection")
			}
			var p codec.Page
			if _, err := caller.Read(ctx, req, &p); err != nil {
				t.Fatal(err)
			}
			before, provided := n.Load(), asked.Load()
			if !caller.Ask(ctx, req) {
				t.Fatal("it was not asked")
			}
			if caller.Ask(ctx, req) {
				t.Error("the line was asked twice")
			}
			rest, err := caller.Read(ctx, req, &p)
			if rest != nil || !c.good(&p, err) {
				t.Errorf("%d records, %v", len(p.Records), err)
			}
			if calls := n.Load() - before; calls != c.calls {
				t.Errorf("%d calls, want %d", calls, c.calls)
			}
			if got := asked.Load() - provided; got != 1 {
				t.Errorf("%d times for credentials", got)
			}
			// The line still works afterwards.
			if _, err := caller.Read(ctx, req, &p); c.name == "a page" && err != nil {
				t.Error(err)
			}
			line.Park()
		})
	}
}

// Parking a line abandons its asked call. No other call gets the answer of that call.
func TestAskedAndParked(t *testing.T) {
	t.Parallel()
	server := newFake(t, func(w http.ResponseWriter, r seen) {
		write(w, 200, codec.CBORType, fmt.Sprintf("\xa1\x71NextShardIterator\x61%c", r.body[len(r.body)-1]))
	})
	caller := newCaller(t, fakeClient(server.URL), Options{})
	var line Line
	var p codec.Page
	for _, it := range []string{"a", "b", "c"} {
		req := Request{Iterator: it, Line: &line}
		if _, err := caller.Read(t.Context(), req, &p); err != nil || p.Next != it {
			t.Fatal(err, p.Next)
		}
		if !caller.Ask(t.Context(), Request{Iterator: "x", Line: &line}) {
			t.Fatal("it was not asked")
		}
		line.Park()
	}
}

// Ask sends nothing for calls through the SDK or net/http, and for calls without a line.
func TestWhatIsNotAsked(t *testing.T) {
	t.Parallel()
	server := newFake(t, func(w http.ResponseWriter, _ seen) { write(w, 200, codec.CBORType, "\xa0") })
	for name, c := range map[string]struct {
		opts   Options
		change func(*kinesis.Options)
	}{
		"under the SDK": {Options{Path: UnderSDK}, func(*kinesis.Options) {}},
		"the SDK's":     {Options{Path: PlainSDK, Format: codec.JSON}, func(*kinesis.Options) {}},
		"over net/http": {Options{}, func(o *kinesis.Options) {
			o.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		}},
	} {
		caller := newCaller(t, fakeClient(server.URL, c.change), c.opts)
		var line Line
		req := Request{Iterator: "it", Line: &line}
		var p codec.Page
		for range 2 {
			if caller.Splits() || caller.Ask(t.Context(), req) {
				t.Errorf("%s: it was asked", name)
			}
			if name == "the SDK's" {
				continue // it cannot read this server's answers
			}
			if _, err := caller.Read(t.Context(), req, &p); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if req.Line = nil; caller.Ask(t.Context(), req) {
			t.Errorf("%s: it was asked without a line", name)
		}
	}
}

// The timeout of an asked call begins with Ask.
func TestTheTimeOfAnAskedCall(t *testing.T) {
	t.Parallel()
	var conn *echo
	client := fakeClient("http://localhost", func(o *kinesis.Options) {
		o.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			conn = &echo{answer: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: 1\r\n\r\n\xa0", codec.CBORType)}
			return conn, nil
		}}}
	})
	caller := newCaller(t, client, Options{Timeout: time.Hour})
	var line Line
	var p codec.Page
	req := Request{Iterator: "it", Line: &line}
	if _, err := caller.Read(t.Context(), req, &p); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if !caller.Ask(t.Context(), req) {
		t.Fatal("it was not asked")
	}
	if at := line.asked.bound.At; at.Before(began.Add(time.Hour)) || at.After(time.Now().Add(time.Hour)) {
		t.Errorf("the call has until %v", at)
	}
	bound := line.asked.bound.At
	l := live(t.Context(), &req, time.Minute, nil)
	if !l.bound.At.Equal(bound) || line.asked != nil {
		t.Error("reading the answer began the call anew")
	}
	l.end()
	line.Park()
}

// This test counts the heap objects of an asked call.
func TestAllocationsOfAnAskedCall(t *testing.T) {
	body := cborPage(0, 0)
	conn := &echo{answer: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nX-Amzn-Requestid: 01234567-89ab-cdef-0123-456789abcdef\r\nContent-Length: %d\r\n\r\n%s", codec.CBORType, len(body), body)}
	client := fakeClient("http://localhost", func(o *kinesis.Options) {
		o.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
	})
	caller := newCaller(t, client, Options{Reuse: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var line Line
	var p codec.Page
	req := Request{Iterator: "it", Line: &line}
	if _, err := caller.Read(ctx, req, &p); err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(100, func() {
		if !caller.Ask(ctx, req) {
			t.Fatal("it was not asked")
		}
		if _, err := caller.Read(ctx, req, &p); err != nil {
			t.Fatal(err)
		}
		p.Release()
	})
	t.Logf("%v allocations", n)
	if n > atMost(8) { // 5
		t.Errorf("%v allocations", n)
	}
	line.Park()
}
