package dashboard

import (
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestVerdicts(t *testing.T) {
	t.Parallel()
	held := lease.Lease{Owner: "s1", Position: shard.Oldest}
	lags := func(seconds ...int) (all []time.Duration) {
		for _, s := range seconds {
			all = append(all, time.Duration(s)*time.Second)
		}
		return all
	}
	for _, c := range []struct {
		name  string
		facts facts
		state state
		why   string
	}{
		{"read to its end", facts{lease: lease.Lease{Position: shard.End}}, stateFinished, "was read to its end"},
		{"held, and nothing is known of lag", facts{lease: held, owner: "w1", life: lifeBeats}, stateOK, "is held by w1"},
		{"at the tip", facts{lease: held, owner: "w1", lags: lags(0)}, stateOK, "is read, and nothing waits"},
		{"a little behind", facts{lease: held, owner: "w1", lags: lags(4)}, stateOK, "is read, 4 s behind"},
		{"behind for the first time", facts{lease: held, owner: "w1", lags: lags(0, 60)}, stateCatchingUp, "is 60 s behind and catches up"},
		{"behind and better", facts{lease: held, owner: "w1", lags: lags(300, 200, 100)}, stateCatchingUp, "is 100 s behind and catches up"},
		{"worse with each look", facts{lease: held, owner: "w1", lags: lags(100, 200, 300)}, stateFallingBehind, "is 5 min behind and falls further behind"},
		{"its worker is dead", facts{lease: held, owner: "w1", life: lifeSilent, living: 1}, stateUnread, "is unread: its worker w1 is silent"},
		{"and records wait", facts{lease: held, owner: "w1", life: lifeSilent, lags: lags(60)}, stateUnread, "is unread: its worker w1 is silent, 60 s behind"},
		{"nobody lives", facts{}, stateUnread, "is unread: no worker lives"},
		{"nobody holds it", facts{living: 2}, stateUnread, "is unread: no worker holds it"},
		{"it waits", facts{living: 2, waits: []string{"shardId-000000000007"}}, stateWaiting, "is unread: it waits for 7"},
		{"it is paused", facts{living: 2, paused: true, waits: []string{"x"}}, statePaused, "is unread: it is paused"},
		{"taken away", facts{lease: lease.Lease{Revoked: "s1"}}, stateUnread, "is unread: it was taken from a worker that has not answered yet"},
		{"its handler fails", facts{lease: held, owner: "w1", trouble: &lease.Trouble{State: "waiting to handle again", For: 3 * time.Minute, Why: "no room"}},
			stateStalled, "is stalled: waiting to handle again for 3 min: no room"},
		{"records were given up", facts{lease: held, owner: "w1", trouble: &lease.Trouble{State: lease.GaveUp, Failing: lease.Failing{GivenUp: 3}}, lags: lags(60)},
			stateCatchingUp, "is 60 s behind and catches up"},
		{"records are about to be lost", facts{lease: held, owner: "w1", lags: lags(23 * 3600), retention: 24 * time.Hour}, stateRetentionNear, "is 23 h behind, and records are lost after 24 h: in 60 min"},
		{"of a shard that nobody reads", facts{lags: lags(23 * 3600), retention: 24 * time.Hour}, stateRetentionNear,
			"is 23 h behind, and records are lost after 24 h: in 60 min; it is unread: no worker lives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, why := judge(c.facts)
			if s != c.state || why != c.why {
				t.Errorf("%s: %q, want %s: %q", s, why, c.state, c.why)
			}
		})
	}
}

func TestWorkersAreSilentOnlyAfterLooksThatSawIt(t *testing.T) {
	t.Parallel()
	look := func(b beat, count uint64, second int) beat {
		return b.see(lease.Worker{Beat: count}, noon.Add(time.Duration(second)*time.Second))
	}
	var never beat
	for _, c := range []struct {
		name string
		seen beat
		want life
	}{
		{"one look", look(never, 7, 0), lifeUnknown},
		{"two looks at a worker that beats", look(look(never, 7, 0), 9, 2), lifeBeats},
		{"no beat for a while", look(look(look(never, 7, 0), 9, 2), 9, 6), lifeBeats},
		{"no beat for the failover time", look(look(look(never, 7, 0), 9, 2), 9, 7), lifeSilent},
		{"and again", look(look(look(never, 7, 0), 7, 9), 8, 10), lifeBeats},
		{"looks an hour apart say little", look(look(never, 7, 0), 9, 3600), lifeUnknown},
	} {
		if got := lifeOf(lease.Worker{}, c.seen); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := lifeOf(lease.Worker{Ended: true}, never); got != lifeEnded {
		t.Errorf("an ended session: %s", got)
	}
}

func TestSequenceNumbersTellTimes(t *testing.T) {
	t.Parallel()
	opened, arrived, ok := timesOf("49590338271490256608559692540925702759324208523137515618")
	if !ok || opened.Unix() < 1_500_000_000 || arrived.Unix() != 1545084711 {
		t.Errorf("a number of the service: opened %v, arrived %v, %t", opened, arrived, ok)
	}
	for _, none := range []string{"", "7", "-1", "x", "49590338271490256608559692540925702759324208523137515619", "99999999999999999999999999999999999999999999999999999999", "495903382714902566085596925409257027593242085231375156180000"} {
		if _, _, ok := timesOf(none); ok {
			t.Errorf("%q has times", none)
		}
	}
	s := kinesistest.NewServer(t, kinesistest.Config{})
	s.CreateStream("a", 1)
	before := time.Now().Add(-2 * time.Second)
	_, seq := s.Put("a", "k", nil)
	opened, arrived, ok = timesOf(seq)
	if !ok || opened.Before(before) || arrived.Before(opened) || arrived.After(time.Now()) {
		t.Errorf("a number of the embedded service: opened %v, arrived %v, %t", opened, arrived, ok)
	}
}

func FuzzTimesOf(f *testing.F) {
	f.Add("49590338271490256608559692540925702759324208523137515618")
	f.Fuzz(func(t *testing.T, text string) {
		opened, arrived, ok := timesOf(text)
		if ok != !opened.IsZero() || !arrived.IsZero() && arrived.Before(opened) {
			t.Errorf("%q: opened %v, arrived %v, %t", text, opened, arrived, ok)
		}
	})
}
