package behaviour

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// cutOff returns the names of the workers that report that they are cut off.
func cutOff(t *testing.T, store lease.Store) (names []string) {
	t.Helper()
	v, err := store.View(t.Context(), "app", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range v.Workers {
		if w.CutOff() {
			names = append(names, w.Name)
		}
	}
	return names
}

// A worker that is cut off gets no more shards, whether it has many shards or one. It recovers by
// itself.
func TestAWorkerThatIsCutOffGetsNothingMore(t *testing.T) {
	for _, shards := range []int{2, 5} {
		for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
			bubble(t, shards, func(t *testing.T, srv *kinesistest.Server) {
				s, store := newSink(t), memstore.New()
				var events told
				a, client := linked(srv)
				stopA := start(t, client, store, weir.Options{Worker: "a", FanOut: weir.FanOut{Mode: reading}, OnEvent: events.events()}, s.handle)
				stopB := start(t, srv.Client(), store, weir.Options{Worker: "b", FanOut: weir.FanOut{Mode: reading}}, s.handle)
				until(t, "each has its share", time.Minute, func() bool {
					has := held(t, store)
					return has["a"] >= shards/2 && has["b"] >= shards/2
				})
				a.down.Store(true)
				if reading == weir.FanOutRegister {
					time.Sleep(6 * time.Minute) // a subscription that is open already continues
				}
				fill(srv, s, 20, 5)
				until(t, "b handles everything", 6*time.Minute, func() bool { return s.missing() == 0 })
				before := len(events.all())
				for range 100 {
					if names := holders(t, store); len(names) != 1 || names[0] != "b" {
						t.Errorf("%d shards, %v: leases are held by %v", shards, reading, names)
					}
					if names := cutOff(t, store); len(names) != 1 || names[0] != "a" {
						t.Errorf("%d shards, %v: cut off are %v", shards, reading, names)
					}
					time.Sleep(9 * time.Second)
				}
				// With fan-out, a worker counts as cut off only after its last subscription has
				// ended, which takes up to five minutes. Until then, it gets another shard for each
				// one that it gives up after StallAfter. It can therefore give up three leases for
				// each of its shards except the last.
				most := (shards + 1) / 2
				if reading == weir.FanOutRegister {
					most = 3*(most-1) + 1
				}
				if n := len(events.all()); n != before || n > most {
					t.Errorf("%d shards, %v: %d leases were released, then %d", shards, reading, before, n)
				}
				a.down.Store(false)
				took := until(t, "a has some again", time.Minute, func() bool { return len(holders(t, store)) == 2 })
				if took > 10*time.Second {
					t.Errorf("%d shards, %v: a has leases again after %v", shards, reading, took)
				}
				if names := cutOff(t, store); len(names) != 0 {
					t.Errorf("cut off are %v", names)
				}
				fill(srv, s, 20, 5)
				until(t, "the rest is handled", time.Minute, func() bool { return s.missing() == 0 })
				if err := errors.Join(stopA(), stopB()); err != nil {
					t.Error(err)
				}
				s.judge()
			})
		}
	}
}

// If no worker can read a shard, the owner of the shard does not report that it is cut off.
func TestAShardThatCannotBeReadIsNotItsWorkersFault(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		store := memstore.New()
		bad := srv.OpenShards("s")[0]
		srv.Control("GetRecords", func(c *kinesistest.Call) kinesistest.Fault {
			if c.Shard == bad {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure", Status: 500}}
			}
			return kinesistest.Fault{}
		})
		s := newSink(t)
		var events told
		stopA := start(t, srv.Client(), store, weir.Options{Worker: "a", OnEvent: events.events()}, s.handle)
		stopB := start(t, srv.Client(), store, weir.Options{Worker: "b", OnEvent: events.events()}, s.handle)
		until(t, "both have some", time.Minute, func() bool { return len(holders(t, store)) == 2 })
		for range 600 {
			time.Sleep(time.Second)
			if names := cutOff(t, store); len(names) > 0 {
				t.Errorf("cut off are %v", names)
			}
		}
		if len(events.all()) == 0 {
			t.Error("the shard was never released")
		}
		if err := errors.Join(stopA(), stopB()); err != nil {
			t.Error(err)
		}
	})
}

// While all workers are cut off, no shard is without an owner for long.
func TestAllWorkersAreCutOff(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
		s, store := newSink(t), memstore.New()
		a, clientA := linked(srv)
		b, clientB := linked(srv)
		stopA := start(t, clientA, store, weir.Options{Worker: "a"}, s.handle)
		stopB := start(t, clientB, store, weir.Options{Worker: "b"}, s.handle)
		until(t, "both have some", time.Minute, func() bool { return len(holders(t, store)) == 2 })
		a.down.Store(true)
		time.Sleep(20 * time.Second)
		b.down.Store(true)
		free := 0
		for range 600 {
			time.Sleep(time.Second)
			v, err := store.View(t.Context(), "app", "")
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range v.Leases {
				if l.Owner == "" {
					free++
				}
			}
		}
		if names := cutOff(t, store); len(names) != 2 {
			t.Errorf("cut off are %v", names)
		}
		if free > 30 { // 2,400 times a lease was looked at
			t.Errorf("leases were seen without an owner %d times", free)
		}
		fill(srv, s, 20, 5)
		a.down.Store(false)
		b.down.Store(false)
		until(t, "everything handled", time.Minute, func() bool { return s.missing() == 0 })
		if err := errors.Join(stopA(), stopB()); err != nil {
			t.Error(err)
		}
		s.judge()
	})
}
