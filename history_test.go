package weir_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/store/storetest"
)

// reported reads what the workers of an application have reported.
func reported(t *testing.T, store lease.Store) (samples []history.Sample, sessions map[string]int) {
	t.Helper()
	chunks, err := store.(lease.Historian).History(t.Context(), "app", 0)
	if err != nil {
		t.Fatal(err)
	}
	sessions = map[string]int{}
	for _, c := range chunks {
		some, _, err := history.Read(c)
		if err != nil {
			t.Fatal(err)
		}
		sessions[c.Session] += len(some)
		samples = append(samples, some...)
	}
	return samples, sessions
}

func TestOwnersReportHowTheirShardsStand(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
		store := memstore.New()
		slow := func(ctx context.Context, _ *weir.Batch) error {
			select {
			case <-time.After(5 * time.Second):
			case <-ctx.Done():
			}
			return nil
		}
		stop := start(t, srv.Client(), store, weir.Options{Worker: "one", Batch: 1}, slow)
		stopTwo := start(t, srv.Client(), store, weir.Options{Worker: "two", Batch: 1}, slow)
		for range 10 * 60 / 2 { // twice as many as one shard's handler gets done; all of one key
			srv.Put("s", "key", []byte("x"))
			time.Sleep(2 * time.Second)
		}
		v, err := store.View(t.Context(), "app", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stop(), stopTwo()); err != nil {
			t.Error(err)
		}
		samples, sessions := reported(t, store)
		for _, w := range v.Workers {
			if sessions[w.Session] < 18 {
				t.Errorf("session %s reported %d samples of its two shards in 10 minutes", w.Session, sessions[w.Session])
			}
		}
		var busy, idle, began, ended int
		var last time.Duration
		for _, s := range samples {
			switch {
			case s.Busy > 80:
				busy++
				if s.Lag < last && s.Marks&history.Ended == 0 {
					t.Errorf("in minute %d the lag of the busy shard is %v, and was %v", s.Minute, s.Lag, last)
				}
				last = max(last, s.Lag)
			case s.Busy == 0 && s.Lag == 0:
				idle++
			}
			if s.Marks&history.Began != 0 {
				began++
			}
			if s.Marks&history.Ended != 0 {
				ended++
			}
		}
		if busy < 8 || idle < 24 || last < 4*time.Minute || last > 8*time.Minute || began < 4 || ended < 4 {
			t.Errorf("%d samples of a busy shard, which is %v behind at last, %d of idle ones, %d begin, %d end: %+v", busy, last, idle, began, ended, samples)
		}
	})
}

func TestHistoryIsOffWhereItIsNotWanted(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		store := memstore.New()
		stop := start(t, srv.Client(), store, weir.Options{NoHistory: true}, func(context.Context, *weir.Batch) error { return nil })
		time.Sleep(3 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if samples, _ := reported(t, store); len(samples) > 0 {
			t.Errorf("with NoHistory there are %+v", samples)
		}
	})
}

func TestAStoreThatCannotKeepHistoryHoldsUpNothing(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		puts := 0
		store := storetest.Faulty(memstore.New(), func(call string) storetest.Fault {
			if call != "PutHistory" {
				return storetest.Fault{}
			}
			if puts++; puts == 1 {
				panic("of the store")
			}
			return storetest.Fault{Delay: time.Hour}
		})
		s := newSink(t)
		stop := start(t, srv.Client(), store, weir.Options{}, s.handle)
		for range 10 {
			srv.Put("s", "key", s.next("key"))
			time.Sleep(30 * time.Second)
			if n := s.missing(); n > 0 {
				t.Errorf("%d records were not handled", n)
			}
		}
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 5*time.Second || puts < 4 {
			t.Errorf("Run took %v to return, after %d reports", took, puts)
		}
		s.judge()
	})
}
