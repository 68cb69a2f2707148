package behaviour

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
	effects "github.com/weir-go/weir/sink"
	"github.com/weir-go/weir/sink/sinktest"
	"github.com/weir-go/weir/store/memstore"
)

// Each record takes effect exactly once, and the records of a key are applied in order. Workers
// have different numbers of partitions. There are aggregates, restarts, resharding, lost answers of
// the sink and of the store, and the sink is restored from a backup while no worker runs.
func TestPartitionsOfSinksAtRandom(t *testing.T) {
	seeds := uint64(3)
	if longform.On() {
		seeds = 30
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubbleWith(t, kinesistest.Config{NoLimits: true}, 2, func(t *testing.T, srv *kinesistest.Server) {
				partitionsAtRandom(t, srv, rand.New(rand.NewPCG(seed, 11)))
			})
		})
	}
}

func partitionsAtRandom(t *testing.T, srv *kinesistest.Server, rng *rand.Rand) {
	var (
		mu    sync.Mutex
		dice  = rand.New(rand.NewPCG(rng.Uint64(), 1)) // of the sink
		quiet bool
	)
	often := func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		return !quiet && dice.IntN(n) == 0
	}
	errLost := errors.New("the answer was lost")
	db := &sinktest.Memory{
		Before: func(string) error {
			if often(15) {
				return errLost
			}
			return nil
		},
		After: func() error {
			if often(15) {
				return errLost
			}
			return nil
		},
	}
	apply := func(_ context.Context, tx *sinktest.Tx, b *weir.Batch) error {
		for _, r := range b.Records {
			tx.Add(string(r.Data))
		}
		if often(20) {
			return errLost
		}
		return nil
	}
	work := func(store *forgetful, parts int, opts weir.Options) (stop func() error) {
		s, err := effects.New(db, effects.Options{Partitions: parts})
		if err != nil {
			t.Fatal(err)
		}
		opts.Retry.MaxBackoff = time.Second
		return startRun(t, srv, store, opts, func(ctx context.Context, c *weir.Consumer) error { return c.RunShards(ctx, s.Handlers(apply)) })
	}
	store := &forgetful{Store: memstore.New()}
	keys, written := [9]int{}, 0
	next := func() (key string, data []byte) {
		k := rng.IntN(len(keys))
		keys[k]++
		written++
		return fmt.Sprint("key ", k), fmt.Appendf(nil, "%d %d", k, keys[k])
	}
	restores := []func(){db.Backup()}
	for phase := range 6 {
		var stops []func() error
		for range 1 + rng.IntN(2) {
			opts := weir.Options{Batching: weir.Batching{MaxRecords: 1 + rng.IntN(5)}}
			parts := []int{0, 2, 16}[rng.IntN(3)]
			if parts > 0 && rng.IntN(2) == 0 {
				opts.Concurrency = weir.Concurrency{Keys: 3, MaxRecords: 100}
			}
			if rng.IntN(3) == 0 {
				opts.FanOut.Mode = weir.FanOutRegister
			}
			stops = append(stops, work(store, parts, opts))
		}
		for range 4 {
			for range rng.IntN(30) {
				key, data := next()
				srv.Put("s", key, data)
			}
			if open := srv.OpenShards("s"); rng.IntN(2) == 0 && len(open) == 1 {
				var b aggregate.Builder
				for range rng.IntN(20) {
					key, data := next()
					if err := b.Add(key, "", data); err != nil {
						t.Fatal(err)
					}
				}
				srv.Put("s", "any", b.Append(nil))
			}
			time.Sleep(time.Duration(rng.IntN(20)) * time.Second)
			if open := srv.OpenShards("s"); rng.IntN(2) == 0 && len(open) < 8 {
				srv.Split("s", open[rng.IntN(len(open))])
			} else if rng.IntN(2) == 0 && len(open) > 1 {
				mergeTwo(t, srv, open)
			}
			if rng.IntN(3) == 0 {
				restores = append(restores, db.Backup())
			}
		}
		time.Sleep(time.Duration(rng.IntN(30)) * time.Second)
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
		// The first backup has no positions, so weir would take the sink for a new one.
		if phase < 5 && rng.IntN(2) == 0 && len(restores) > 1 {
			restores[1+rng.IntN(len(restores)-1)]()
		}
	}
	stop := work(store, 4, weir.Options{})
	time.Sleep(15 * time.Minute)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	all := db.Effects()
	if len(all) != written {
		t.Errorf("%d effects of %d records", len(all), written)
	}
	last := [9]int{}
	for _, e := range all {
		var k, n int
		if _, err := fmt.Sscan(e, &k, &n); err != nil {
			t.Fatal(err)
		}
		if last[k]++; n != last[k] {
			t.Fatalf("key %d: effect %d came after %d", k, n, last[k]-1)
		}
	}
}

// A partition whose effects fail does not delay others at first. Its record becomes a dead letter,
// and the sink remembers that.
func TestAPartitionThatFails(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		const parts = 4
		db := new(sinktest.Memory)
		s, err := effects.New(db, effects.Options{Partitions: parts})
		if err != nil {
			t.Fatal(err)
		}
		bad, good := "k0", ""
		for i := 1; good == ""; i++ {
			if k := fmt.Sprint("k", i); shard.Partition(k, parts) != shard.Partition(bad, parts) {
				good = k
			}
		}
		var letters []string
		before := 0 // effects when the letter was put
		to := deadletter.Func(func(_ context.Context, all []deadletter.Letter) error {
			for _, l := range all {
				letters = append(letters, string(l.Data))
			}
			before = len(db.Effects())
			return nil
		})
		run := func() (stop func() error) {
			return startRun(t, srv, memstore.New(), weir.Options{
				OnFailure: weir.FailurePolicy{Destination: s.Letters(to), MaxAttempts: 3}, Retry: weir.Retry{MinBackoff: time.Second},
			}, func(ctx context.Context, c *weir.Consumer) error {
				return c.RunShards(ctx, s.Handlers(func(_ context.Context, tx *sinktest.Tx, b *weir.Batch) error {
					if want := shard.Partition(b.Records[0].PartitionKey, parts); b.Partition != want {
						t.Errorf("the batch is of partition %d, want %d", b.Partition, want)
					}
					for _, r := range b.Records {
						if string(r.Data) == "bad" {
							return weir.FailedAt(r, errors.New("oops"))
						}
						tx.Add(string(r.Data))
					}
					return nil
				}))
			})
		}
		srv.Put("s", bad, []byte("bad"))
		for i := range 5 {
			srv.Put("s", good, fmt.Appendf(nil, "good %d", i))
		}
		stop := run()
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(letters) != 1 || before != 5 {
			t.Errorf("the letters %q came after %d effects, want one after 5", letters, before)
		}
		stop = run() // with new leases, from the position of the sink
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if n := len(db.Effects()); len(letters) != 1 || n != 5 {
			t.Errorf("after a restart there are the letters %q and %d effects", letters, n)
		}
	})
}

// Each record is either applied or left out for its age, once, although the second worker reads
// records again that the sink has, between others. The first worker is held up by one key.
func TestOldRecordsOfASink(t *testing.T) {
	for _, parts := range [][2]int{{4, 16}, {16, 4}, {16, 0}} {
		t.Run(fmt.Sprint(parts), func(t *testing.T) { leavesOutOld(t, parts) })
	}
}

func leavesOutOld(t *testing.T, parts [2]int) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		db := new(sinktest.Memory)
		var (
			mu      sync.Mutex // guards letters
			letters []string
		)
		to := deadletter.Func(func(_ context.Context, all []deadletter.Letter) error {
			mu.Lock()
			defer mu.Unlock()
			for _, l := range all {
				letters = append(letters, string(l.Data))
			}
			return nil
		})
		run := func(parts int, stuck string) {
			s, err := effects.New(db, effects.Options{Partitions: parts})
			if err != nil {
				t.Fatal(err)
			}
			isOld := func(r weir.Record) bool { return strings.HasPrefix(string(r.Data), "old") }
			stop := startRun(t, srv, memstore.New(), weir.Options{OnFailure: weir.FailurePolicy{Destination: s.Letters(to)}}, func(ctx context.Context, c *weir.Consumer) error {
				return c.RunShards(ctx, s.Handlers(func(_ context.Context, tx *sinktest.Tx, b *weir.Batch) error {
					for i, r := range b.Records {
						if isOld(r) {
							n := 0
							for i+n < len(b.Records) && isOld(b.Records[i+n]) {
								n++
							}
							return weir.RejectOld(r, n, errors.New("the shop has closed"))
						}
						if r.PartitionKey == stuck {
							return weir.FailedAt(r, errors.New("oops"))
						}
						tx.Add(string(r.Data))
					}
					return nil
				}))
			})
			time.Sleep(10 * time.Minute)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
		var fresh, old []string
		for i := range 200 {
			data, all := fmt.Sprintf("new %d", i), &fresh
			if i/3%2 == 0 {
				data, all = fmt.Sprintf("old %d", i), &old
			}
			*all = append(*all, data)
			srv.Put("s", fmt.Sprint("k", i*7%10), []byte(data))
		}
		run(parts[0], "k3")
		if n := len(letters); n == len(old) || n == 0 {
			t.Errorf("the first worker left out %d of %d records", n, len(old))
		}
		run(parts[1], "")
		got := db.Effects()
		for _, all := range [][]string{got, letters, fresh, old} {
			slices.Sort(all)
		}
		if !slices.Equal(got, fresh) || !slices.Equal(letters, old) {
			t.Errorf("%d of %d effects and %d of %d letters: %v, %v", len(got), len(fresh), len(letters), len(old), got, letters)
		}
	})
}
