package target

import (
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/lease"
)

func TestLooking(t *testing.T) {
	slow := lease.Worker{Times: lease.Times{Heartbeat: 4 * time.Second, Failover: 20 * time.Second, Handoff: time.Minute}}
	slower := lease.Worker{Times: lease.Times{Heartbeat: time.Minute, Failover: time.Hour, Handoff: time.Hour}}
	ended := slower
	ended.Ended = true
	for name, c := range map[string]struct {
		args             []string
		workers          []lease.Worker
		untilDead, beats time.Duration
	}{
		"nobody":                     {nil, nil, 6 * time.Second, 2 * time.Second},
		"a worker that did not say":  {nil, []lease.Worker{{}}, 6 * time.Second, 2 * time.Second},
		"a slow worker among others": {nil, []lease.Worker{{}, slow, {}}, 21 * time.Second, 8 * time.Second},
		"one that takes too long":    {nil, []lease.Worker{slow, slower}, 2*time.Minute + time.Second, 10 * time.Second},
		"one that has ended":         {nil, []lease.Worker{slow, ended}, 21 * time.Second, 8 * time.Second},
		"what was asked for":         {[]string{"--look=50ms"}, []lease.Worker{slower}, 50 * time.Millisecond, 50 * time.Millisecond},
		"nothing was asked for":      {[]string{"--look=0"}, []lease.Worker{slower}, 0, 0},
	} {
		var l LookFlag
		cmd := &cobra.Command{}
		l.Register(cmd, "how long")
		if err := cmd.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		v := lease.View{Workers: c.workers}
		if dead, seen := l.UntilDead(v), l.ForBeats(v); dead != c.untilDead || seen != c.beats {
			t.Errorf("%s: %v and %v, want %v and %v", name, dead, seen, c.untilDead, c.beats)
		}
	}
}

func TestLookingIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		l           LookFlag
		none, right bool
	}{
		"by default":             {LookFlag{}, false, true},
		"at all":                 {LookFlag{Asked: 1, Given: true}, false, true},
		"not at all":             {LookFlag{Given: true}, false, false},
		"not at all, which goes": {LookFlag{Given: true}, true, true},
		"backwards":              {LookFlag{Asked: -1, Given: true}, true, false},
		"as long as it goes":     {LookFlag{Asked: 5 * time.Minute, Given: true}, false, true},
		"for longer":             {LookFlag{Asked: 5*time.Minute + 1, Given: true}, true, false},
	} {
		if err := c.l.Check(c.none); (err == nil) != c.right {
			t.Errorf("%s: %v", name, err)
		}
	}
}
