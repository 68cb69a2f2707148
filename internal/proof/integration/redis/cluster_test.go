package redis_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/internal/proof/integration/crowd"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/redisstore"
	"github.com/weir-go/weir/store/storetest"
)

// patient is a timeout that is long enough for a slow machine: the servers of a cluster do not
// declare each other dead.
const patient = time.Minute

func TestContractInACluster(t *testing.T) {
	kinds(t, func(t *testing.T, start servers.RedisKind) {
		c := servers.NewRedisCluster(t, start, 3, false, patient, "--appendfsync", "no")
		p := clusterAt(c)
		storetest.Run(t, p.harness())
		used := 0
		for _, m := range c.Masters {
			if n, err := client(t, m.Addr).DBSize(t.Context()).Result(); err == nil && n > 0 {
				used++
			}
		}
		if used != 3 {
			t.Errorf("%d of 3 masters have keys", used)
		}
	})
}

func TestApplicationsOfAClusterAreAllListed(t *testing.T) {
	c := servers.NewRedisCluster(t, servers.Redis, 3, false, patient)
	s := clusterAt(c).open(t)
	var want []string
	for i := range 30 {
		app := fmt.Sprintf("app-%02d", i)
		want = append(want, app)
		if _, err := s.Heartbeat(t.Context(), app, lease.Report{Session: "a", First: true}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Apps(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("Apps = %q, %v", got, err)
	}
}

// The slot of an application moves to another master, key by key, while a worker sends heartbeats
// and a leader reads. No answer is wrong, and no confirmed checkpoint is lost. After the move, the
// session is over, as after a restart of the server.
func TestASlotThatMovesHarmsNothing(t *testing.T) {
	kinds(t, func(t *testing.T, start servers.RedisKind) {
		c := servers.NewRedisCluster(t, start, 3, false, patient)
		s := clusterAt(c).open(t)
		const key = "weir:{app}:app"
		scene(t, s)
		known := view(t, s, "")
		from := c.Owner(key)
		to := c.Masters[(slices.Index(c.Masters, from)+1)%3]
		confirmed := "5"
		c.Move(key, to, func(step string) {
			// Use a client that follows only one redirect. With the usual number, it would retry
			// for seconds while the servers redirect it.
			brief, o := clusterAt(c).dial()
			defer brief.Close()
			brief.(*redis.ClusterClient).Options().MaxRedirects = 1
			b, err := redisstore.New(brief, o)
			if err != nil {
				t.Fatal(err)
			}
			next := fmt.Sprint(len(step)) + "00"
			orders, err := b.Heartbeat(t.Context(), "app", lease.Report{Session: "a", Progress: []lease.Progress{at(t, "1", 2, next)}})
			t.Logf("%s: %v", step, err)
			if err == nil && slices.ContainsFunc(orders.Held, func(l lease.Lease) bool { return l.Shard == "1" && l.Position.String() == next }) {
				confirmed = next
			}
			if v, err := b.View(t.Context(), "app", ""); err == nil && len(v.Leases) != 3 {
				t.Errorf("%s: a look shows %v", step, v.Leases)
			}
		})
		v := view(t, s, known.Revision)
		if v.Same || len(v.Leases) != 3 || v.Leases[0].Position.String() != confirmed {
			t.Errorf("after the move: %+v, %s was confirmed", v, confirmed)
		}
		over(t, s, "a")
		settled(t, s)
	})
}

func TestAClusterThatFailsOverHarmsNothing(t *testing.T) {
	kinds(t, func(t *testing.T, start servers.RedisKind) {
		c := servers.NewRedisCluster(t, start, 3, true, 2*time.Second, "--appendfsync", "no")
		p := clusterAt(c).replicated()
		over := func() { c.Failover("weir:{crowd}:app") }
		crowd.Run(t, p.open(t), string(p), over, over)
	})
}

// A worker that waits for replicas finds the new master, although its own calls never cause the
// client to follow a redirect.
func TestCallsThatWaitForReplicasFollowAFailoverOfTheCluster(t *testing.T) {
	c := servers.NewRedisCluster(t, servers.Redis, 3, true, 2*time.Second, "--appendfsync", "no")
	s := clusterAt(c).replicated().open(t)
	scene(t, s)
	c.Failover("weir:{app}:app")
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for tries := 1; ; tries++ {
		_, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "a"})
		if errors.Is(err, lease.ErrSessionOver) {
			return // answered by the new master, which detects a possible loss
		}
		if tries == 50 {
			t.Fatalf("the %dth heartbeat after the failover: %v", tries, err)
		}
		<-every.C
	}
}
