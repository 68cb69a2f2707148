package dashboard

import (
	"testing"
	"time"

	"github.com/weir-go/weir/health"
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
		{"all is well", of(health.OK, 0, "", "", time.Time{}), "up to date"},
		{"a little lag", of(health.OK, 4*time.Second, "", "", time.Time{}), "4 s behind"},
		{"read to its end", of(health.OK, 0, "read to its end", "", time.Time{}), "read to its end"},
		{"it waits", of(health.Idle, time.Hour, "waits for its parents", "", at(-5)), "waits for its parents, for 5 min"},
		{"it catches up", of(health.CatchingUp, time.Hour, "caught up in 3 min at this rate", "", at(-5)), "60 min behind, caught up in 3 min at this rate"},
		{"it is stalled", of(health.Stalled, time.Hour, "in the handler", "no room", at(-5)), "60 min behind, in the handler, for 5 min; last error: no room"},
		{"nothing is known", of(health.NotKnown, health.Unknown, "its lag is unknown", "", time.Time{}), "its lag is unknown"},
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
