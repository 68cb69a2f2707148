package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// over sends a request over a line.
func over(ctx context.Context, l *Line, h *Host, b Bound) (body string, err error) {
	r, err := l.Do(ctx, h, []byte(request), true, b)
	if err != nil {
		return "", err
	}
	all, err := io.ReadAll(r)
	return string(all), errors.Join(err, r.Close())
}

// A line keeps its connection between requests. It returns the connection when it is parked, when
// its context has ended, or for a request with another host or context. The connection is reused
// unless it was or will be interrupted.
func TestALineKeepsItsConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		then         func(t *testing.T, ctx context.Context, l *Line, h, other *Host, end context.CancelFunc)
		idle, closed int
	}{
		{"it goes on", func(*testing.T, context.Context, *Line, *Host, *Host, context.CancelFunc) {}, 0, 0},
		{"it is parked", func(_ *testing.T, _ context.Context, l *Line, _, _ *Host, _ context.CancelFunc) {
			l.Park()
			l.Park()
		}, 1, 0},
		{"another host", func(t *testing.T, ctx context.Context, l *Line, _, other *Host, _ context.CancelFunc) {
			if body, err := over(ctx, l, other, Bound{}); body != "hello" || err != nil {
				t.Error(body, err)
			}
		}, 1, 0},
		{"its context ends", func(t *testing.T, _ context.Context, l *Line, h, _ *Host, end context.CancelFunc) {
			end()
			synctest.Wait()
			r, err := l.Do(t.Context(), h, []byte(request), false, Bound{})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(r)
			_ = r.Close()
		}, 0, 1},
		{"its context ends while it is asked in another", func(t *testing.T, _ context.Context, l *Line, h, _ *Host, end context.CancelFunc) {
			time.AfterFunc(time.Second/2, end)
			// This request has another context and uses the same connection.
			if body, err := over(t.Context(), l, h, Bound{}); body != "hello" || err != nil {
				t.Error(body, err)
			}
		}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, s2 := &script{serve: slowly(time.Second)}, &script{serve: answers(small)}
				h, other := s.host(t, Options{}), s2.host(t, Options{})
				ctx, end := context.WithCancel(t.Context())
				defer end()
				var l Line
				for range 3 {
					if body, err := over(ctx, &l, h, Bound{}); body != "hello" || err != nil {
						t.Fatal(body, err)
					}
					if open, idle, _ := h.held(); open != 1 || idle != 0 {
						t.Errorf("%d connections, %d of them given back, between two requests", open, idle)
					}
				}
				c.then(t, ctx, &l, h, other, end)
				if _, idle, _ := h.held(); idle != c.idle {
					t.Errorf("%d connections were given back, want %d", idle, c.idle)
				}
				if dials, _ := s.counts(); dials != 1+c.closed {
					t.Errorf("%d connections were made, want %d", dials, 1+c.closed)
				}
				l.Park()
				for _, h := range []*Host{h, other} {
					h.client.CloseIdle()
				}
				s.done.Wait()
				s2.done.Wait()
				if open, _, _ := h.held(); open != 0 {
					t.Errorf("%d connections are left", open)
				}
			})
		})
	}
}

// The end of the context interrupts a request over a line's kept connection, and the connection is
// not reused. This is also true if the context ends just before the request's deadline is set.
func TestALineIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{serve: func(_ int, c net.Conn) {
				if takeRequest(bufio.NewReader(c)) {
					_, _ = io.WriteString(c, small)
				}
				_, _ = io.Copy(io.Discard, c)
			}}
			h := s.host(t, Options{})
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := errors.New("gone")
			first := true
			h.client.opts.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := s.dial(ctx, network, addr)
				return &lateBound{c, func() {
					if before && !first {
						cancel(gone)
						synctest.Wait() // the interruption has happened
					}
				}}, err
			}
			var l Line
			if _, err := over(ctx, &l, h, Bound{At: time.Now().Add(time.Minute)}); err != nil {
				t.Fatal(err)
			}
			first = false
			if !before {
				time.AfterFunc(time.Second, func() { cancel(gone) })
			}
			began := time.Now()
			_, err := over(ctx, &l, h, Bound{At: time.Now().Add(time.Hour)})
			if took := time.Since(began); !errors.Is(err, gone) || before && took != 0 || !before && took != time.Second {
				t.Errorf("%v after %v", err, took)
			}
			l.Park()
			s.done.Wait()
			if open, _, _ := h.held(); open != 0 {
				t.Errorf("%d connections are left", open)
			}
		})
	}
}

// lateBound is a connection that calls a function just before a deadline is set.
type lateBound struct {
	net.Conn
	before func()
}

func (c *lateBound) SetDeadline(at time.Time) error {
	if at.After(mixed) {
		c.before()
	}
	return c.Conn.SetDeadline(at)
}

// deaf is a connection that does not support deadlines.
type deaf struct{ net.Conn }

func (deaf) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (deaf) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (deaf) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// A bound ends a call at its time, or earlier by at most a sixteenth of the time that the call had.
// The bound of one call does not limit later calls on the same connection.
func TestBounds(t *testing.T) {
	t.Parallel()
	why := errors.New("too late")
	never := func(_ int, c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	half := func(_ int, c net.Conn) {
		if takeRequest(bufio.NewReader(c)) {
			_, _ = io.WriteString(c, small[:len(small)-2])
		}
		never(0, c)
	}
	third := func(_ int, c net.Conn) { // no answer after the third request
		r := bufio.NewReader(c)
		for range 2 {
			if takeRequest(r) {
				_, _ = io.WriteString(c, small)
			}
		}
		never(0, c)
	}
	for _, c := range []struct {
		name  string
		serve func(int, net.Conn)
		asked int // number of answered requests
		body  string
	}{
		{"never an answer", never, 0, ""}, {"half an answer", half, 0, "hel"}, {"not the third time", third, 2, ""},
	} {
		for _, knows := range []bool{true, false} {
			for _, o := range []Options{{}, {HeaderTimeout: time.Minute, ReadTimeout: time.Minute}} {
				synctest.Test(t, func(t *testing.T) {
					s := &script{serve: c.serve}
					h := s.host(t, o)
					if !knows {
						h.client.opts.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
							c, err := s.dial(ctx, network, addr)
							return deaf{c}, err
						}
						if o.HeaderTimeout > 0 {
							return // these connections end at once
						}
					}
					var l Line
					const bound = 16 * time.Second
					for range c.asked {
						if body, err := over(t.Context(), &l, h, Bound{At: time.Now().Add(bound), Why: why}); err != nil || body != "hello" {
							t.Fatal(c.name, body, err)
						}
						time.Sleep(fresh)
					}
					began := time.Now()
					body, err := over(t.Context(), &l, h, Bound{At: began.Add(bound), Why: why})
					took := time.Since(began)
					if !errors.Is(err, why) || body != c.body || took > bound || took < bound-bound/16 || c.asked == 0 && took != bound {
						t.Errorf("%s, deadlines %v: %q, %v after %v", c.name, knows, body, err, took)
					}
					s.done.Wait()
					if open, _, _ := h.held(); open != 0 {
						t.Errorf("%s: %d connections are left", c.name, open)
					}
				})
			}
		}
	}
}

// A bound also applies to the wait for a place in the pool, and to making the connection. A bound
// that passed while a connection was kept has no effect, in the pool and in a line.
func TestBoundsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	why := errors.New("too late")
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: answers(small)}
		h := s.host(t, Options{MaxConns: 1, IdleTimeout: time.Hour})
		r, err := h.Do(t.Context(), []byte(request), true, Bound{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := h.Do(t.Context(), []byte(request), true, Bound{At: began.Add(time.Second), Why: why}); !errors.Is(err, why) || time.Since(began) != time.Second {
			t.Errorf("%v after %v in the queue", err, time.Since(began))
		}
		if _, err := h.Do(t.Context(), []byte(request), true, Bound{At: time.Now().Add(time.Second)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v where the bound says nothing", err)
		}
		if h.wanted() {
			t.Error("who has left is waited for")
		}
		_, _ = io.ReadAll(r)
		_ = r.Close()
		var l Line
		for _, d := range []time.Duration{time.Second, 0, 2 * time.Second, time.Second, 0} {
			var b Bound
			if d > 0 {
				b = Bound{At: time.Now().Add(d), Why: why}
			}
			if body, err := over(t.Context(), &l, h, b); err != nil || body != "hello" {
				t.Errorf("bound %v: %q, %v", d, body, err)
			}
			time.Sleep(5 * time.Second)
			if d == 2*time.Second {
				l.Park()
				time.Sleep(5 * time.Second)
			}
		}
		if dials, _ := s.counts(); dials != 1 {
			t.Errorf("%d connections", dials)
		}
		l.Park()
		h.client.CloseIdle()
		s.done.Wait()

		h.client.opts.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began = time.Now()
		if _, err := h.Do(t.Context(), []byte(request), true, Bound{At: began.Add(time.Second), Why: why}); !errors.Is(err, why) || time.Since(began) != time.Second {
			t.Errorf("%v after %v of dialing", err, time.Since(began))
		}
		silent := &script{serve: func(_ int, c net.Conn) { _, _ = io.Copy(io.Discard, c) }}
		if _, err := silent.host(t, Options{}).Do(t.Context(), []byte(request), true, Bound{At: time.Now().Add(time.Second)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v where the bound says nothing", err)
		}
		silent.done.Wait()
	})
}

// A series of requests sets few deadlines, because each costs the system a timer.
func TestFewDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: slowly(time.Millisecond)}
		set := 0
		h := s.host(t, Options{})
		h.client.opts.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := s.dial(ctx, network, addr)
			return &lateBound{c, func() { set++ }}, err
		}
		var l Line
		for range 1000 { // one second
			if _, err := over(t.Context(), &l, h, Bound{At: time.Now().Add(8 * time.Second), Why: io.ErrNoProgress}); err != nil {
				t.Fatal(err)
			}
		}
		if set < 2 || set > 3 {
			t.Errorf("%d deadlines for a thousand requests", set)
		}
		l.Park()
		h.client.CloseIdle()
		s.done.Wait()
	})
}

// Until gives the rest of an answer more time than its beginning had, and limits that time.
func TestUntil(t *testing.T) {
	t.Parallel()
	first, then := errors.New("the beginning was late"), errors.New("the rest was late")
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: func(_ int, c net.Conn) {
			if takeRequest(bufio.NewReader(c)) {
				for _, piece := range []string{small[:len(small)-5], "h", "e", "l", "l"} {
					_, _ = io.WriteString(c, piece)
					time.Sleep(4 * time.Second)
				}
			}
			_, _ = io.Copy(io.Discard, c)
		}}
		h := s.host(t, Options{})
		r, err := h.Do(t.Context(), []byte(request), true, Bound{At: time.Now().Add(5 * time.Second), Why: first})
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 5)
		for i := range 4 {
			if n, err := r.Read(b[i : i+1]); n != 1 || err != nil {
				t.Fatal(i, n, err)
			}
			r.Until(Bound{At: time.Now().Add(5 * time.Second), Why: then})
		}
		began := time.Now()
		if _, err := r.Read(b); !errors.Is(err, then) || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		_ = r.Close()
		r.Until(Bound{})
		s.done.Wait()
	})
}

// A bound for the rest of an answer does not undo the end of the context.
func TestUntilAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: func(_ int, c net.Conn) {
			if takeRequest(bufio.NewReader(c)) {
				_, _ = io.WriteString(c, small[:len(small)-5])
			}
			_, _ = io.Copy(io.Discard, c)
		}}
		h := s.host(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		r, err := h.Do(ctx, []byte(request), true, Bound{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		r.Until(Bound{At: time.Now().Add(time.Hour), Why: io.ErrNoProgress})
		began := time.Now()
		if _, err := r.Read(make([]byte, 5)); !errors.Is(err, context.Canceled) || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		_ = r.Close()
		s.done.Wait()
	})
}

// The bound of a finished call does not end a connection, even if bounds are enforced by closing
// connections.
func TestABoundIsLifted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: answers(small)}
		h := s.host(t, Options{})
		h.client.opts.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := s.dial(ctx, network, addr)
			return deaf{c}, err
		}
		for range 3 {
			r, err := h.Do(t.Context(), []byte(request), false, Bound{At: time.Now().Add(time.Second), Why: io.ErrNoProgress})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(r)
			_ = r.Close()
			time.Sleep(2 * time.Second)
		}
		h.client.CloseIdle()
		s.done.Wait()
	})
}

// If there are fewer connections than lines, the lines take turns.
func TestLinesShareConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: slowly(time.Second)}
		h := s.host(t, Options{MaxConns: 2})
		var wg sync.WaitGroup
		began := time.Now()
		for i := range 6 {
			wg.Go(func() {
				var l Line
				defer l.Park()
				for n := range 3 {
					if body, err := over(t.Context(), &l, h, Bound{}); err != nil || body != "hello" {
						t.Error(i, body, err)
					}
					if took := time.Since(began); took > time.Duration(n+1)*3*time.Second {
						t.Errorf("line %d has had its request %d after %v: others do not let go", i, n, took)
					}
				}
			})
		}
		wg.Wait()
		if dials, _ := s.counts(); dials != 2 || h.wanted() {
			t.Errorf("%d connections", dials)
		}
		h.client.CloseIdle()
		s.done.Wait()
	})
}

// A line detects that the server closed its connection. If the connection was unused for a while, a
// check detects it. Otherwise the request detects it, and is repeated.
func TestALinesConnectionIsClosed(t *testing.T) {
	t.Parallel()
	for _, longAgo := range []bool{false, true} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 2 {
				c, err := listener.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				if takeRequest(bufio.NewReader(c)) {
					_, _ = io.WriteString(c, small)
				}
				_ = c.Close()
				if i == 0 {
					close(closed)
				}
			}
		})
		h, err := New(Options{}).Host("http", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		var l Line
		for i := range 2 {
			r, err := l.Do(t.Context(), h, []byte(request), !longAgo, Bound{})
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			if body, err := io.ReadAll(r); err != nil || string(body) != "hello" {
				t.Errorf("request %d: %q, %v", i, body, err)
			}
			_ = r.Close()
			if i == 0 {
				<-closed
				if longAgo {
					l.c.idle = l.c.idle.Add(-time.Minute)
				}
			}
		}
		l.Park()
		wg.Wait()
		h.client.CloseIdle()
		_ = listener.Close()
	}
}
