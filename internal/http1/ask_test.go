package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// answered reads the answer to a request that was sent with Ask.
func answered(ctx context.Context, l *Line) (body string, again bool, err error) {
	r, again, err := l.Answer(ctx)
	if err != nil {
		return "", again, err
	}
	all, err := io.ReadAll(r)
	return string(all), again, errors.Join(err, r.Close())
}

// kept returns lines that each have a connection.
func kept(t *testing.T, ctx context.Context, h *Host, n int) []*Line {
	t.Helper()
	lines := make([]*Line, n)
	var open []*Response
	for i := range lines {
		lines[i] = new(Line)
		r, err := lines[i].Do(ctx, h, []byte(request), true, Bound{})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, r)
	}
	for _, r := range open {
		_, _ = io.ReadAll(r)
		_ = r.Close()
	}
	return lines
}

// Requests are sent on many lines before any answer is read, so that the answers arrive together.
// Only existing connections are used.
func TestManyAreAskedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: slowly(time.Second)}
		h := s.host(t, Options{})
		if new(Line).Ask(t.Context(), h, []byte(request), Bound{}) {
			t.Error("something was asked without a connection")
		}
		if dials, _ := s.counts(); dials != 0 {
			t.Errorf("%d connections were made to ask", dials)
		}
		lines := kept(t, t.Context(), h, 10)
		lines[3].Park() // Ask then takes one from the pool
		began := time.Now()
		for _, l := range lines {
			if !l.Ask(t.Context(), h, []byte(request), Bound{}) {
				t.Fatal("a line was not asked")
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("asking took %v", took)
		}
		for _, l := range lines {
			if body, again, err := answered(t.Context(), l); body != "hello" || again || err != nil {
				t.Error(body, again, err)
			}
			if _, _, err := l.Answer(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("a second answer to one request: %v", err)
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("ten answers that take a second took %v", took)
		}
		if dials, live := s.counts(); dials != 10 || live != 10 {
			t.Errorf("%d connections were made, %d are left", dials, live)
		}
		for _, l := range lines {
			l.Park()
		}
		h.client.CloseIdle()
		s.done.Wait()
	})
}

// An event between a request and its answer ends the call as it would without Ask. Time limits
// count from the request.
func TestBetweenRequestAndAnswer(t *testing.T) {
	t.Parallel()
	late, gone := errors.New("late"), errors.New("gone")
	once := func(then func(net.Conn, *bufio.Reader)) func(int, net.Conn) {
		return func(_ int, c net.Conn) {
			r := bufio.NewReader(c)
			if takeRequest(r) {
				_, _ = io.WriteString(c, small)
			}
			then(c, r)
		}
	}
	silent := once(func(c net.Conn, _ *bufio.Reader) { _, _ = io.Copy(io.Discard, c) })
	for _, c := range []struct {
		name  string
		serve func(int, net.Conn)
		o     Options
		bound time.Duration
		cut   time.Duration // when the context ends
		want  error
		took  time.Duration // time since the request
		again bool
	}{
		{"nothing comes", silent, Options{}, 10 * time.Second, time.Hour, late, 10 * time.Second, false},
		{"nothing comes, and the client has its own bound", silent, Options{Timeout: 7 * time.Second}, 10 * time.Second, time.Hour,
			context.DeadlineExceeded, 7 * time.Second, false},
		{"no head", silent, Options{HeaderTimeout: 6 * time.Second}, 10 * time.Second, time.Hour, context.DeadlineExceeded, 6 * time.Second, false},
		{"the context ends before the answer is read", silent, Options{}, 10 * time.Second, time.Second, gone, 5 * time.Second, false},
		{"the context ends while it is read", silent, Options{}, 10 * time.Second, 8 * time.Second, gone, 8 * time.Second, false},
		{"the connection is closed after the request", once(func(_ net.Conn, r *bufio.Reader) { takeRequest(r) }), Options{},
			10 * time.Second, time.Hour, io.EOF, 5 * time.Second, true},
		{"the connection is closed after the request, and the context has ended", once(func(_ net.Conn, r *bufio.Reader) { takeRequest(r) }), Options{},
			10 * time.Second, time.Second, gone, 5 * time.Second, false},
		{"the connection is closed within the answer", once(func(c net.Conn, r *bufio.Reader) {
			takeRequest(r)
			_, _ = io.WriteString(c, small[:20])
		}), Options{}, 10 * time.Second, time.Hour, io.ErrUnexpectedEOF, 5 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{serve: c.serve}
				h := s.host(t, c.o)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				l := kept(t, ctx, h, 1)[0]
				began := time.Now()
				time.AfterFunc(c.cut, func() { cancel(gone) })
				if !l.Ask(ctx, h, []byte(request), Bound{At: began.Add(c.bound), Why: late}) {
					t.Fatal("it was not asked")
				}
				time.Sleep(5 * time.Second)
				_, again, err := answered(ctx, l)
				if took := time.Since(began); !errors.Is(err, c.want) || again != c.again || took != c.took {
					t.Errorf("%v, again %v, after %v", err, again, took)
				}
				s.done.Wait()
				if open, _, _ := h.held(); open != 0 {
					t.Errorf("%d connections are left", open)
				}
			})
		})
	}
}

// If a connection was closed while it was unused, Ask cannot use it and drops it.
func TestAClosedConnectionIsNotAsked(t *testing.T) {
	t.Parallel()
	for _, parked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{serve: func(_ int, c net.Conn) {
				if takeRequest(bufio.NewReader(c)) {
					_, _ = io.WriteString(c, small)
				}
			}}
			h := s.host(t, Options{})
			l := kept(t, t.Context(), h, 1)[0]
			if parked {
				l.Park()
			}
			synctest.Wait()
			if l.Ask(t.Context(), h, []byte(request), Bound{}) {
				t.Error("it was asked")
			}
			if open, _, _ := h.held(); open != 0 {
				t.Errorf("%d connections are left", open)
			}
			s.done.Wait()
		})
	}
}

// A line whose answer is unread loses its connection, whatever the line does next. No other caller
// may get the answer.
func TestAnAnswerThatIsNotRead(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(t *testing.T, l *Line, h *Host){
		"parked": func(_ *testing.T, l *Line, _ *Host) { l.Park() },
		"asked again": func(t *testing.T, l *Line, h *Host) {
			if l.Ask(t.Context(), h, []byte(request), Bound{}) {
				t.Error("there was no connection to ask on")
			}
		},
		"asked in one": func(t *testing.T, l *Line, h *Host) {
			if body, err := over(t.Context(), l, h, Bound{}); body != "hello" || err != nil {
				t.Error(body, err)
			}
			l.Park()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{serve: slowly(time.Second)}
				h := s.host(t, Options{})
				l := kept(t, t.Context(), h, 1)[0]
				if !l.Ask(t.Context(), h, []byte(request), Bound{}) {
					t.Fatal("it was not asked")
				}
				next(t, l, h)
				if dials, live := s.counts(); live != dials-1 {
					t.Errorf("%d of %d connections are left", live, dials)
				}
				h.client.CloseIdle()
				s.done.Wait()
				if open, _, _ := h.held(); open != 0 {
					t.Errorf("%d connections are left", open)
				}
			})
		})
	}
}
