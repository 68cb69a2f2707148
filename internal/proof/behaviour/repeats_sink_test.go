package behaviour

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// A shard whose only records are repeats of its parent's records is done for a sink, although the
// sink never gets them. The sink does not store the ends of shards.
func TestASinkIsNotBehindInRepeats(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		store, s := memstore.New(), newDatabase()
		srv.Put("s", "key", numberedBox(t, 7, 1, 2))
		stop := startShards(t, srv, store, weir.Options{DropRepeats: true}, s.handlers())
		for _, numbers := range [][]uint64{{1}, {2, 1}, {3}} {
			time.Sleep(20 * time.Second)
			for _, open := range srv.OpenShards("s") {
				srv.Split("s", open)
			}
			srv.Put("s", "key", numberedBox(t, 7, numbers...))
		}
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if want := []string{"1", "2", "3"}; !slices.Equal(s.effects, want) || len(s.opened) > 15 {
			t.Errorf("the sink has %q, want %q; %d shards were opened", s.effects, want, len(s.opened))
		}
	})
}
