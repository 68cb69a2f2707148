package behaviour

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
)

// behind puts large records of the given number and size into each shard of "s", and some small
// ones.
func behind(srv *kinesistest.Server, records, size int) {
	open := srv.OpenShards("s")
	keys := map[string]string{}
	for i := 0; len(keys) < len(open); i++ {
		key := fmt.Sprint("k", i)
		id, _ := srv.Put("s", key, nil)
		keys[id] = key
	}
	data := bytes.Repeat([]byte{'x'}, size)
	for _, key := range keys {
		for range records {
			srv.Put("s", key, data)
		}
	}
}

func reader(t *testing.T, client weir.Kinesis, opts weir.ReaderOptions) *weir.Reader {
	t.Helper()
	opts.Stream, opts.Logger = "s", quiet
	r, err := weir.NewReader(client, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// gone fills the shards of "s" with more records than a Reader reads ahead. It then splits the
// shards and waits until they have expired. Each child gets at least one record.
func gone(srv *kinesistest.Server) {
	for i := range 20 {
		srv.Put("s", string(rune('a'+i)), make([]byte, 1<<20-10))
		time.Sleep(time.Second)
	}
	for _, id := range srv.OpenShards("s") {
		srv.Split("s", id)
	}
	time.Sleep(50 * time.Hour)
	behind(srv, 0, 0)
}

// Shards that have expired are reported as lost once each, and their children are read. This works
// even if listing the children fails for a while; the caller receives that error.
func TestReaderGoesOnWithTheChildrenOfShardsThatAreGone(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		for name, c := range map[string]struct {
			shards  int
			failing time.Duration
		}{"listed at once": {3, 0}, "listed later": {1, time.Minute}} {
			t.Run(reading.String()+", "+name, func(t *testing.T) {
				bubble(t, c.shards, func(t *testing.T, srv *kinesistest.Server) {
					opts := weir.ReaderOptions{FanOut: weir.FanOut{Mode: reading}}
					if reading == weir.FanOutRegister {
						opts.FanOut = weir.FanOut{Mode: weir.FanOutTemporary, Name: "me"}
					}
					srv.Put("s", "k", []byte("1"))
					open := srv.OpenShards("s")
					var mu sync.Mutex
					began, lists := false, 0
					var since time.Time
					srv.Control("ListShards", func(*kinesistest.Call) kinesistest.Fault {
						mu.Lock()
						defer mu.Unlock()
						// The Reader lists the shards once for each shard, to check whether the
						// shard has expired.
						if lists++; began && lists > c.shards && time.Since(since) < c.failing {
							return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}}
						}
						return kinesistest.Fault{}
					})
					lost, failed, read := 0, 0, map[string]bool{}
					for b, err := range reader(t, srv.Client(), opts).Batches(t.Context()) {
						switch {
						case err != nil && strings.Contains(err.Error(), "has left the stream"):
							lost++
						case err != nil && strings.Contains(err.Error(), "InternalFailure"):
							failed++
						case err != nil:
							t.Error(err)
						case !began:
							gone(srv)
							mu.Lock()
							began, since, lists = true, time.Now(), 0
							mu.Unlock()
						case !slices.Contains(open, b.Shard):
							read[b.Shard] = true
						}
						if len(read) == 2*c.shards {
							break
						}
					}
					if lost == 0 || lost > c.shards || (failed > 0) != (c.failing > 0) {
						t.Errorf("%d shards were said to be lost, %d failures; %v were read", lost, failed, slices.Sorted(maps.Keys(read)))
					}
				})
			})
		}
	}
}

// If the stream is deleted, reading ends. It does not matter when the Reader notices the deletion.
func TestReaderEndsWithItsStream(t *testing.T) {
	for name, end := range map[string]func(*kinesistest.Server){
		"gone": func(srv *kinesistest.Server) { srv.DeleteStream("s") },
		"gone after its shards": func(srv *kinesistest.Server) {
			n := 0
			srv.Control("ListShards", func(*kinesistest.Call) kinesistest.Fault {
				if n++; n > 1 { // the shard has checked whether it has expired
					return kinesistest.Fault{Err: &kinesistest.Error{Code: "ResourceNotFoundException"}}
				}
				return kinesistest.Fault{}
			})
			gone(srv)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				srv.Put("s", "k", []byte("1"))
				var last error
				records := 0
				for _, err := range reader(t, srv.Client(), weir.ReaderOptions{}).Records(t.Context()) {
					if last = err; err == nil {
						if records++; records == 1 {
							end(srv)
						}
					}
				}
				if records == 0 || !errors.Is(last, weir.ErrStreamNotFound) {
					t.Errorf("%d records, and in the end %v", records, last)
				}
			})
		})
	}
}

// The order is kept across splits and merges, even if the loop is so slow that answers are
// discarded and requested again.
func TestReaderKeepsOrderWhileTheLoopIsSlow(t *testing.T) {
	bubbleWith(t, kinesistest.Config{NoLimits: true}, 2, func(t *testing.T, srv *kinesistest.Server) {
		s := newSink(t)
		long := strings.Repeat("k", 240)
		put := func() {
			for range 300 {
				for k := range 20 {
					key := fmt.Sprint(long, k)
					srv.Put("s", key, s.next(key))
				}
			}
		}
		put()
		open := srv.OpenShards("s")
		merged := srv.Merge("s", open[0], open[1])
		s.born(merged, open...)
		put()
		lower, upper := srv.Split("s", merged)
		s.born(lower, merged)
		s.born(upper, merged)
		put()
		reads, batches := srv.Requests("GetRecords"), 0
		for b, err := range reader(t, srv.Client(), weir.ReaderOptions{UntilTip: true, MaxMemory: 16 << 20}).Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			leave := s.enter(t.Context(), b)
			time.Sleep(1500 * time.Millisecond)
			if err := s.write(b); err != nil {
				t.Error(err)
			}
			leave()
			batches++
		}
		s.judge()
		if s.again != 0 {
			t.Errorf("%d records came twice", s.again)
		}
		if n := srv.Requests("GetRecords") - reads; batches < 12 {
			t.Errorf("%d batches of %d reads: nothing was read in parts", batches, n)
		}
	})
}
