package supervise

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
)

func TestWhatIsSaidOfAWorker(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	times := lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second}
	for name, c := range map[string]struct {
		w             Worker
		dead, unready string
	}{
		"it was just made": {Worker{}, "", "it has not joined"},
		"all is well":      {Worker{Looked: ago(time.Second), Answered: ago(time.Second)}, "", ""},
		"a slow round":     {Worker{Looked: ago(8 * time.Second), Answered: ago(5 * time.Second)}, "", ""},
		"no round":         {Worker{Looked: ago(9 * time.Second), Answered: ago(6 * time.Second)}, "no heartbeat for 9s", "the store has not answered for 6s"},
		"it stops":         {Worker{Looked: ago(time.Second), Stopping: ago(time.Second), Answered: ago(time.Hour)}, "", "it stops"},
		"the loop ended":   {Worker{Stopping: ago(time.Second)}, "", "it stops"},
		"a stream cannot be listed": {
			Worker{Looked: ago(0), Answered: ago(0), Unlisted: map[string]time.Time{"s": ago(time.Hour), "new": ago(time.Second)}}, "",
			"the shards of stream s could not be listed for 1h0m0s",
		},
		"a handler hangs": {
			Worker{Looked: ago(0), Answered: ago(0), Abandoned: map[lease.Key]time.Time{{Stream: "s", Shard: "1"}: ago(time.Minute)}},
			"the handler of s/1 ignores since 1m0s", "",
		},
	} {
		for _, said := range []struct {
			why  []error
			want string
		}{{c.w.Dead(now, times), c.dead}, {c.w.Unready(now, times), c.unready}} {
			text := ""
			if err := errors.Join(said.why...); err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, said.want) || (said.want == "") != (text == "") || strings.Contains(text, "\n") {
				t.Errorf("%s: %q, want %q", name, text, said.want)
			}
		}
	}
}
