package behaviour

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// Workers with Options.Shards read these shards and their descendants, through splits, a merge with
// another shard, and a change of all workers. The other shards have no owner.
func TestConsumersReadTheShardsThatAreNamed(t *testing.T) {
	for name, begin := range map[string]weir.Position{"oldest": weir.Oldest, "latest": weir.Latest} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
				open := srv.OpenShards("s")
				named, store := open[1], memstore.New()
				var mu sync.Mutex
				read := map[string]int{}
				handle := func(_ context.Context, b *weir.Batch) error {
					mu.Lock()
					defer mu.Unlock()
					read[b.Shard] += len(b.Records)
					return nil
				}
				options := weir.Options{Start: begin, Shards: []string{named}, Logger: quiet}
				begin := func() []func() error {
					return []func() error{
						start(t, srv.Client(), store, options, handle), start(t, srv.Client(), store, options, handle),
					}
				}
				put := func() {
					for i := range 200 {
						srv.Put("s", fmt.Sprint(i), []byte("x"))
					}
					time.Sleep(time.Minute)
				}
				stops := begin()
				time.Sleep(time.Minute)
				put()
				lower, upper := srv.Split("s", named)
				srv.Split("s", open[3]) // of no interest
				put()
				for _, stop := range stops {
					if err := stop(); err != nil {
						t.Error(err)
					}
				}
				merged := srv.Merge("s", upper, open[2])
				stops = begin()
				put()
				v, err := store.View(t.Context(), "app", "")
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range v.Leases {
					if within := slices.Contains([]string{lower, merged}, l.Shard); within != (l.Owner != "") || within == l.Finished() {
						t.Errorf("lease %s", l)
					}
				}
				for _, stop := range stops {
					if err := stop(); err != nil {
						t.Error(err)
					}
				}
				want := map[string]int{}
				for _, r := range srv.Records("s") {
					if slices.Contains([]string{named, lower, upper, merged}, r.Shard) {
						want[r.Shard]++
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if !maps.Equal(read, want) {
					t.Errorf("read %v, want %v", read, want)
				}
			})
		})
	}
}

func TestShardsNeedAStream(t *testing.T) {
	srv := kinesistest.NewServer(t)
	for want, o := range map[string]weir.Options{
		"name one stream":          {App: "a", Streams: []string{"s", "t"}, Shards: []string{"shardId-000000000000"}},
		"is not the ID of a shard": {App: "a", Streams: []string{"s"}, Shards: []string{"shard 1"}},
	} {
		if _, err := weir.New(srv.Client(), memstore.New(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
