package behaviour

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// backlog puts n records into stream s. Each has size bytes, including the key.
func backlog(srv *kinesistest.Server, n, size int) {
	data := []byte(strings.Repeat("x", size-1))
	for range n {
		srv.Put("s", "k", data)
	}
}

// sharer is an application that counts what it reads.
type sharer struct {
	stop                      func() error
	records, bytes, throttled atomic.Int64
	failed                    atomic.Int64
}

func share(t *testing.T, srv *kinesistest.Server, app string, part float64) *sharer {
	s := new(sharer)
	s.stop = start(t, srv.Client(), memstore.New(), weir.Options{
		App: app, Polling: weir.Polling{Share: part}, OnEvent: event.On(func(_ context.Context, e event.ReadFailed) {
			if e.Throttled {
				s.throttled.Add(1)
			} else {
				s.failed.Add(1)
			}
		}),
	}, func(_ context.Context, b *weir.Batch) error {
		s.records.Add(int64(len(b.Records)))
		for _, r := range b.Records {
			s.bytes.Add(int64(len(r.Data) + len(r.PartitionKey)))
		}
		return nil
	})
	return s
}

// Several applications, each with a share of a shard's throughput, catch up at the same time. No
// application is throttled, and each gets its full share.
func TestReadSharesLeaveEachOtherRoom(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		shares        []float64
		records, size int
		later         time.Duration // delay before each further application starts
	}{
		"two halves":                 {[]float64{.5, .5}, 2000, 10 << 10, 0},
		"two halves, one later":      {[]float64{.5, .5}, 2000, 10 << 10, 330 * time.Millisecond},
		"two halves, small records":  {[]float64{.5, .5}, 40_000, 400, 70 * time.Millisecond},
		"two halves, large records":  {[]float64{.5, .5}, 60, 250 << 10, 0},
		"a large and two small ones": {[]float64{.6, .2, .2}, 1000, 10 << 10, 0},
		"five":                       {[]float64{.2, .2, .2, .2, .2}, 500, 10 << 10, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				backlog(srv, test.records, test.size)
				all := make([]*sharer, len(test.shares))
				for i, part := range test.shares {
					all[i] = share(t, srv, fmt.Sprintf("app-%d", i), part)
					time.Sleep(test.later)
				}
				least := 1.
				for _, part := range test.shares {
					least = min(least, part)
				}
				bytes := float64(test.records * test.size)
				within := time.Duration(bytes / (least * 2 * mib) * 1.2 * float64(time.Second))
				within += 10 * time.Second // until the size of records is known
				until(t, "everything read", within, func() bool {
					for _, s := range all {
						if s.records.Load() < int64(test.records) {
							return false
						}
					}
					return true
				})
				time.Sleep(time.Minute) // at the tip
				for i, s := range all {
					if err := s.stop(); err != nil {
						t.Error(err)
					}
					if n, m := s.throttled.Load(), s.failed.Load(); n+m > 0 {
						t.Errorf("application %d was throttled %d times, and failed %d times", i, n, m)
					}
				}
			})
		})
	}
}

// In any ten seconds, an application makes no more calls and reads no more bytes than its share
// allows. This holds both behind the tip and at the tip.
func TestReadShareBoundsCallsAndBytes(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		share         float64
		records, size int
	}{
		"a fifth, behind":                {.2, 4000, 10 << 10},
		"a fifth, behind, tiny records":  {.2, 20_000, 20},
		"a fifth, behind, large records": {.2, 40, 900 << 10},
		"a twentieth, behind":            {.05, 1000, 10 << 10},
		"a half, behind":                 {.5, 9000, 10 << 10},
		"a fifth, at the tip":            {.2, 0, 2},
		"a twentieth, at the tip":        {.05, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				backlog(srv, test.records, test.size)
				s := share(t, srv, "app", test.share)
				if test.records == 0 {
					go func() { // records at the tip must not make it faster
						for range 600 {
							time.Sleep(100 * time.Millisecond)
							srv.Put("s", "k", []byte("x"))
						}
					}()
				}
				until(t, "a first read", 10*time.Second, func() bool { return srv.Requests("GetRecords") > 0 })
				// No measured interval begins or ends at the moment of a read, which could then
				// count in both intervals or in neither.
				time.Sleep(10 * time.Millisecond)
				for range 6 {
					reads, bytes := srv.Requests("GetRecords"), s.bytes.Load()
					time.Sleep(10 * time.Second)
					reads, bytes = srv.Requests("GetRecords")-reads, s.bytes.Load()-bytes
					if most := int(math.Ceil(10 * 5 * test.share)); reads > most {
						t.Errorf("%d reads in ten seconds, %d are its share", reads, most)
					}
					// A record may be larger than the budget. The application then waits longer
					// before its next reads.
					if most := 10*2*mib*test.share + float64(test.size) + mib*max(test.share, .2)*2; float64(bytes) > most {
						t.Errorf("%d bytes in ten seconds, %.0f are its share", bytes, most)
					}
				}
				total := float64(s.bytes.Load())
				if most := 65*2*mib*test.share + float64(test.size); total > most {
					t.Errorf("%.0f bytes in all, %.0f are its share", total, most)
				}
				if err := s.stop(); err != nil {
					t.Error(err)
				}
				if n := s.throttled.Load(); n > 0 {
					t.Errorf("throttled %d times", n)
				}
			})
		})
	}
}

func TestReadShareIsChecked(t *testing.T) {
	client := kinesistest.NewServer(t, kinesistest.Config{InMemory: true}).Client()
	for part, good := range map[float64]bool{
		0: true, .01: true, .5: true, 1: true,
		-.5: false, 1.01: false, 5: false, 1e-9: false, math.NaN(): false, math.Inf(1): false, math.Inf(-1): false,
	} {
		_, err := weir.New(client, memstore.New(), weir.Options{App: "a", Streams: []string{"s"}, Polling: weir.Polling{Share: part}})
		if good != (err == nil) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("Options.Polling.Share %v must be between 0.01 and 1", part)) {
			t.Errorf("%v: %v", part, err)
		}
		_, err = weir.NewReader(client, weir.ReaderOptions{Stream: "s", Polling: weir.Polling{Share: part}})
		if good != (err == nil) || err != nil && !strings.Contains(err.Error(), "ReaderOptions.Polling.Share") {
			t.Errorf("%v: %v", part, err)
		}
	}
}

// A Reader also obeys ReaderOptions.Polling.Share.
func TestAReaderKeepsToItsShare(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		const records, size = 500, 10 << 10
		backlog(srv, records, size)
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s", Polling: weir.Polling{Share: .2}, UntilTip: true})
		if err != nil {
			t.Fatal(err)
		}
		began, n := time.Now(), 0
		for _, err := range r.Records(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		took := time.Since(began)
		if reads := srv.Requests("GetRecords"); n != records || time.Duration(reads-1)*time.Second > took || took < 11*time.Second || took > 20*time.Second {
			t.Errorf("%d records in %v and %d reads", n, took, reads)
		}
	})
}

// The numbers of throttled reads and of other failed reads stay available after reads succeed
// again.
func TestShardsCountsThrottledReads(t *testing.T) {
	for reading, action := range map[weir.FanOutMode]string{weir.FanOutOff: "GetRecords", weir.FanOutRegister: "SubscribeToShard"} {
		t.Run(reading.String(), func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				fail := map[int]string{2: "ProvisionedThroughputExceededException", 3: "InternalFailure", 4: "ProvisionedThroughputExceededException"}
				srv.Control(action, func(c *kinesistest.Call) kinesistest.Fault {
					if code := fail[c.N]; code != "" {
						return kinesistest.Fault{Err: &kinesistest.Error{Code: code}}
					}
					return kinesistest.Fault{}
				})
				c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, FanOut: weir.FanOut{Mode: reading}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					done <- c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil }))
				}()
				time.Sleep(15 * time.Minute)
				s := c.Shards()[0]
				if s.Throttled != 2 || s.Failed != 1 || s.Attempt != 0 || s.Err != nil {
					t.Errorf("%+v", s)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
