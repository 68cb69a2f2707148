package redis_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/internal/proof/integration/crowd"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/redisstore"
	"github.com/weir-go/weir/store/storetest"
)

// place describes the Redis of a process completely: the kind, the addresses, and the number of
// replicas to wait for after writes.
type place string

func clusterAt(c *servers.RedisCluster) place {
	return place("cluster " + strings.Join(c.Addrs(), ","))
}

func sentinelsAt(s *servers.RedisSentinels) place {
	return place("sentinels-of-" + s.Name + " " + strings.Join(s.Addrs(), ","))
}

// replicated returns the same place, with calls that wait for a replica.
func (p place) replicated() place { return p + " replicated" }

// dial creates the client for a place, and the options for a store.
func (p place) dial() (redis.UniversalClient, redisstore.Options) {
	words := strings.Fields(string(p))
	o := redisstore.Options{}
	if words[len(words)-1] == "replicated" {
		o.Replicas = 1
		words = words[:len(words)-1]
	}
	addrs := strings.Split(words[len(words)-1], ",")
	if len(words) == 1 {
		return redis.NewClient(&redis.Options{Addr: addrs[0], ContextTimeoutEnabled: true}), o
	}
	if name, ok := strings.CutPrefix(words[0], "sentinels-of-"); ok {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: name, SentinelAddrs: addrs, ContextTimeoutEnabled: true}), o
	}
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true}), o
}

// open opens a store like a separate process.
func (p place) open(t testing.TB) *redisstore.Store {
	t.Helper()
	c, o := p.dial()
	t.Cleanup(func() { c.Close() })
	s, err := redisstore.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (p place) harness() storetest.Harness {
	return storetest.Harness{
		Open:  func(t testing.TB) lease.Store { return p.open(t) },
		Again: func(t testing.TB, _ lease.Store) lease.Store { return p.open(t) },
	}
}

func TestMain(m *testing.M) {
	crowd.Main(m, func(p string) (lease.Store, error) {
		c, o := place(p).dial()
		return redisstore.New(c, o)
	})
}

// kinds runs a test on Redis and on Valkey.
func kinds(t *testing.T, test func(t *testing.T, start servers.RedisKind)) {
	t.Run("Redis", func(t *testing.T) { test(t, servers.Redis) })
	t.Run("Valkey", func(t *testing.T) { test(t, servers.Valkey) })
}
