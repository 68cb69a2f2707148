package costs_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/store/redisstore"
)

// redisMeter counts commands with the counters of the server. The requests of the client are
// scripts, with one round trip each. Commands inside scripts are counted by name too.
func redisMeter(t testing.TB, c *redis.Client) func(do func()) cost {
	calls := func() map[string]int {
		info, err := c.Info(context.Background(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]int{}
		for line := range strings.Lines(info) {
			name, numbers, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
			if !ok || name == "info" {
				continue
			}
			n, _, _ := strings.Cut(numbers, ",")
			if all[name], _ = strconv.Atoi(n); all[name] == 0 {
				t.Fatalf("the server says %q", line)
			}
		}
		return all
	}
	return func(do func()) cost {
		before := calls()
		do()
		sum := cost{kinds: map[string]int{}}
		for name, n := range calls() {
			if n -= before[name]; n == 0 {
				continue
			}
			sum.kinds[name] = n
			switch name {
			case "evalsha", "eval", "script|load":
				sum.requests += n
			case "hset", "hdel", "sadd", "srem", "hincrby", "del", "set":
				sum.writes += float64(n)
			default:
				sum.reads += float64(n)
			}
		}
		return sum
	}
}

// TestRedis prints the scripts and their commands. It checks that an idle heartbeat is one script,
// and that the work of the script does not grow.
func TestRedis(t *testing.T) {
	d := servers.Redis(t, "--appendfsync", "no")
	inside := map[[2]int]float64{}
	for _, size := range [][2]int{{100, 5}, {100, 20}, {1000, 5}, {1000, 20}} {
		leases, workers := size[0], size[1]
		c := redis.NewClient(&redis.Options{Addr: d.Addr, ContextTimeoutEnabled: true})
		t.Cleanup(func() { c.Close() })
		s, err := redisstore.New(c, redisstore.Options{Prefix: fmt.Sprintf("costs-%d-%d:", leases, workers)})
		if err != nil {
			t.Fatal(err)
		}
		g := assemble(measured{t, s, redisMeter(t, c)}, leases, workers)
		i := g.idling()
		t.Logf("%d leases, %d workers", leases, workers)
		show(t, "  an idle heartbeat", i.beat, "writing commands", "reading ones")
		show(t, "  a look with nothing new", i.look, "writing commands", "reading ones")
		show(t, "  a full look", i.full, "writing commands", "reading ones")
		inside[size] = i.beat.writes + i.beat.reads
		if i.beat.requests != 1 || i.look.requests != 1 || i.full.requests != 1 {
			t.Errorf("an idle heartbeat is %d requests, a look %d, a full one %d", i.beat.requests, i.look.requests, i.full.requests)
		}
		if leases == 1000 && workers == 20 {
			for _, e := range g.events() {
				show(t, "  "+e.name, g.meter(e.do), "writing commands", "reading ones")
			}
		}
		for kind := range i.beat.kinds {
			// HGETALL reads the few fields of the application. It also reads the heartbeat counts
			// of the sessions.
			if kind == "scan" || kind == "keys" || kind == "hscan" || kind == "hvals" || kind == "smembers" ||
				kind == "hgetall" && i.beat.kinds[kind] > 2*(workers-1) {
				t.Errorf("idle heartbeats are %s", i.beat.said())
			}
		}
	}
	grows(t, "what all workers' heartbeats ask for", func(leases, workers int) float64 { return float64(workers) * inside[[2]int{leases, workers}] })
}
