package behaviour

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// A record of one key fails, so the checkpoint stays before that record. Records of other keys
// after the checkpoint are done. Whether the next owner receives them again depends on its options
// and on how it gets the shard.
func TestWhatIsDoneBeyondTheCheckpoint(t *testing.T) {
	const each = 10
	keys := someKeys(20)
	others := len(keys)*each - each // records of the keys that do not fail
	for _, row := range []struct {
		name    string
		between func(t *testing.T, store *memstore.Store)
		next    weir.Options
		skipped bool
	}{
		{name: "is part of a handoff", next: parallel(8), skipped: true},
		{name: "is handled again after a reset, also to the same place", next: parallel(8), between: reset(false)},
		{name: "is handled again after a reset to the beginning", next: parallel(8), between: reset(true)},
		{name: "is handled again after a reset by an earlier version, which keeps notes that it does not know", next: parallel(8), between: resetAsBefore},
		{name: "is handled again by who handles one batch after the other", next: weir.Options{}},
		{name: "is handled again by who makes other things of aggregates", next: weir.Options{Concurrency: weir.Concurrency{Keys: 8}, Aggregates: weir.KeepPacked}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
				if err != nil {
					t.Fatal(err)
				}
				defer srv.Close()
				srv.CreateStream("s", 1)
				putKeys(srv, keys, each)
				store := memstore.New()

				h := newKeyed(t, time.Millisecond)
				h.does = func(_ context.Context, _ *weir.Batch, r weir.Record) error {
					if r.PartitionKey == keys[0] {
						return errors.New("not this one")
					}
					return nil
				}
				_, stop, over := runs(t, srv, store, parallel(8), h.handle)
				until(t, "the others are done", time.Minute, func() bool { return h.all() == others })
				stop()
				if err := <-over; err != nil {
					t.Fatal(err)
				}
				if row.between != nil {
					row.between(t, store)
				}

				next := newKeyed(t, time.Millisecond)
				handle := next.handle
				if row.next.Concurrency.Keys == 0 {
					handle = func(_ context.Context, b *weir.Batch) error {
						next.mu.Lock()
						defer next.mu.Unlock()
						for _, r := range b.Records {
							next.got[r.PartitionKey] = append(next.got[r.PartitionKey], string(r.Data))
						}
						return nil
					}
				}
				c, stop, over := runs(t, srv, store, row.next, handle)
				want := each
				if !row.skipped {
					want += others
				}
				until(t, "the rest is done", time.Minute, func() bool { return next.all() >= want })
				time.Sleep(5 * time.Second)
				stop()
				if err := <-over; err != nil {
					t.Fatal(err)
				}
				if n := c.Counts().RecordsSkipped; next.all() != want || n != uint64(len(keys)*each-want) {
					t.Errorf("%d were handled, want %d; %d skipped", next.all(), want, n)
				}
				next.inOrder(keys[:1], each)
				if !row.skipped {
					next.inOrder(keys, each)
				}
				v, err := store.View(t.Context(), "app", "")
				if err != nil {
					t.Fatal(err)
				}
				if all := srv.Records("s"); v.Leases[0].Position.SequenceNumber() != all[len(all)-1].SequenceNumber {
					t.Errorf("the checkpoint is %v, not the last record", v.Leases[0].Position)
				}
			})
		})
	}
}

func parallel(keys int) weir.Options { return weir.Options{Concurrency: weir.Concurrency{Keys: keys}} }

// reset returns a function that resets the shard to its current position, or to the beginning.
func reset(beginning bool) func(t *testing.T, store *memstore.Store) {
	return func(t *testing.T, store *memstore.Store) {
		t.Helper()
		v, err := store.View(t.Context(), "app", "")
		if err != nil {
			t.Fatal(err)
		}
		l := v.Leases[0]
		to := l.Position
		if beginning {
			to = weir.Oldest
		}
		did, err := store.Apply(t.Context(), "app", []lease.Action{{Kind: lease.Move, Key: l.Key, Epoch: l.Epoch, Position: to}})
		if err != nil || !did[0] {
			t.Fatalf("%v, %v", did, err)
		}
	}
}

// resetAsBefore resets the shard to its current position like a client that does not know the note
// about done records. The epoch changes, and the note stays.
func resetAsBefore(t *testing.T, store *memstore.Store) {
	t.Helper()
	v, err := store.View(t.Context(), "app", "")
	if err != nil {
		t.Fatal(err)
	}
	l := v.Leases[0]
	if l.DeathsHere().Beyond == "" {
		t.Fatal("nothing is noted")
	}
	moved := l
	moved.Epoch++
	did, err := store.Apply(t.Context(), "app", []lease.Action{{Kind: lease.Replace, Key: l.Key, Epoch: l.Epoch, Lease: moved}})
	if err != nil || !did[0] {
		t.Fatalf("%v, %v", did, err)
	}
}
