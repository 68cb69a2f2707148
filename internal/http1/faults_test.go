package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Each case is the answer of a server to two requests.
func TestServers(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\n"
	long := strings.Repeat("0123456789", 5000)
	for _, c := range []struct {
		name, text string // data that the server sends for a request; "|" is a pause
		hold       bool   // afterwards the connection stays open and silent
		body       string
		err        error
		keep       bool // the connection is reused
	}{
		{"a small answer", ok + "Content-Length: 5\r\n\r\nhello", true, "hello", nil, true},
		{"a large answer", ok + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(long), long), true, long, nil, true},
		{"an empty answer", ok + "Content-Length: 0\r\n\r\n", true, "", nil, true},
		{"in pieces", "HTT|P/1.1 2|00 OK\r|\nContent-Length: |5\r\n|\r|\nhe|llo", true, "hello", nil, true},
		{"interim answers first", "HTTP/1.1 100 Continue\r\n\r\n|HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" + ok + "Content-Length: 5\r\n\r\nhello", true, "hello", nil, true},
		{"nothing but interim answers", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 20), true, "", ErrHeadTooLarge, false},
		{"interim heads that are large together", strings.Repeat("HTTP/1.1 100 Continue\r\nA: "+long[:30000]+"\r\n\r\n", 3) + ok + "Content-Length: 5\r\n\r\nhello", true, "", ErrHeadTooLarge, false},
		{"another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", true, "", ErrMalformed, false},
		{"it announces a close and closes", ok + "Connection: close\r\nContent-Length: 5\r\n\r\nhello", false, "hello", nil, false},
		{"it announces a close and does not close", ok + "Connection: close\r\nContent-Length: 5\r\n\r\nhello", true, "hello", nil, false},
		{"the body ends with the connection", ok + "\r\n|hel|lo", false, "hello", nil, false},
		{"it ends in the head", ok + "Content-Le", false, "", io.ErrUnexpectedEOF, false},
		{"it ends after the head", ok + "Content-Length: 5\r\n\r\n", false, "", io.ErrUnexpectedEOF, false},
		{"it ends in the body", ok + "Content-Length: 5\r\n\r\nhel", false, "hel", io.ErrUnexpectedEOF, false},
		{"garbage follows", ok + "Content-Length: 5\r\n\r\nhello!", true, "hello", nil, false},
		{"another answer follows", ok + "Content-Length: 0\r\n\r\n" + ok + "Content-Length: 5\r\n\r\nwrong", true, "", nil, false},
		{"a large head", ok + "A: " + long + "\r\nContent-Length: 5\r\n\r\nhello", true, "hello", nil, true},
		{"a head without end", ok + strings.Repeat("A: "+long[:5000]+"\r\n", 20), true, "", ErrHeadTooLarge, false},
		{"a line without end", ok + "A: " + strings.Repeat(long, 2), true, "", ErrHeadTooLarge, false},
		{"not HTTP", "SSH-2.0-x\r\n", true, "", errAny, false},
		{"a bare LF, at once", ok + "Content-Length: 5\n", true, "", ErrMalformed, false},
		{"chunks", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", true, "hello", nil, true},
		{"chunks in pieces", ok + "Transfer-Encoding: chunked\r\n\r\n|2|\r|\nh|e\r|\n3\r\nllo|\r\n|0\r|\n\r|\n", true, "hello", nil, true},
		{"large chunks", ok + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n%X\r\n%s\r\n", len(long), long, len(long), long) + "0\r\n\r\n", true, long + long, nil, true},
		{"chunks behind a large head", ok + "A: " + long + "\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", true, "hello", nil, true},
		{"trailers", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\nContent-Length: 7\r\n\r\n", true, "hello", nil, true},
		{"trailers without end", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n" + strings.Repeat("A: b\r\n", 1000), true, "hello", ErrMalformed, false},
		{"broken trailers", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nHTTP/1.1 200 OK\r\n\r\n", true, "hello", ErrMalformed, false},
		{"it ends in a chunk", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", false, "hel", io.ErrUnexpectedEOF, false},
		{"it ends after a chunk", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello", false, "hello", io.ErrUnexpectedEOF, false},
		{"it ends between chunks", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", false, "hello", io.ErrUnexpectedEOF, false},
		{"it ends before a chunk", ok + "Transfer-Encoding: chunked\r\n\r\n", false, "", io.ErrUnexpectedEOF, false},
		{"it ends before the trailers' end", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", false, "hello", io.ErrUnexpectedEOF, false},
		{"a chunk longer than it says", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n", true, "hello", ErrMalformed, false},
		{"a chunk without a size", ok + "Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", true, "", ErrMalformed, false},
		{"a chunk's line with a bare LF", ok + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", true, "", ErrMalformed, false},
		{"a chunk's line without end", ok + "Transfer-Encoding: chunked\r\n\r\n5;" + long[:2000], true, "", ErrMalformed, false},
		{"more between chunks than in them", ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+long[:1000]+"\r\nx\r\n", 100), true, strings.Repeat("x", 16), ErrMalformed, false},
		{"garbage after chunks", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nHTTP", true, "hello", nil, false},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", true, "", nil, true},
		{"no content, and a body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", true, "", nil, false},
		{"a redirect", "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n", true, "", nil, true},
		{"nothing at all", "", false, "", io.EOF, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{serve: func(_ int, conn net.Conn) {
					r := bufio.NewReader(conn)
					for takeRequest(r) {
						for piece := range strings.SplitSeq(c.text, "|") {
							time.Sleep(time.Millisecond)
							if _, err := io.WriteString(conn, piece); err != nil {
								return
							}
						}
						if !c.hold {
							return
						}
					}
				}}
				h := s.host(t, Options{})
				for i := range 2 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					_, body, err := ask(ctx, h)
					if errors.Is(c.err, errAny) && err != nil {
						err = errAny
					}
					if body != c.body || !errors.Is(err, c.err) {
						t.Errorf("request %d: %.100q (%d bytes), %v; want %.100q (%d), %v", i+1, body, len(body), err, c.body, len(c.body), c.err)
					}
					cancel()
				}
				dials, live := s.counts()
				if wantDials, wantLive := map[bool]int{true: 1, false: 2}[c.keep], map[bool]int{true: 1, false: 0}[c.keep]; dials != wantDials || live != wantLive {
					t.Errorf("%d connections, %d kept; want %d and %d", dials, live, wantDials, wantLive)
				}
				h.client.CloseIdle()
				s.done.Wait()
				open, _, _ := h.held()
				if _, live := s.counts(); live != 0 || open != 0 {
					t.Errorf("%d connections are left, %d by the pool's count", live, open)
				}
			})
		})
	}
}

// A response that was not read to its end is dropped without waiting for the rest.
func TestCloseGivesUp(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a length": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello", "chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhello",
		"all but the last chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{serve: answers(text)}
			h := s.host(t, Options{})
			r, err := h.Do(t.Context(), []byte(request), true, Bound{})
			if err != nil {
				t.Fatal(name, err)
			}
			b := make([]byte, 5)
			if _, err := io.ReadFull(r, b); err != nil || string(b) != "hello" {
				t.Error(name, err)
			}
			began := time.Now()
			_ = r.Close()
			_ = r.Close()
			if _, err := r.Read(b); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: %v after Close", name, err)
			}
			if r.Field("Content-Length") != nil || len(r.Header()) != 0 {
				t.Errorf("%s: a head after Close", name)
			}
			s.done.Wait()
			open, _, _ := h.held()
			if _, live := s.counts(); live != 0 || open != 0 || time.Since(began) != 0 {
				t.Errorf("%s: %d connections are left, %d by the pool's count, after %v", name, live, open, time.Since(began))
			}
		})
	}
}

// If a kept connection was closed, the request uses one more connection and succeeds. It fails if
// it must not be sent twice, if its answer has begun, or if a new connection is closed as well.
func TestKeptConnections(t *testing.T) {
	t.Parallel()
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	one := func(then string) func(int, net.Conn) {
		return func(_ int, c net.Conn) {
			r := bufio.NewReader(c)
			if takeRequest(r) {
				_, _ = io.WriteString(c, answer)
			}
			if takeRequest(r) {
				_, _ = io.WriteString(c, then)
			}
		}
	}
	for _, c := range []struct {
		name   string
		serve  func(int, net.Conn)
		repeat bool
		err    error
		dials  int
	}{
		{"closed at the next request", one(""), true, nil, 2},
		{"closed at the next request, which may not be repeated", one(""), false, io.EOF, 1},
		{"closed in the next answer", one("H"), true, io.ErrUnexpectedEOF, 1},
		{"broken in the next answer", one("what?\r\n\r\n"), true, ErrMalformed, 1},
		{"closed for good", func(n int, c net.Conn) {
			if n == 0 {
				one("")(n, c)
			} else {
				takeRequest(bufio.NewReader(c))
			}
		}, true, io.EOF, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{serve: c.serve}
			h := s.host(t, Options{})
			if _, body, err := ask(t.Context(), h); err != nil || body != "hello" {
				t.Fatal(c.name, err)
			}
			r, err := h.Do(t.Context(), []byte(request), c.repeat, Bound{})
			if !errors.Is(err, c.err) {
				t.Errorf("%s: %v, want %v", c.name, err, c.err)
			}
			if err == nil {
				_ = r.Close()
			}
			if dials, _ := s.counts(); dials != c.dials {
				t.Errorf("%s: %d connections, want %d", c.name, dials, c.dials)
			}
			h.client.CloseIdle()
			s.done.Wait()
			open, _, _ := h.held()
			if _, live := s.counts(); live != 0 || open != 0 {
				t.Errorf("%s: %d connections are left", c.name, live)
			}
		})
	}
}

// late is a connection on which the context ends just before a deadline is set. The deadline
// overwrites the interruption.
type late struct {
	net.Conn
	cancel func()
}

func (c *late) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		c.cancel()
		synctest.Wait() // the interruption has happened
	}
	return c.Conn.SetReadDeadline(at)
}

func TestInterruptionsAreNotOverwritten(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"HeaderTimeout": {HeaderTimeout: time.Minute}, "ReadTimeout": {ReadTimeout: time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{serve: func(_ int, c net.Conn) { _, _ = io.Copy(io.Discard, c) }}
			h := s.host(t, o)
			ctx, cancel := context.WithCancel(t.Context())
			h.client.opts.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := s.dial(ctx, network, addr)
				return &late{c, cancel}, err
			}
			began := time.Now()
			if _, _, err := ask(ctx, h); !errors.Is(err, context.Canceled) || time.Since(began) != 0 {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			s.done.Wait()
		})
	}
}

// Each wait ends when its time is over or the context ends. The error shows which of them happened.
func TestEveryWaitEnds(t *testing.T) {
	t.Parallel()
	lost := errors.New("the lease is lost")
	never := func(_ int, c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	half := func(_ int, c net.Conn) {
		if takeRequest(bufio.NewReader(c)) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
			_, _ = io.Copy(io.Discard, c)
		}
	}
	// The server reads nothing, so the request cannot even be sent.
	deaf := func(_ int, c net.Conn) { time.Sleep(time.Hour) }
	slow := func(_ int, c net.Conn) {
		if takeRequest(bufio.NewReader(c)) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
			for range 500 {
				time.Sleep(time.Second)
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
			}
		}
	}
	for _, c := range []struct {
		name  string
		serve func(int, net.Conn)
		o     Options
		after time.Duration // time until the context ends; 0 for never
		took  time.Duration
		want  string // "" for the cause of the context
	}{
		{"the request does not go out", deaf, Options{}, 7 * time.Second, 7 * time.Second, ""},
		{"no answer", never, Options{}, 7 * time.Second, 7 * time.Second, ""},
		{"half an answer", half, Options{}, 7 * time.Second, 7 * time.Second, ""},
		{"no answer within HeaderTimeout", never, Options{HeaderTimeout: 3 * time.Second}, 7 * time.Second, 3 * time.Second, "no head of an answer within 3s"},
		{"the context ends before HeaderTimeout", never, Options{HeaderTimeout: 30 * time.Second}, 7 * time.Second, 7 * time.Second, ""},
		{"the body has more than HeaderTimeout", half, Options{HeaderTimeout: 3 * time.Second}, 7 * time.Second, 7 * time.Second, ""},
		{"nothing comes for ReadTimeout", never, Options{ReadTimeout: 3 * time.Second}, 7 * time.Second, 3 * time.Second, "no byte of the answer within 3s"},
		{"nothing more comes for ReadTimeout", half, Options{ReadTimeout: 3 * time.Second}, 7 * time.Second, 3 * time.Second, "no byte of the answer within 3s"},
		{"something comes within each ReadTimeout", slow, Options{ReadTimeout: 3 * time.Second}, 100500 * time.Millisecond, 100500 * time.Millisecond, ""},
		{"no answer within Timeout", never, Options{Timeout: 3 * time.Second}, 7 * time.Second, 3 * time.Second, "no whole answer within 3s"},
		{"half an answer within Timeout", half, Options{Timeout: 3 * time.Second}, 0, 3 * time.Second, "no whole answer within 3s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{serve: c.serve}
				h := s.host(t, c.o)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.after > 0 {
					time.AfterFunc(c.after, func() { cancel(lost) })
				}
				began := time.Now()
				_, _, err := ask(ctx, h)
				var timeout net.Error
				switch {
				case err == nil || time.Since(began) != c.took:
					t.Errorf("%v after %v, want %v", err, time.Since(began), c.took)
				case c.want == "" && !errors.Is(err, lost):
					t.Error(err)
				case c.want != "" && (!strings.Contains(err.Error(), c.want) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout()):
					t.Error(err)
				}
				open, _, _ := h.held()
				if dials, live := s.counts(); dials != 1 || live != 0 || open != 0 {
					t.Errorf("%d connections, %d left, %d by the pool's count", dials, live, open)
				}
				time.Sleep(2 * time.Hour)
				s.done.Wait()
			})
		})
	}
}
