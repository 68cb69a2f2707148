package behaviour

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// flaky is a database that sometimes fails. Some of its workers pull records.
type flaky struct {
	*database
	complete bool // it removes nothing, and reports shards that it does not know as new
	mu       sync.Mutex
	rng      *rand.Rand
}

func (f *flaky) often(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rng.IntN(n) == 0
}

// apply is a transaction: effects and position change together, or not at all.
func (f *flaky) apply(id string, records []weir.Record) error {
	if f.often(10) {
		return errors.New("the transaction was rolled back")
	}
	f.database.mu.Lock()
	defer f.database.mu.Unlock()
	for _, r := range records {
		if r.Position().Compare(f.at[id]) > 0 {
			f.effects, f.at[id] = append(f.effects, string(r.Data)), r.Position()
		}
	}
	return nil
}

// runs returns a function that runs a worker whose handlers pull, or not.
func (f *flaky) runs(pull bool) func(context.Context, *weir.Consumer) error {
	return func(ctx context.Context, c *weir.Consumer) error { return f.run(ctx, c, pull) }
}

func (f *flaky) run(ctx context.Context, c *weir.Consumer, pull bool) error {
	position := func(ctx context.Context, _, id string) (weir.Position, error) {
		f.database.mu.Lock()
		at := f.at[id]
		f.database.mu.Unlock()
		switch {
		case f.often(8):
			return weir.Position{}, errors.New("no connection")
		case f.often(20):
			panic("oh")
		case f.often(20):
			return weir.Latest, nil // not a valid position of a sink
		case f.often(40):
			<-ctx.Done()
			return weir.Position{}, nil // this is not an answer either
		case at.IsZero() && f.complete:
			return weir.Oldest, nil
		}
		return at, nil
	}
	if pull {
		return c.RunPull(ctx, weir.PullHandler{Position: position, Pull: func(_ context.Context, s *weir.Puller) error {
			for b, err := range s.Batches() {
				if err != nil {
					return err
				}
				if err := f.apply(s.Shard, b.Records); err != nil {
					return err
				}
				if n := len(b.Records); n > 0 && !f.often(3) { // otherwise a later call marks it
					if err := b.Done(b.Records[n-1]); err != nil {
						return err
					}
				}
			}
			return nil
		}})
	}
	return c.RunShards(ctx, weir.ShardHandlers{Position: position, Open: func(_ context.Context, t weir.Term) (weir.ShardHandler, error) {
		if f.often(10) {
			return nil, errors.New("no connection")
		}
		return shardFunc(func(_ context.Context, b *weir.Batch) error { return f.apply(t.Shard, b.Records) }), nil
	}})
}

// Each record takes effect exactly once, and the records of a key are applied in order. There are
// restarts, resharding and failures of the sink and of the store. The sink is also restored from a
// backup while no worker runs.
func TestSinksThatAreSetBackAtRandom(t *testing.T) {
	seeds := uint64(3)
	if longform.On() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubbleWith(t, kinesistest.Config{NoLimits: true}, 2, func(t *testing.T, srv *kinesistest.Server) {
				rng := rand.New(rand.NewPCG(seed, 7))
				store := memstore.New()
				db := &flaky{newDatabase(), seed%2 == 0, sync.Mutex{}, rand.New(rand.NewPCG(seed, 8))}
				backups := []*database{db.backup()}
				keys, written := [6]int{}, 0
				for phase := range 6 {
					var stops []func() error
					for range 1 + rng.IntN(2) {
						opts := weir.Options{Batching: weir.Batching{MaxRecords: 1 + rng.IntN(5)}, Retry: weir.Retry{MaxBackoff: time.Second}}
						if rng.IntN(3) == 0 {
							opts.FanOut.Mode = weir.FanOutRegister
						}
						stops = append(stops, startRun(t, srv, &forgetful{Store: store}, opts, db.runs(rng.IntN(2) == 0)))
					}
					for range 4 {
						for range rng.IntN(30) {
							k := rng.IntN(len(keys))
							keys[k]++
							written++
							srv.Put("s", fmt.Sprint("key ", k), fmt.Appendf(nil, "%d %d", k, keys[k]))
						}
						time.Sleep(time.Duration(rng.IntN(20)) * time.Second)
						if open := srv.OpenShards("s"); rng.IntN(2) == 0 && len(open) < 8 {
							srv.Split("s", open[rng.IntN(len(open))])
						} else if rng.IntN(2) == 0 && len(open) > 1 {
							mergeTwo(t, srv, open)
						}
						if rng.IntN(3) == 0 {
							backups = append(backups, db.backup())
						}
					}
					time.Sleep(time.Duration(rng.IntN(30)) * time.Second)
					for _, stop := range stops {
						if err := stop(); err != nil {
							t.Fatal(err)
						}
					}
					if phase < 5 && rng.IntN(2) == 0 {
						// Restore a backup only if weir can detect what was lost. Either the sink
						// reports unknown shards as new, or the backup has positions of both
						// initial shards. Otherwise a lost shard looks like a new one.
						b := backups[rng.IntN(len(backups))]
						if db.complete || len(b.at) > 1 && !b.at["shardId-000000000000"].IsZero() && !b.at["shardId-000000000001"].IsZero() {
							db.database = b.backup()
						}
					}
				}
				stop := startRun(t, srv, store, weir.Options{Retry: weir.Retry{MaxBackoff: time.Second}}, db.runs(false))
				time.Sleep(15 * time.Minute)
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				if len(db.effects) != written {
					t.Errorf("%d effects of %d records", len(db.effects), written)
				}
				last := [6]int{}
				for _, e := range db.effects {
					var k, n int
					if _, err := fmt.Sscan(e, &k, &n); err != nil {
						t.Fatal(err)
					}
					if last[k]++; n != last[k] {
						t.Fatalf("key %d: effect %d came after %d", k, n, last[k]-1)
					}
				}
			})
		})
	}
}

// mergeTwo merges two adjacent shards if there are any.
func mergeTwo(t *testing.T, srv *kinesistest.Server, open []string) {
	list, err := srv.Client().ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("s")})
	if err != nil {
		t.Fatal(err)
	}
	starts := map[string]string{} // of open shards
	for _, s := range list.Shards {
		if slices.Contains(open, *s.ShardId) {
			starts[*s.HashKeyRange.StartingHashKey] = *s.ShardId
		}
	}
	for _, s := range list.Shards {
		end, _ := new(big.Int).SetString(*s.HashKeyRange.EndingHashKey, 10)
		if next := starts[end.Add(end, big.NewInt(1)).String()]; next != "" && slices.Contains(open, *s.ShardId) {
			srv.Merge("s", *s.ShardId, next)
			return
		}
	}
}

// forgetful is a store whose Apply sometimes returns an error after it took effect.
type forgetful struct {
	lease.Store
	mu sync.Mutex
	n  int
}

func (f *forgetful) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	did, err := f.Store.Apply(ctx, app, actions)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; err == nil && f.n%7 == 0 {
		return nil, errors.New("the answer was lost")
	}
	return did, err
}
