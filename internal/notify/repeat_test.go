package notify

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// In an outage of seven seconds, each of 222 shards fails seven times. The failures are logged in
// two lines, and the second one contains the exact number of lines that it represents. An error
// with another cause gets a separate line.
func TestRepeatedLinesOfOneCauseAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		q := New(4)
		go q.Run(func(err error) { t.Error(err) })
		log := q.Repeats(q.Logger(t.Context(), slog.NewTextHandler(&out, nil)))
		for attempt := range 7 {
			for shard := range 222 {
				log.With("shard", shard).Warn("the handler failed", "err", fmt.Errorf("no connection to 10.0.0.%d after %dms", shard, attempt))
				synctest.Wait()
			}
			time.Sleep(time.Second)
		}
		log.Warn("the handler failed", "err", errors.New("no such table"))
		time.Sleep(time.Minute)
		synctest.Wait() // the queue's goroutine has written the earlier calls
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || strings.Contains(lines[0], "repeated") || !strings.Contains(lines[1], "no such table") || !strings.Contains(lines[2], "shard=221 ") ||
			!strings.Contains(lines[2], fmt.Sprint("repeated=", 7*222-1)) {
			t.Errorf("logged %q", lines)
		}
		out.Reset()
		for range 600 { // every second for ten minutes
			log.Warn("the handler failed", "err", errors.New("no such table"))
			time.Sleep(time.Second)
		}
		if n := strings.Count(out.String(), "\n"); n < 10 || n > 14 {
			t.Errorf("logged %d lines of ten minutes: %s", n, out.String())
		}
		log.Warn("the handler failed", "err", errors.New("no such table"))
		q.Flush()
		if !q.Close(time.Minute) {
			t.Error("the queue did not end")
		}
		if at := strings.LastIndex(strings.TrimSpace(out.String()), "\n"); !strings.Contains(out.String()[at:], "repeated=") {
			t.Errorf("the last lines are not logged: %s", out.String()[at:])
		}
		time.Sleep(repeatMost) // a closed queue drops calls from timers
	})
}

// The number of separate causes is limited, and a cause is forgotten when it is over.
func TestCausesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &limiter{queue: New(4), causes: map[string]*cause{}}
		written := 0
		for i := range 10 * mostCauses {
			l.pass(fmt.Sprint(i), time.Now(), func(int) { written++ })
		}
		if len(l.causes) > mostCauses+1 || written != mostCauses+1 {
			t.Errorf("%d causes, %d lines", len(l.causes), written)
		}
		time.Sleep(2 * repeatMost)
		l.pass("new", time.Now(), func(int) { written++ })
		if len(l.causes) > 3 || written != mostCauses+2 {
			t.Errorf("afterwards %d causes, %d lines", len(l.causes), written)
		}
	})
}
