// Package redis_test runs the contract of stores with redisstore on a real server.
package redis_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/store/redisstore"
	"github.com/weir-go/weir/store/storetest"
)

// client returns a new client of a server. It shares no connections with other clients, as if it
// were in another process.
func client(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { c.Close() })
	return c
}

func open(t testing.TB, addr string, o redisstore.Options) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(client(t, addr), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	kinds(t, func(t *testing.T, start servers.RedisKind) {
		storetest.Run(t, place(start(t, "--appendfsync", "no").Addr).harness())
	})
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, place(servers.Redis(b, "--appendfsync", "no").Addr).harness())
}
