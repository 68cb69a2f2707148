package behaviour

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// Handlers that keep, drop, copy and slice Data at random never see a kept byte change. By default
// they keep Data itself, and with ReuseBuffers they keep copies. Released memory is overwritten, or
// used again while the worker reads on.
func TestKeptDataNeverChanges(t *testing.T) {
	seeds := uint64(1)
	if longform.On() {
		seeds = 10
	}
	for _, poison := range []string{"", "1"} {
		for _, reuse := range []bool{false, true} {
			for _, mode := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
				for seed := range seeds {
					t.Run(fmt.Sprintf("poison=%s,reuse=%v,%v,%d", poison, reuse, mode, seed), func(t *testing.T) {
						t.Setenv("WEIR_POISON", poison)
						testKept(t, seed, weir.Options{ReuseBuffers: reuse, FanOut: weir.FanOut{Mode: mode}})
					})
				}
			}
		}
	}
}

// keeper is a handler that keeps some of the data.
type keeper struct {
	t    *testing.T
	opts weir.Options

	mu   sync.Mutex
	dice *rand.Rand
	kept []keptPart
	seen map[uint64]bool
}

// keptPart is a part of a record's data, beginning at an offset, with the record's key and a copy
// of the key.
type keptPart struct {
	id   uint64
	from int
	data []byte
	key  string
	copy string
}

// payloadOf returns the data of a record: its ID, and bytes that follow from it.
func payloadOf(id uint64) []byte {
	dice := rand.New(rand.NewPCG(id, 3))
	size := 9 + dice.IntN(200)
	if dice.IntN(20) == 0 {
		size += dice.IntN(5000)
	}
	b := binary.BigEndian.AppendUint64(nil, id)
	for len(b) < size {
		b = append(b, byte(dice.Uint32()))
	}
	return b
}

func keyOf(id uint64) string { return fmt.Sprint("key ", id) }

func testKept(t *testing.T, seed uint64, opts weir.Options) {
	bubble(t, 3, func(t *testing.T, srv *kinesistest.Server) {
		k := &keeper{t: t, dice: rand.New(rand.NewPCG(seed, 9)), seen: map[uint64]bool{}}
		opts.Batching = weir.Batching{MaxRecords: 1 + k.dice.IntN(40), MaxWait: time.Duration(k.dice.IntN(2)) * time.Second}
		if !opts.ReuseBuffers && k.dice.IntN(2) == 0 {
			opts.Concurrency.Keys, opts.Batching.MaxWait = 4, 0
		}
		opts.Retry.MinBackoff, opts.Retry.MaxBackoff = 10*time.Millisecond, 10*time.Millisecond
		k.opts = opts
		store, stop := memstore.New(), func() error { return nil }
		defer func() { _ = stop() }()
		put := uint64(0)
		for range 6 {
			if err := stop(); err != nil {
				t.Error(err)
			}
			stop = start(t, srv.Client(), store, opts, k.handle)
			for range 4 {
				put = k.put(srv, put)
				time.Sleep(k.between(2 * time.Second))
				k.check() // the worker goes on in the meantime
			}
			runtime.GC() // so that dropped memory is used again
		}
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		k.check()
		if len(k.seen) != int(put) {
			t.Errorf("handled %d of %d records", len(k.seen), put)
		}
		if len(k.kept) == 0 {
			t.Error("nothing was kept")
		}
	})
}

// between returns a random time below most.
func (k *keeper) between(most time.Duration) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Duration(k.dice.Int64N(int64(most)))
}

// put puts some records, also in aggregates. next is the ID of the first record. put returns the ID
// after the last one.
func (k *keeper) put(srv *kinesistest.Server, next uint64) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	for range k.dice.IntN(20) {
		if k.dice.IntN(4) > 0 {
			srv.Put("s", keyOf(next), payloadOf(next))
			next++
			continue
		}
		var parts [][]byte
		first := next
		for range 1 + k.dice.IntN(9) {
			parts = append(parts, payloadOf(next))
			next++
		}
		srv.Put("s", keyOf(first), packedOf(k.t, parts...))
	}
	return next
}

// handle compares the data of a batch with what was put, and keeps some of it. It sometimes fails.
func (k *keeper) handle(_ context.Context, b *weir.Batch) error {
	time.Sleep(k.between(100 * time.Millisecond)) // other shards are read in the meantime
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range b.Records {
		r := &b.Records[i]
		if len(r.Data) < 8 {
			k.t.Errorf("a record with the data %x", r.Data)
			continue
		}
		id := binary.BigEndian.Uint64(r.Data)
		if !bytes.Equal(r.Data, payloadOf(id)) {
			k.t.Errorf("record %d of %s has other data in its handler", id, b.Shard)
			continue
		}
		k.seen[id] = true
		e := keptPart{id: id, data: r.Data, key: r.PartitionKey, copy: strings.Clone(r.PartitionKey)}
		switch k.dice.IntN(4) {
		case 0: // drop it
			continue
		case 1: // keep all of it
		case 2: // keep a part
			e.from = k.dice.IntN(len(r.Data))
			e.data = r.Data[e.from : e.from+k.dice.IntN(len(r.Data)-e.from)]
		case 3:
			e.data = bytes.Clone(r.Data)
		}
		if k.opts.ReuseBuffers {
			e.data, e.key = bytes.Clone(e.data), e.copy
		}
		k.kept = append(k.kept, e)
	}
	if k.dice.IntN(10) == 0 {
		return errOnceMore
	}
	return nil
}

// check verifies everything that was kept, and then drops some of it.
func (k *keeper) check() {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := k.kept[:0]
	for _, e := range k.kept {
		if want := payloadOf(e.id)[e.from:]; !bytes.HasPrefix(want, e.data) {
			k.t.Fatalf("the data that was kept of record %d, from byte %d on, has changed", e.id, e.from)
		}
		if e.key != e.copy {
			k.t.Fatalf("the kept partition key %q of record %d is now %q", e.copy, e.id, e.key)
		}
		if k.dice.IntN(3) > 0 {
			left = append(left, e)
		}
	}
	clear(k.kept[len(left):])
	k.kept = left
}
