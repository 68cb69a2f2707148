package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const small = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

// slowly is a server that answers each request after d.
func slowly(d time.Duration) func(int, net.Conn) {
	return func(_ int, c net.Conn) {
		r := bufio.NewReader(c)
		for takeRequest(r) {
			time.Sleep(d)
			if _, err := io.WriteString(c, small); err != nil {
				return
			}
		}
	}
}

// Callers wait for a connection in order, and at most MaxConns are served at the same time. A
// caller that stops waiting does not affect the callers behind it.
func TestCallersWaitInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: slowly(time.Second)}
		h := s.host(t, Options{MaxConns: 2})
		gone := errors.New("gone")
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 9 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if i == 3 { // it waits behind another caller
					time.AfterFunc(500*time.Millisecond, func() { cancel(gone) })
				}
				_, body, err := ask(ctx, h)
				if i == 3 {
					if !errors.Is(err, gone) || time.Since(began) != 503*time.Millisecond {
						t.Errorf("the one that gave up: %v after %v", err, time.Since(began))
					}
					return
				}
				turn := i
				if i > 3 {
					turn--
				}
				want := time.Duration(turn/2+1) * time.Second
				if took := time.Since(began).Round(time.Second); err != nil || body != "hello" || took != want {
					t.Errorf("request %d: %v after %v, want %v", i, err, took, want)
				}
			})
		}
		wg.Wait()
		open, idle, _ := h.held()
		if dials, live := s.counts(); dials != 2 || live != 2 || open != 2 || idle != 2 {
			t.Errorf("%d connections, %d live, %d by count", dials, live, open)
		}
		h.client.CloseIdle()
		s.done.Wait()
	})
}

// If dialling fails or an answer breaks off, the released place goes to a waiting caller.
func TestPlacesArePassedOn(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(int, net.Conn){
		"broken": func(_ int, c net.Conn) {
			if takeRequest(bufio.NewReader(c)) {
				time.Sleep(time.Second)
			}
		},
		"closing": func(_ int, c net.Conn) {
			if takeRequest(bufio.NewReader(c)) {
				time.Sleep(time.Second)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nhello")
			}
		},
		"no dial": nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{serve: serve}
			h := s.host(t, Options{MaxConns: 1})
			if serve == nil {
				h.client.opts.DialContext = func(context.Context, string, string) (net.Conn, error) {
					time.Sleep(time.Second)
					return nil, errAny
				}
			}
			began := time.Now()
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() {
					if _, body, err := ask(t.Context(), h); (err == nil) != (name == "closing") || (err == nil && body != "hello") {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			wg.Wait()
			open, _, waiting := h.held()
			if took := time.Since(began); took != 5*time.Second || open != 0 || waiting != 0 {
				t.Errorf("%s: %v, %d connections by count, %d waiting", name, took, open, waiting)
			}
			s.done.Wait()
		})
	}
}

// The most recently used connection is used first, so that the others expire. Expired connections
// are closed on time, even without a request.
func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: slowly(time.Millisecond)}
		h := s.host(t, Options{IdleTimeout: 10 * time.Second})
		at := func(n int) {
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					if _, _, err := ask(t.Context(), h); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		check := func(when string, dials, live int) {
			t.Helper()
			synctest.Wait()
			open, idle, _ := h.held()
			if d, l := s.counts(); d != dials || l != live || open != live || idle != live {
				t.Errorf("%s: %d connections, %d live, %d by count, %d idle; want %d, %d live", when, d, l, open, idle, dials, live)
			}
		}
		at(5)
		check("after five at once", 5, 5)
		for range 9 { // one at a time
			time.Sleep(time.Second)
			at(1)
		}
		check("after nine one by one", 5, 5)
		time.Sleep(1500 * time.Millisecond)
		check("when four were not used for ten seconds", 5, 1)
		at(2)
		check("after two at once", 6, 2)
		time.Sleep(10 * time.Second)
		check("when none was used", 6, 0)
		at(1)
		check("after one more", 7, 1)
		h.client.CloseIdle()
		check("after CloseIdle", 7, 0)

		// Connections in use are closed when they are returned after CloseIdle, unless a request
		// began before.
		for _, meanwhile := range []bool{false, true} {
			r, err := h.Do(t.Context(), []byte(request), true, Bound{})
			if err != nil {
				t.Fatal(err)
			}
			h.client.CloseIdle()
			if meanwhile {
				at(1)
			}
			if _, err := io.ReadAll(r); err != nil {
				t.Error(err)
			}
			_ = r.Close()
			if !meanwhile {
				check("after CloseIdle and Close", 8, 0)
			} else {
				check("after CloseIdle, a request and Close", 10, 2)
			}
		}
		h.client.CloseIdle()
		s.done.Wait()
	})
}

// Many requests run at the same time. Some are cancelled at random times, and some go to failing
// servers. Each gets an answer or an error, and no goroutine or connection remains.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			const conns = 5
			s := &script{serve: func(n int, c net.Conn) {
				r := bufio.NewReader(c)
				for takeRequest(r) {
					time.Sleep(rand.N(10 * time.Millisecond))
					switch rand.N(10) {
					case 0:
						return
					case 1:
						_, _ = io.WriteString(c, small[:rand.N(len(small))])
						return
					case 2:
						if _, err := io.WriteString(c, small+"more"); err != nil {
							return
						}
					default:
						if _, err := io.WriteString(c, small); err != nil {
							return
						}
					}
				}
			}}
			h := s.host(t, Options{MaxConns: conns, IdleTimeout: 5 * time.Millisecond})
			good := make([]int, 20)
			var wg sync.WaitGroup
			for i := range good {
				wg.Go(func() {
					for range 30 {
						ctx, cancel := context.WithTimeout(t.Context(), rand.N(60*time.Millisecond))
						_, body, err := ask(ctx, h)
						cancel()
						if err == nil && body == "hello" {
							good[i]++
						} else if err == nil {
							t.Errorf("the answer is %q", body)
						}
						if _, live := s.counts(); live > conns {
							t.Errorf("%d connections", live)
						}
					}
				})
			}
			wg.Wait()
			sum := 0
			for _, n := range good {
				sum += n
			}
			if sum < 20*30/10 {
				t.Errorf("%d good answers", sum)
			}
			h.client.CloseIdle()
			s.done.Wait()
			open, _, waiting := h.held()
			if _, live := s.counts(); live != 0 || open != 0 || waiting != 0 {
				t.Errorf("%d connections are left, %d by count, %d waiting", live, open, waiting)
			}
		})
	}
}
