package sampling

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// chunks is a store that keeps all chunks that are put into it.
type chunks []lease.HistoryChunk

func (c *chunks) PutHistory(_ context.Context, _ string, chunk lease.HistoryChunk) error {
	*c = append(*c, chunk)
	return nil
}

// Each minute has a sample of each shard that is read, and of each shard whose term ended in that
// minute.
func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, gone := lease.Key{Stream: "s", Shard: "1"}, lease.Key{Stream: "s", Shard: "2"}
		var put chunks
		s := &Sampler{
			Store: &put, App: "app", Worker: "w", Log: slog.New(slog.DiscardHandler),
			Shards: func(time.Time) []Standing { return []Standing{{Key: here, Lag: time.Second, Load: 3}} },
		}
		end := s.Start(t.Context())
		time.Sleep(2 * time.Minute)
		if len(put) > 0 {
			t.Errorf("%d reports before the session began", len(put))
		}
		s.Begin("session")
		for i := range 4 {
			s.Look()
			found := supervise.Shard{}
			if i == 0 {
				found.Handling = health.InHandler
			}
			s.See(here, &found)
		}
		s.Mark(here, history.Began)
		s.Throttle(here, 3*time.Second)
		s.Ended(gone, shard.End, event.EndFinished)
		time.Sleep(time.Minute)
		end(true)
		if len(put) != 2 {
			t.Fatalf("%d reports, want one and a last one", len(put))
		}
		got, _, err := history.Read(put[1])
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(got, func(a, b history.Sample) int { return a.Key.Compare(b.Key) })
		if len(got) < 2 || got[0].Key != here || got[len(got)-1].Key != gone {
			t.Fatalf("%+v", got)
		}
		first, last := got[0], got[len(got)-1]
		if first.Busy != 25 || first.Throttled < 5 || first.Load != 3 || first.Lag < 900*time.Millisecond || first.Marks != history.Began {
			t.Errorf("a shard that is read: %+v", first)
		}
		if last.Marks != history.Ended|history.Finished || last.Lag >= 0 {
			t.Errorf("a shard that was finished: %+v", last)
		}
	})
}

// All methods of a nil Sampler may be called and do nothing.
func TestNoSampler(*testing.T) {
	var s *Sampler
	s.Begin("session")
	s.Look()
	s.See(lease.Key{}, &supervise.Shard{Handling: health.InHandler})
	s.Mark(lease.Key{}, history.Began)
	s.Throttle(lease.Key{}, time.Second)
	s.Ended(lease.Key{}, shard.End, event.EndLost)
}
