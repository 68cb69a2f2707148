package behaviour

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// TestAnyAnswerOfAHandlerAccountsForEveryRecord lets a handler report progress and return errors in
// any combination. Each record must then be done according to the handler, or be in a dead letter.
// The counts must match.
func TestAnyAnswerOfAHandlerAccountsForEveryRecord(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
				dice := rand.New(rand.NewPCG(seed, 7))
				const n = 120
				for i := range n {
					srv.Put("s", fmt.Sprint("k", dice.IntN(6)), fmt.Append(nil, i))
				}
				box := &letterbox{}
				opts := weir.Options{
					Batching: weir.Batching{MaxRecords: 1 + dice.IntN(20)}, Retry: weir.Retry{MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond},
					OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: dice.IntN(3), Bisect: seed%4 < 2, OutageGrace: -1, MaxPerMinute: -1},
				}
				if seed%2 == 0 {
					opts.Concurrency = weir.Concurrency{Keys: 3}
				}
				var mu sync.Mutex
				done, old := map[string]bool{}, map[string]bool{}
				var handled, given int64
				opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.BatchHandled) {
					if e.Records < 0 {
						t.Errorf("a batch of %d records", e.Records)
					}
					handled += int64(e.Records)
				}))
				opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.DeadLettered) { given += int64(e.Records) }))
				says := func(rs []weir.Record) {
					for _, r := range rs {
						done[string(r.Data)] = true
					}
				}
				stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
					mu.Lock()
					defer mu.Unlock()
					rs := slices.Clone(b.Records)
					if len(rs) == 0 || dice.IntN(3) == 0 {
						says(rs)
						return nil
					}
					progress := dice.IntN(len(rs))
					if dice.IntN(2) == 0 {
						if err := b.Done(rs[progress]); err != nil {
							t.Error(err)
						}
						says(rs[:progress+1])
					}
					at := dice.IntN(len(rs))
					switch dice.IntN(5) {
					case 0:
						return errOnceMore
					case 1:
						says(rs[:at])
						return weir.FailedAt(rs[at], errOnceMore)
					case 2:
						says(rs[:at])
						return weir.RejectAt(rs[at], errOnceMore)
					case 3:
						says(rs[:at])
						left := 1 + dice.IntN(4)
						for _, r := range rs[at:min(at+left, len(rs))] {
							old[string(r.Data)] = true
						}
						return weir.RejectOld(rs[at], left, nil)
					}
					panic("in the middle")
				})
				time.Sleep(10 * time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				kept := map[string]bool{}
				for _, l := range box.letters() {
					if kept[string(l.Data)] {
						t.Errorf("two dead letters of %s", l.Data)
					}
					kept[string(l.Data)] = true
					if l.Reason == deadletter.Age && !old[string(l.Data)] {
						t.Errorf("a dead letter says that %s is too old, which the handler did not say", l.Data)
					}
				}
				for i := range n {
					if name := fmt.Sprint(i); !done[name] && !kept[name] {
						t.Errorf("record %s was neither handled nor given up", name)
					}
				}
				if handled+given != n || int(given) != len(kept) {
					t.Errorf("%d were handled and %d given up (%d dead letters) of %d", handled, given, len(kept), n)
				}
			})
		})
	}
}
