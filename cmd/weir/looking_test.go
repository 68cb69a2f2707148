package main

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

func TestLooking(t *testing.T) {
	slow := lease.Worker{Times: lease.Times{Beat: 4 * time.Second, Failover: 20 * time.Second, Handoff: time.Minute}}
	slower := lease.Worker{Times: lease.Times{Beat: time.Minute, Failover: time.Hour, Handoff: time.Hour}}
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
		"what was asked for":         {[]string{"--watch=50ms"}, []lease.Worker{slower}, 50 * time.Millisecond, 50 * time.Millisecond},
		"nothing was asked for":      {[]string{"--watch=0"}, []lease.Worker{slower}, 0, 0},
	} {
		var l looking
		cmd := &cobra.Command{}
		l.register(cmd, "how long")
		if err := cmd.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		v := lease.View{Workers: c.workers}
		if dead, seen := l.untilDead(v), l.forBeats(v); dead != c.untilDead || seen != c.beats {
			t.Errorf("%s: %v and %v, want %v and %v", name, dead, seen, c.untilDead, c.beats)
		}
	}
}

func TestLookingIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		l           looking
		none, right bool
	}{
		"by default":             {looking{}, false, true},
		"at all":                 {looking{asked: 1, given: true}, false, true},
		"not at all":             {looking{given: true}, false, false},
		"not at all, which goes": {looking{given: true}, true, true},
		"backwards":              {looking{asked: -1, given: true}, true, false},
		"as long as it goes":     {looking{asked: 5 * time.Minute, given: true}, false, true},
		"for longer":             {looking{asked: 5*time.Minute + 1, given: true}, true, false},
	} {
		if err := c.l.check(c.none); (err == nil) != c.right {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The plan is that of the leader, so by the leader's times.
func TestPlanGoesByTheLeadersTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		ctx := t.Context()
		times := lease.Times{Beat: 6 * time.Second, Failover: 20 * time.Second, Handoff: time.Minute}
		for _, s := range []string{"A", "B"} {
			if _, err := mem.Beat(ctx, "a", lease.Report{Session: s, First: true, Times: times}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := mem.Lead(ctx, "a", "A", 0); err != nil {
			t.Fatal(err)
		}
		first, err := mem.View(ctx, "a", "")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		var beating sync.WaitGroup
		beating.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(times.Beat):
					_, _ = mem.Beat(ctx, "a", lease.Report{Session: "A"})
				}
			}
		})
		began := time.Now()
		o := planOptions{target: target{app: "a"}}
		_, facts, err := o.observe(ctx, openStore{Store: mem}, first)
		close(done)
		beating.Wait()
		if _, dead := facts.Dead["B"]; err != nil || !dead || len(facts.Dead) != 1 {
			t.Errorf("dead are %v, %v, want B alone", facts.Dead, err)
		}
		if took := time.Since(began); took < times.Failover || took > times.Failover+time.Second {
			t.Errorf("it took %v to see that", took)
		}
	})
}
