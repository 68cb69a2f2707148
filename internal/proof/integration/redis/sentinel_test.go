package redis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/crowd"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
)

func TestSentinelsThatFailOverHarmNothing(t *testing.T) {
	kinds(t, func(t *testing.T, start servers.RedisKind) {
		s := servers.NewRedisSentinels(t, start, time.Second, "--appendfsync", "no")
		p := sentinelsAt(s).replicated()
		crowd.Run(t, p.open(t), string(p), s.Failover)
	})
}

// A heartbeat hangs in a primary that is suspended, and the sentinels promote the replica in the
// meantime. When the old primary resumes, it applies the heartbeat. This does no harm: the
// heartbeat fails, and the new primary does not contain its data.
func TestABeatInAPrimaryThatWakesUpTooLateFails(t *testing.T) {
	servers := servers.NewRedisSentinels(t, servers.Redis, time.Second, "--appendfsync", "no")
	old := servers.Primary()
	// A worker that uses the server's address instead of the sentinels' addresses does not follow
	// the failover.
	direct := place(old.Addr).replicated().open(t)
	scene(t, direct)
	old.Suspend()
	failed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := direct.Heartbeat(ctx, "app", lease.Report{Session: "a", Progress: []lease.Progress{at(t, "1", 2, "9")}})
		failed <- err
	}()
	servers.Promoted(servers.Other(old))
	old.Resume()
	if err := <-failed; err == nil {
		t.Error("a heartbeat that only the old primary knows of was confirmed")
	}

	servers.Settle()
	s := sentinelsAt(servers).replicated().open(t)
	over(t, s, "a")
	v := view(t, s, "")
	if v.Leases[0].Position.String() != "5" || v.Leases[0].Epoch != 2+jump {
		t.Errorf("lease %s", v.Leases[0])
	}
	if len(v.Workers) != 1 || !strings.HasPrefix(v.Workers[0].Session, "lost:") {
		t.Errorf("workers %+v", v.Workers)
	}
	settled(t, s)
}
