package dashboard_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// kinesis returns the lags of shards, or an error while down is set.
type kinesis struct{ down atomic.Bool }

func (k *kinesis) lags(_ context.Context, leases []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
	if k.down.Load() {
		return nil, errors.New("no route to Kinesis")
	}
	lags := map[lease.Key]dashboard.Lag{}
	for _, l := range leases {
		lags[l.Key] = dashboard.Lag{}
	}
	return lags, nil
}

// While the store does not answer, no state is shown as healthy, and the list is not empty.
func TestNothingIsGreenThatIsNotKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &failing{Store: memstore.New()}
		fill(t, store, "billing", 3)
		h := dashboard.Handler(store, dashboard.Options{Lags: (&kinesis{}).lags})
		shown(t, h, "/", `class="state ok"`, "all 3 shards are up to date")
		shown(t, h, "/app?app=billing", `class="state ok"`)
		store.fails.Store(true)
		for range 2 {
			time.Sleep(40 * time.Second)
			for _, target := range []string{"/", "/app?app=billing", "/shard?app=billing&stream=orders&shard=shardId-000000000001"} {
				body := unavailable(t, h, target, `class="state unknown"`, "The store has not answered since 00:00:40 UTC", `id="down"`)
				for _, never := range []string{`class="state ok"`, `class="ok"`, ">alive<", "No application has anything", "</span> unknown: "} {
					if strings.Contains(body, never) {
						t.Errorf("%s says %q: %s", target, never, body)
					}
				}
			}
			unavailable(t, h, "/", "the store has not answered since 00:00:40 UTC; before, it was ok: all 3 shards are up to date")
		}
		store.fails.Store(false)
		beatOnce(t, store, "billing", false)
		if body := shown(t, h, "/", `class="state ok"`); strings.Contains(body, `id="down"`) {
			t.Error("the banner stays")
		}
	})
}

func TestKinesisIsDownInOneBanner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, k := memstore.New(), &kinesis{}
		fill(t, store, "billing", 60)
		h := dashboard.Handler(store, dashboard.Options{Lags: k.lags})
		shown(t, h, "/app?app=billing", `class="state ok"`)
		k.down.Store(true)
		time.Sleep(10 * time.Second)
		beatOnce(t, store, "billing", false)
		body := shown(t, h, "/app?app=billing", "Kinesis has not answered since 00:00:10 UTC:</b> no route to Kinesis", "its lag is unknown", "come from the store")
		if strings.Contains(body, `class="state ok"`) {
			t.Error("a shard whose lag is unknown is ok")
		}
		// Later the workers report the outage, with the same text for each shard.
		var troubles []lease.Trouble
		for i := range 20 {
			troubles = append(troubles, lease.Trouble{
				Key: lease.Key{Stream: "orders", Shard: "shardId-0000000000" + string(rune('0'+i/10)) + string(rune('0'+i%10))}, State: "backing off", For: 3 * time.Minute, Why: "dial tcp: refused",
			})
		}
		beatOnce(t, store, "billing", false, troubles...)
		time.Sleep(2 * time.Second)
		body = shown(t, h, "/app?app=billing", "0 shards have the last error: dial tcp: refused", "backing off since")
		if n := strings.Count(body, "dial tcp"); n > 4 { // the note, the sentence, the text of the picture, and the events
			t.Errorf("the error is there %d times", n)
		}
		k.down.Store(false)
		time.Sleep(10 * time.Second)
		if body := shown(t, h, "/app?app=billing"); strings.Contains(body, `id="down"`) {
			t.Error("the banner stays")
		}
	})
}

// hanging is a store that does not answer until the call ends.
type hanging struct{ *memstore.Store }

func (h hanging) View(ctx context.Context, _, _ string) (lease.View, error) {
	<-ctx.Done()
	return lease.View{}, ctx.Err()
}

func (h hanging) Apps(ctx context.Context) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// If the store hangs, many browsers wait for one read together, and not for one after the other.
func TestRequestsWaitForAHangingStoreTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := dashboard.Handler(hanging{memstore.New()}, dashboard.Options{})
		began := time.Now()
		var browsers sync.WaitGroup
		for range 20 {
			for _, target := range []string{"/", "/app?app=billing"} {
				browsers.Go(func() { unavailable(t, h, target, "The store has not answered since") })
			}
		}
		browsers.Wait()
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the last answer came after %v", took)
		}
	})
}
