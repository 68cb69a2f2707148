package dashboard

import (
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
)

func TestWorkersAreSilentOnlyAfterLooksThatSawIt(t *testing.T) {
	t.Parallel()
	look := func(b beat, count uint64, second int) beat {
		return b.see(lease.Worker{Heartbeats: count}, noon.Add(time.Duration(second)*time.Second))
	}
	var never beat
	for _, c := range []struct {
		name string
		seen beat
		want life
	}{
		{"one look", look(never, 7, 0), lifeUnknown},
		{"two looks at a worker that sends heartbeats", look(look(never, 7, 0), 9, 2), lifeBeats},
		{"no heartbeat for a while", look(look(look(never, 7, 0), 9, 2), 9, 6), lifeBeats},
		{"no heartbeat for the failover time", look(look(look(never, 7, 0), 9, 2), 9, 7), lifeSilent},
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
