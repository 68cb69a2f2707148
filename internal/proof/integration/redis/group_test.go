package redis_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/redisstore"
)

// handled contains the records that handlers have handled.
type handled struct {
	*testing.T
	mu     sync.Mutex
	counts map[string]int    // by record
	epochs map[string]uint64 // latest epoch of each shard
	owners map[string]string // owner by shard and epoch
	more   chan struct{}     // signals that a record was handled
}

func (h *handled) by(worker string) weir.Handler {
	return weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		at := fmt.Sprintf("%s at epoch %d", b.Shard, b.Epoch)
		if was := h.owners[at]; was != "" && was != worker {
			h.Errorf("%s was owned by %s and %s", at, was, worker)
		}
		if b.Epoch < h.epochs[b.Shard] {
			h.Errorf("%s handles %s after somebody did at epoch %d", worker, at, h.epochs[b.Shard])
		}
		h.owners[at], h.epochs[b.Shard] = worker, b.Epoch
		for _, r := range b.Records {
			h.counts[string(r.Data)]++
		}
		select {
		case h.more <- struct{}{}:
		default:
		}
		return nil
	})
}

// until waits for a condition on the handled records.
func (h *handled) until(what string, done func() bool) {
	h.Helper()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for {
		h.mu.Lock()
		ok := done()
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-h.more:
		case <-timeout.C:
			h.Fatalf("after a minute not yet: %s", what)
		}
	}
}

func TestAGroupGoesOnAfterAFailoverThatLostItsCheckpoints(t *testing.T) {
	const shards, workers = 4, 3
	primary, replica := servers.Redis(t), servers.Redis(t)
	replicate(t, primary, replica)
	var addr atomic.Value
	addr.Store(primary.Addr)
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", shards)

	h := &handled{T: t, counts: map[string]int{}, epochs: map[string]uint64{}, owners: map[string]string{}, more: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for i := range workers {
		name := fmt.Sprint("worker-", i)
		c := redis.NewClient(&redis.Options{ContextTimeoutEnabled: true, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr.Load().(string))
		}})
		defer c.Close()
		s, err := redisstore.New(c, redisstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		consumer, err := weir.New(kinesis.Client(), s, weir.Options{Streams: []string{"orders"}, App: "app", Worker: name, Logger: slog.New(slog.DiscardHandler),
			Timing: weir.Timing{
				HeartbeatInterval: 100 * time.Millisecond,
				FailoverAfter:     2 * time.Second,
			}, Polling: weir.Polling{IdleInterval: 200 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := consumer.Run(ctx, h.by(name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	put := 0
	some := func() {
		for range 100 {
			data := fmt.Sprint("record-", put)
			kinesis.Put("orders", data, []byte(data))
			put++
		}
	}
	everything := func() bool { return len(h.counts) == put }
	some()
	h.until("the first records are handled", everything)
	// The replica must have the data of the application. An empty replica would start a new
	// application.
	conn := client(t, primary.Addr).Conn()
	defer conn.Close()
	if err := conn.Set(t.Context(), "caught-up", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Wait(t.Context(), 1, time.Minute).Result(); err != nil || n != 1 {
		t.Fatalf("%d replicas have caught up: %v", n, err)
	}
	// From here on, writes are lost.
	say(t, client(t, replica.Addr), "REPLICAOF", "127.0.0.1", "1")
	for range 5 {
		some()
		h.until("records whose checkpoints get lost are handled", everything)
	}
	before := h.latest()
	primary.Kill()
	say(t, client(t, replica.Addr), "REPLICAOF", "NO", "ONE")
	addr.Store(replica.Addr)
	some()
	h.until("records of after the failover are handled", everything)
	for shard, epoch := range h.latest() {
		if epoch < before[shard]+1 {
			t.Errorf("%s went on at epoch %d, was at %d", shard, epoch, before[shard])
		}
	}
	stop()
	all.Wait()
	again := 0
	for _, n := range h.counts {
		if n > 1 {
			again++
		}
	}
	t.Logf("%d records, %d of them handled again", put, again)
}

func (h *handled) latest() map[string]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	latest := map[string]uint64{}
	for shard, epoch := range h.epochs {
		latest[shard] = epoch
	}
	return latest
}
