package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// judge is a Listener that counts its calls.
type judge struct {
	giveUp bool
	asked  atomic.Int32
}

func (j *judge) GiveUp() bool {
	j.asked.Add(1)
	return j.giveUp
}

// piece is a text that a server sends after a delay.
type piece struct {
	after time.Duration
	text  string
}

// sends is a server that answers each request with pieces.
func sends(pieces []piece) func(int, net.Conn) {
	return func(_ int, c net.Conn) {
		r := bufio.NewReader(c)
		for takeRequest(r) {
			for _, p := range pieces {
				time.Sleep(p.after)
				if _, err := io.WriteString(c, p.text); err != nil {
					return
				}
			}
		}
	}
}

const silenceOf = 2 * time.Second

func TestASilentConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	head, body := small[:len(small)-5], small[len(small)-5:]
	for name, c := range map[string]struct {
		pieces  []piece
		opts    Options
		away    time.Duration // time between the request and the first read
		patient bool
		asked   int32
		err     error
		took    time.Duration
	}{
		"it answers":                              {pieces: []piece{{time.Second, small}}, took: time.Second},
		"it says nothing":                         {pieces: []piece{{time.Hour, small}}, asked: 1, err: ErrSilent, took: silenceOf + lastLook},
		"it is slow, and the listener waits":      {pieces: []piece{{20 * time.Second, small}}, patient: true, asked: 1, took: 20 * time.Second},
		"it says nothing, and the listener waits": {pieces: []piece{{time.Hour, small}}, patient: true, asked: 1, err: context.DeadlineExceeded, took: time.Minute},
		"it is silent after the head":             {pieces: []piece{{time.Second, head}, {time.Hour, body}}, asked: 1, err: ErrSilent, took: time.Second + silenceOf + lastLook},
		"it is silent within the head":            {pieces: []piece{{time.Second, head[:9]}, {time.Hour, body}}, asked: 1, err: ErrSilent, took: time.Second + silenceOf + lastLook},
		"it is silent within the body":            {pieces: []piece{{0, head}, {time.Second, body[:2]}, {time.Hour, body[2:]}}, asked: 1, err: ErrSilent, took: time.Second + silenceOf + lastLook},
		"it is slow, but says something":          {pieces: []piece{{1900 * time.Millisecond, head[:9]}, {1900 * time.Millisecond, head[9:]}, {1900 * time.Millisecond, body[:1]}, {1900 * time.Millisecond, body[1:]}}, took: 7600 * time.Millisecond},
		"no look for a long time":                 {pieces: []piece{{time.Second, small}}, away: 30 * time.Second, took: 30 * time.Second},
		"no look for a long time, no answer":      {pieces: []piece{{time.Hour, small}}, away: 30 * time.Second, asked: 1, err: ErrSilent, took: 30*time.Second + lastLook},
		"a shorter time for the head":             {pieces: []piece{{time.Hour, small}}, opts: Options{HeaderTimeout: time.Second}, err: &TimeoutError{"head of an answer", time.Second}, took: time.Second},
		"a longer time for the head":              {pieces: []piece{{time.Hour, small}}, opts: Options{HeaderTimeout: 9 * time.Second}, asked: 1, err: ErrSilent, took: silenceOf + lastLook},
		"a longer time for the head, patience":    {pieces: []piece{{time.Hour, small}}, opts: Options{HeaderTimeout: 9 * time.Second}, patient: true, asked: 1, err: &TimeoutError{"head of an answer", 9 * time.Second}, took: 9 * time.Second},
		"a shorter time for a byte":               {pieces: []piece{{time.Hour, small}}, opts: Options{ReadTimeout: time.Second}, err: &TimeoutError{"byte of the answer", time.Second}, took: time.Second},
		"a longer time for a byte":                {pieces: []piece{{time.Hour, small}}, opts: Options{ReadTimeout: 9 * time.Second}, asked: 1, err: ErrSilent, took: silenceOf + lastLook},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				answers := sends(c.pieces)
				first := true
				s := &script{serve: func(n int, far net.Conn) {
					if first { // for an earlier call, so that a connection exists
						first = false
						r := bufio.NewReader(far)
						if takeRequest(r) {
							_, _ = io.WriteString(far, small)
						}
					}
					answers(n, far)
				}}
				h := s.host(t, c.opts)
				var l Line
				if _, err := over(t.Context(), &l, h, Bound{At: time.Now().Add(time.Minute)}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(30 * time.Second) // any deadline of that call has passed
				listener := &judge{giveUp: !c.patient}
				began := time.Now()
				b := Bound{At: began.Add(time.Minute), Silence: silenceOf, Listener: listener}
				if c.opts.HeaderTimeout == 0 && !l.Ask(t.Context(), h, []byte(request), b) {
					t.Fatal("it was not asked")
				}
				time.Sleep(c.away)
				var r *Response
				var err error
				if l.asked {
					r, _, err = l.Answer(t.Context())
				} else {
					r, err = l.Do(t.Context(), h, []byte(request), false, b)
				}
				var text []byte
				if err == nil {
					text, err = io.ReadAll(r)
					_ = r.Close()
				}
				want := c.err
				timeout, isTimeout := want.(*TimeoutError) //nolint:errorlint // from the table
				switch got := (*TimeoutError)(nil); {
				case want == nil && (err != nil || string(text) != "hello"), want != nil && !isTimeout && !errors.Is(err, want):
					t.Errorf("%q, %v", text, err)
				case isTimeout && (!errors.As(err, &got) || *got != *timeout):
					t.Errorf("%v, want %v", err, want)
				}
				if errors.Is(want, ErrSilent) != errors.Is(err, ErrSilent) {
					t.Errorf("%v, want %v", err, want)
				}
				if took := time.Since(began); took != c.took || listener.asked.Load() != c.asked {
					t.Errorf("it took %v, want %v; the listener was asked %d times, want %d", took, c.took, listener.asked.Load(), c.asked)
				}
				l.Park()
				h.client.CloseIdle()
				if open, _, _ := h.held(); open != 0 {
					t.Errorf("%d connections are left", open)
				}
				s.done.Wait()
			})
		})
	}
}

// A caller that is cancelled while it listens returns at once.
func TestAListenerIsInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: sends([]piece{{time.Hour, small}})}
		h := s.host(t, Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(silenceOf+time.Second, func() { cancel(gone) })
		began := time.Now()
		_, err := h.Do(ctx, []byte(request), true, Bound{At: began.Add(time.Minute), Silence: silenceOf, Listener: &judge{}})
		if took := time.Since(began); !errors.Is(err, gone) || took != silenceOf+time.Second {
			t.Errorf("%v after %v", err, took)
		}
		s.done.Wait()
	})
}

// If a connection is silent, all connections that have not answered since then become suspect. Idle
// suspect connections are closed, and a suspect connection that a line keeps is not reused. A
// connection that has answered since then is reused.
func TestASilentConnectionMakesOthersSuspect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool // the first connection is dead
		s := &script{serve: func(n int, c net.Conn) {
			r := bufio.NewReader(c)
			for takeRequest(r) {
				if n == 0 && dead.Load() {
					time.Sleep(time.Hour)
				}
				time.Sleep(time.Millisecond)
				if _, err := io.WriteString(c, small); err != nil {
					return
				}
			}
		}}
		h := s.host(t, Options{MaxConns: 5, IdleTimeout: time.Hour})
		var lines [5]Line
		for i := range lines { // line i keeps connection i
			if _, err := over(t.Context(), &lines[i], h, Bound{At: time.Now().Add(time.Minute)}); err != nil {
				t.Fatal(err)
			}
		}
		lines[3].Park()
		lines[4].Park()
		dead.Store(true)
		time.Sleep(time.Second)
		var other sync.WaitGroup
		other.Go(func() { // over connection 2, after the request over connection 0 was sent
			time.Sleep(silenceOf / 2)
			if _, err := over(t.Context(), &lines[2], h, Bound{At: time.Now().Add(time.Minute)}); err != nil {
				t.Error(err)
			}
		})
		bound := Bound{At: time.Now().Add(time.Minute), Silence: silenceOf, Listener: &judge{giveUp: true}}
		if _, err := over(t.Context(), &lines[0], h, bound); !errors.Is(err, ErrSilent) {
			t.Fatal(err)
		}
		other.Wait()
		if open, idle, _ := h.held(); open != 2 || idle != 0 {
			t.Errorf("%d connections are open and %d idle, want those of two lines alone", open, idle)
		}
		r, err := lines[0].Fresh(t.Context(), h, []byte(request), bound)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(r)
		_ = r.Close()
		if dials, _ := s.counts(); dials != 6 {
			t.Errorf("%d connections were made, want 6", dials)
		}
		for i, dials := range []int{6, 7, 7} { // the suspect connection is replaced by a new one
			if _, err := over(t.Context(), &lines[i], h, Bound{At: time.Now().Add(time.Minute)}); err != nil {
				t.Fatal(err)
			}
			if made, _ := s.counts(); made != dials {
				t.Errorf("line %d: %d connections were made, want %d", i, made, dials)
			}
		}
		for i := range lines {
			lines[i].Park()
		}
		h.client.CloseIdle()
		s.done.Wait()
	})
}

// If no further connection is allowed, a new connection replaces the connection that was idle
// longest.
func TestAFreshConnectionTakesThePlaceOfAnIdleOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: slowly(time.Millisecond)}
		h := s.host(t, Options{MaxConns: 2})
		var lines [2]Line
		for i := range lines {
			if _, err := over(t.Context(), &lines[i], h, Bound{At: time.Now().Add(time.Minute)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range lines {
			lines[i].Park()
		}
		for dials := 3; dials < 5; dials++ {
			r, err := h.Fresh(t.Context(), []byte(request), Bound{At: time.Now().Add(time.Minute)})
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(r); err != nil || string(body) != "hello" {
				t.Errorf("%q, %v", body, err)
			}
			_ = r.Close()
			if made, live := s.counts(); made != dials || live != 2 {
				t.Errorf("%d connections were made, of which %d are open, want %d and 2", made, live, dials)
			}
		}
		h.client.CloseIdle()
		s.done.Wait()
	})
}

// Listening is cheap: only a few calls of a series over a line set a deadline.
func TestListeningSetsFewDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: slowly(5 * time.Millisecond)}
		h := s.host(t, Options{})
		set := 0
		h.client.opts.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := s.dial(ctx, network, addr)
			return &noted{c, func() { set++ }}, err
		}
		var l Line
		listener := &judge{giveUp: true}
		for range 1000 { // 25 s
			if _, err := over(t.Context(), &l, h, Bound{At: time.Now().Add(20 * time.Second), Why: io.ErrNoProgress, Silence: time.Second, Listener: listener}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if set > 80 || listener.asked.Load() > 0 { // 50 for silence, 20 for the bound
			t.Errorf("%d deadlines were set for 1000 calls; the listener was asked %d times", set, listener.asked.Load())
		}
		l.Park()
		h.client.CloseIdle()
		s.done.Wait()
	})
}

// noted calls a function for each deadline that is set for reading.
type noted struct {
	net.Conn
	set func()
}

func (c *noted) SetDeadline(at time.Time) error {
	c.set()
	return c.Conn.SetDeadline(at)
}

func (c *noted) SetReadDeadline(at time.Time) error {
	c.set()
	return c.Conn.SetReadDeadline(at)
}
