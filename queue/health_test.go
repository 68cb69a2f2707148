package queue

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/health"
)

func TestTheStandingOfAConsumer(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	oops := errors.New("throttled")
	for _, c := range []struct {
		name        string
		s           standing
		live, ready string // part of the error, or empty
		state       health.State
	}{
		{"before Run", standing{}, "", "Run was not called", health.Unread},
		{"at the start", standing{running: true}, "", "no call", health.NotKnown},
		{"the start fails", standing{running: true, why: oops, receiveFails: before(time.Second)}, "", "receives fail: throttled", health.NotKnown},
		{"it receives", standing{running: true, received: before(time.Hour)}, "", "", health.OK},
		{"receives fail for a short time", standing{running: true, received: before(time.Hour), why: oops, receiveFails: before(59 * time.Second)}, "", "", health.OK},
		{"receives fail", standing{running: true, received: before(time.Hour), why: oops, receiveFails: before(time.Minute)}, "", "receives fail", health.Unread},
		{"the handler fails", standing{running: true, received: now, handlerFails: before(time.Minute), outstanding: 1}, "", "", health.Stalled},
		{"the handler failed, and nothing is left", standing{running: true, received: now, handlerFails: before(time.Minute)}, "", "", health.OK},
		{"it stops", standing{running: true, received: now, stopping: true}, "", "stopping", health.OK},
		{"Run has returned", standing{returned: true}, "Run has returned", "Run was not called, or has returned", health.Unread},
	} {
		check := func(what string, err error, want string) {
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s is %v", c.name, what, err)
			}
		}
		check("live", c.s.live(), c.live)
		check("ready", c.s.ready(now), c.ready)
		if got := c.s.status(now); got.State != c.state || (got.Reason == "") != (c.state == health.OK) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// A consumer becomes ready, stalls while its handler fails, recovers, is not ready while receives
// fail, and ends.
func TestHealthOfAConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(1, nil, nil)
		broken, failing := false, true
		q.receiveErr = func() error {
			if broken {
				return errors.New("secret host is unreachable")
			}
			return nil
		}
		c := q.consumer(t, Options{})
		h := c.HealthHandler()
		get := func(path, host string) (int, string) {
			w := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			if req.Host = host; host == "" {
				req.Host = "127.0.0.1"
			}
			h.ServeHTTP(w, req)
			return w.Code, w.Body.String()
		}
		want := func(path string, status int, text string) {
			t.Helper()
			if code, body := get(path, ""); code != status || !strings.Contains(body, text) || strings.Contains(body, "secret") {
				t.Errorf("%s: %d %s, want %d and %s", path, code, body, status, text)
			}
		}
		want("/readyz", 503, "Run was not called")
		want("/livez", 200, `"state":"unread"`)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- c.Run(ctx, RecordFunc(func(context.Context, Record) error {
				q.hooks.Lock()
				defer q.hooks.Unlock()
				if failing {
					return errors.New("secret failure")
				}
				return nil
			}))
		}()
		set := func(to *bool, value bool) {
			q.hooks.Lock()
			*to = value
			q.hooks.Unlock()
		}
		time.Sleep(2 * time.Second)
		want("/readyz", 200, `"state":"ok"`)
		time.Sleep(2 * time.Minute)
		want("/readyz", 200, `"in_flight":1,"state":"stalled","reason":"the handler fails at every record","since":"20`)
		set(&failing, false)
		time.Sleep(time.Minute)
		want("/livez", 200, `"in_flight":0,"state":"ok"}`)
		set(&broken, true)
		time.Sleep(3 * time.Minute)
		want("/readyz", 503, "receives fail")
		want("/livez", 200, `"state":"unread"`)
		set(&broken, false)
		time.Sleep(time.Minute)
		want("/readyz", 200, "ok")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want("/livez", 503, "Run has returned")
		want("/healthz", 404, "")
		if c.Live() == nil || c.Ready() == nil || c.Health().State != health.Unread {
			t.Error("it is healthy after Run")
		}
	})
}

func TestJoinedEvents(t *testing.T) {
	var got []string
	add := func(s string) func(context.Context, Received) {
		return func(context.Context, Received) { got = append(got, s) }
	}
	JoinEvents(Events{Received: add("a")}, Events{Received: add("b")}).Received(t.Context(), Received{})
	JoinEvents(Events{}, Events{Received: add("c")}).Received(t.Context(), Received{})
	JoinEvents(Events{Received: add("d")}, Events{}).Received(t.Context(), Received{})
	if strings.Join(got, "") != "abcd" || JoinEvents(Events{}, Events{}).Handled != nil {
		t.Errorf("%q", got)
	}
}
