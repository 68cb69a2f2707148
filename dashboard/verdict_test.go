package dashboard

import (
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
)

func TestReasonsInWords(t *testing.T) {
	t.Parallel()
	of := func(s health.State, lag time.Duration, why, err string, since time.Time) health.Shard {
		return health.Shard{State: s, Why: why, Err: err, Since: since, ReadLag: health.Unknown, HandledLag: health.Unknown, SavedLag: lag}
	}
	for _, c := range []struct {
		name  string
		shard health.Shard
		want  string
	}{
		{"all is well", of(health.OK, 0, "", "", time.Time{}), "handled up to now"},
		{"a little lag", of(health.OK, 4*time.Second, "", "", time.Time{}), "4 s behind"},
		{"read to its end", of(health.OK, 0, "read to its end", "", time.Time{}), "read to its end"},
		{"it waits", of(health.Idle, time.Hour, "waits for its parents", "", at(-5)), "waits for its parents, for 5 min"},
		{"it catches up", of(health.CatchingUp, time.Hour, "done in 3 min if it goes on so", "", at(-5)), "60 min behind, done in 3 min if it goes on so"},
		{"it is stalled", of(health.Stalled, time.Hour, "in the handler", "no room", at(-5)), "60 min behind, in the handler, for 5 min; last error: no room"},
		{"nothing is known", of(health.NotKnown, health.Unknown, "its lag is not known", "", time.Time{}), "its lag is not known"},
	} {
		if got := reason(c.shard, noon); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
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
	if !ok || opened.Unix() < 1_500_000_000 || arrived.Before(opened) {
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
