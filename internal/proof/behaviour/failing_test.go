package behaviour

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// troublesOf returns the troubles in the heartbeat of the application's only worker.
func troublesOf(t *testing.T, store lease.Store) []lease.Trouble {
	t.Helper()
	v, err := store.View(t.Context(), "app", "")
	if err != nil || len(v.Workers) != 1 {
		t.Fatalf("%v, %d workers", err, len(v.Workers))
	}
	return v.Workers[0].Troubles
}

// The store shows the record at which a handler fails, and why it is not dead-lettered. It also
// shows that dead letters cannot be stored, and the number of records that were recently
// dead-lettered. When everything is well again, it shows nothing.
func TestAWorkerTellsAtWhatItsHandlerFails(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		box := &letterbox{fail: func(put int) error {
			if put <= 30 {
				return errors.New("no such bucket")
			}
			return nil
		}}
		srv.Put("s", "jane@example.com", []byte("good"))
		srv.Put("s", "jane@example.com", []byte("bad"))
		srv.Put("s", "jane@example.com", []byte("good"))
		store := memstore.New()
		var id atomic.Value
		stop := start(t, srv.Client(), store, weir.Options{Batching: weir.Batching{MaxRecords: 2}, Retry: weir.Retry{MaxBackoff: 4 * time.Second}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 5, OutageGrace: time.Minute}},
			func(_ context.Context, b *weir.Batch) error {
				for _, r := range b.Records {
					if string(r.Data) == "bad" {
						id.Store(r.ID())
						return weir.FailedAt(r, errors.New("the database\x1b[31m\nis full"))
					}
				}
				return nil
			})
		hash := fmt.Sprintf("%x", sha256.Sum256([]byte("jane@example.com")))[:8]
		see := func(what string, after time.Duration, good func(tr lease.Trouble) bool) {
			t.Helper()
			time.Sleep(after)
			all := troublesOf(t, store)
			if len(all) != 1 || all[0].Stream != "s" || all[0].Shard == "" || !strings.HasSuffix(id.Load().(string), "/"+all[0].Failing.At) || all[0].Failing.At == "" || !good(all[0]) {
				t.Fatalf("%s: %#v", what, all)
			}
		}
		see("a handler that fails", 13*time.Second, func(tr lease.Trouble) bool {
			f := tr.Failing
			return f.KeyHash == hash && f.Records == 1 && f.Attempts >= 4 && !f.Letters && f.GivenUp == 0 && tr.Why == "the database [31m is full" && tr.For >= 10*time.Second
		})
		see("the brake", 20*time.Second, func(tr lease.Trouble) bool {
			return tr.Failing.Held == lease.HeldForOutage && tr.Failing.Attempts > 5
		})
		see("dead letters that fail", 40*time.Second, func(tr lease.Trouble) bool {
			return tr.Failing.Letters && tr.Failing.Held == "" && tr.State == "letters cannot be put" && tr.Why == "no such bucket"
		})
		see("what was dead-lettered", 3*time.Minute, func(tr lease.Trouble) bool {
			return tr.State == lease.GaveUp && tr.Failing == lease.Failing{At: tr.Failing.At, GivenUp: 1} && strings.Contains(tr.Why, "is full")
		})
		time.Sleep(time.Hour)
		if all := troublesOf(t, store); len(all) != 0 {
			t.Errorf("when all is well for an hour: %+v", all)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// If the handler does not name the failed record, the reported trouble contains the number of
// records that may have failed.
func TestAWorkerTellsHowManyItsHandlerFailsAt(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		for i := range 5 {
			srv.Put("s", "k", fmt.Append(nil, i))
		}
		store := memstore.New()
		stop := start(t, srv.Client(), store, weir.Options{}, func(context.Context, *weir.Batch) error { return errors.New("no") })
		time.Sleep(30 * time.Second)
		all := troublesOf(t, store)
		if len(all) != 1 || all[0].Failing.Records != 5 || all[0].Failing.At == "" {
			t.Errorf("%+v", all)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// The troubles contain, for each shard, the number of records that were recently dead-lettered.
func TestRecordsGivenUpAreToldBesideOtherTroubles(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
		const first, second = "shardId-000000000000", "shardId-000000000001"
		for range 20 {
			for i := range 40 {
				srv.Put("s", fmt.Sprint("k", i), []byte("x"))
			}
		}
		store := memstore.New()
		failed := map[string]*int{first: new(int), second: new(int)}
		stop := start(t, srv.Client(), store, weir.Options{OnFailure: weir.FailurePolicy{Destination: &letterbox{}, MaxAttempts: 1, OutageGrace: -1, MaxPerMinute: -1}},
			func(_ context.Context, b *weir.Batch) error {
				n := failed[b.Shard]
				switch {
				case b.Shard == first && *n < 3, b.Shard == second && *n < 1:
					*n++
					return weir.FailedAt(b.Records[0], errors.New("once"))
				}
				return nil
			})
		time.Sleep(5 * time.Minute)
		all := troublesOf(t, store)
		if len(all) != 2 || all[0].Shard != first || all[0].Failing.GivenUp != 3 || all[1].Shard != second || all[1].Failing.GivenUp != 1 {
			t.Errorf("%+v", all)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
