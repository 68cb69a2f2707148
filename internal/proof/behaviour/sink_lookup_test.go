package behaviour

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// blind is a store whose reads fail for a worker while its heartbeats succeed.
type blind struct{ lease.Store }

func (blind) View(context.Context, string, string) (lease.View, error) {
	return lease.View{}, errors.New("no permission to look")
}

// To open the shards of a sink, a worker must find out their ancestors. A worker that cannot do so
// gives up the shards, like one that cannot read.
func TestShardsOfASinkMoveToAWorkerThatCanOpenThem(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
		for i := range 40 {
			srv.Put("s", fmt.Sprint(i), []byte("data"))
		}
		store, db := memstore.New(), newDatabase()
		opts := weir.Options{Timing: weir.Timing{StallAfter: time.Minute}}
		var stops []func() error
		for _, s := range []lease.Store{blind{store}, store} {
			stops = append(stops, startShards(t, srv, s, opts, db.handlers()))
		}
		time.Sleep(3 * time.Minute)
		db.mu.Lock()
		n := len(db.effects)
		db.mu.Unlock()
		if n != 40 {
			t.Errorf("the sink has %d of 40 records", n)
		}
		// The shards stay at the worker that can open them, because the other worker reports that
		// it is cut off.
		worst := 0
		for i := range 120 {
			for j := range 40 {
				srv.Put("s", fmt.Sprint(j), fmt.Appendf(nil, "data %d", i))
			}
			time.Sleep(10 * time.Second)
			db.mu.Lock()
			worst = max(worst, 40*(i+2)-len(db.effects))
			db.mu.Unlock()
		}
		if worst > 0 {
			t.Errorf("the sink was up to %d records behind for ten seconds", worst)
		}
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A stop, which hands the leases off, does not wait for the position of a sink.
func TestAHandOffDoesNotWaitForASinksPosition(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		h := newDatabase().handlers()
		h.Position = func(ctx context.Context, _, _ string) (weir.Position, error) {
			<-ctx.Done()
			return weir.Position{}, ctx.Err()
		}
		stop := startShards(t, srv, memstore.New(), weir.Options{}, h)
		time.Sleep(5 * time.Second)
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v to stop", took)
		}
	})
}
