package behaviour

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// A shard that expired before it was read is reported as lost, and its children are read.
func TestTheChildrenOfAShardThatIsGoneAreRead(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		t.Run(reading.String(), func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				store := memstore.New()
				s := &seen{data: map[string]int{}}
				var log lines
				opts := weir.Options{FanOut: weir.FanOut{Mode: reading}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
				stop := start(t, srv.Client(), store, opts, s.handle)
				srv.Put("s", "k", []byte("1"))
				time.Sleep(10 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				srv.Put("s", "k", []byte("lost"))
				srv.Split("s", srv.OpenShards("s")[0])
				time.Sleep(50 * time.Hour)
				srv.Put("s", "k", []byte("2"))
				stop = start(t, srv.Client(), store, opts, s.handle)
				time.Sleep(30 * time.Second)
				if n := log.count("a shard expired before it was read"); n != 1 || s.all() != "s 1, s 2" {
					t.Errorf("said %d times; handled %q", n, s.all())
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A worker that finds that its shards have expired has just listed the stream. The child of these
// shards is read without waiting for the leader's next listing.
func TestTheChildOfShardsThatAreGoneWaitsForNoListing(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		t.Run(reading.String(), func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
				store := memstore.New()
				s := &seen{data: map[string]int{}}
				// For a stream given by name, fan-out would query the ARN.
				opts := weir.Options{Streams: []string{srv.StreamARN("s")}, FanOut: weir.FanOut{Mode: reading}}
				stop := start(t, srv.Client(), store, opts, s.handle)
				time.Sleep(10 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				open := srv.OpenShards("s")
				srv.Merge("s", open[0], open[1])
				time.Sleep(50 * time.Hour)
				srv.Put("s", "k", []byte("1"))
				// The leader's listing begins with this call.
				srv.Control("DescribeStreamSummary", func(*kinesistest.Call) kinesistest.Fault {
					return kinesistest.Fault{Delay: 15 * time.Second}
				})
				stop = start(t, srv.Client(), store, opts, s.handle)
				until(t, "the child is read", 5*time.Second, func() bool { return s.all() == "s 1" })
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestReaderGoesOnWithTheChildrenOfAShardThatIsGone(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "k", []byte("1"))
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s", Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for rec, err := range r.Records(t.Context()) {
			if err != nil {
				got = append(got, err.Error())
				continue
			}
			switch got = append(got, string(rec.Data[:1])); got[len(got)-1] {
			case "1": // after this record, the handler blocks for two days
				// Later records are not read ahead.
				srv.Put("s", "k", append([]byte("2"), make([]byte, 1<<19)...))
				time.Sleep(5 * time.Second)
				srv.Put("s", "k", []byte("lost"))
				srv.Split("s", srv.OpenShards("s")[0])
				time.Sleep(50 * time.Hour)
				srv.Put("s", "k", []byte("3"))
			}
			if got[len(got)-1] == "3" {
				break
			}
		}
		if len(got) != 4 || got[1] != "2" || !strings.Contains(got[2], "has left the stream") || got[3] != "3" {
			t.Errorf("got %q", got)
		}
	})
}

// If a stream is deleted while workers run, this is logged once, and not by each shard at each
// attempt.
func TestAStreamThatIsGoneIsToldOnce(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		t.Run(reading.String(), func(t *testing.T) {
			bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
				s := &seen{data: map[string]int{}}
				var log lines
				opts := weir.Options{FanOut: weir.FanOut{Mode: reading}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
				stop := start(t, srv.Client(), memstore.New(), opts, s.handle)
				time.Sleep(10 * time.Second)
				srv.DeleteStream("s")
				time.Sleep(9 * time.Minute) // iterators expire after five minutes
				if n, of := log.count("the stream no longer exists"), log.count("level=ERROR"); n != 1 || of != 1 {
					t.Errorf("it was said %d times, of %d errors: %q", n, of, log.all)
				}
				if n := log.count("fails repeatedly"); n != 0 {
					t.Errorf("and %d times that its shards cannot be read", n)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
