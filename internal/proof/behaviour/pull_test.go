package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

func checkpointOf(t *testing.T, store lease.Store) weir.Position {
	t.Helper()
	view, err := store.View(t.Context(), "app", "")
	if err != nil {
		t.Fatal(err)
	}
	return view.Leases[0].Position
}

// A pulled record is done only when the test marks it. Marking also works for earlier batches and
// from other goroutines.
func TestWhatIsPulledIsDoneWhenThatIsSaid(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		t.Run(reading.String(), func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				put(srv, 1, 9)
				store := memstore.New()
				batches := make(chan *weir.Batch, 100)
				var ended error
				stop := startPull(t, srv, store, weir.Options{Batching: weir.Batching{MaxRecords: 2}, FanOut: weir.FanOut{Mode: reading}}, weir.PullHandler{
					Pull: func(_ context.Context, s *weir.Puller) error {
						for b, err := range s.Batches() {
							if err != nil {
								ended = err
								return err
							}
							batches <- b
						}
						return nil
					},
				})
				time.Sleep(20 * time.Second)
				if at := checkpointOf(t, store); at != weir.Oldest {
					t.Errorf("nothing is done, but the checkpoint is %v", at)
				}
				var got []*weir.Batch
				for range 5 {
					got = append(got, <-batches)
				}
				if err := got[2].Checkpoint(t.Context(), got[2].Records[0]); err != nil {
					t.Error(err)
				}
				if err := got[1].Done(got[1].Records[1]); err != nil { // an earlier record
					t.Error(err)
				}
				if at := checkpointOf(t, store); at != got[2].Records[0].Position() {
					t.Errorf("the checkpoint is %v", at)
				}
				if err := got[3].Done(got[4].Records[0]); err == nil {
					t.Error("a record of another batch was taken for one of this")
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
				if !errors.Is(ended, weir.ErrStopping) {
					t.Errorf("the iteration ended with %v", ended)
				}
				if rest := handled(t, srv, store, weir.Options{}); !slices.Equal(rest, numbers(9)[5:]) {
					t.Errorf("handled after that: %v", rest)
				}
				if err := got[4].Done(got[4].Records[0]); !errors.Is(err, weir.ErrLeaseLost) {
					t.Errorf("progress under a lease that is over: %v", err)
				}
			})
		})
	}
}

// A function that pulls fails, panics or returns early, and is called again. It does not receive
// records again that are done.
func TestAFunctionThatPullsAndFails(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		put(srv, 1, 100)
		var mu sync.Mutex
		var done []string
		calls := 0
		stop := startPull(t, srv, memstore.New(), weir.Options{Batching: weir.Batching{MaxRecords: 7}}, weir.PullHandler{
			Pull: func(_ context.Context, s *weir.Puller) error {
				mu.Lock()
				calls++
				call := calls
				mu.Unlock()
				pulled := 0
				for b, err := range s.Batches() {
					if err != nil {
						return nil
					}
					// Every second batch is done when a record of the next batch is done.
					if pulled++; pulled%2 == 0 {
						continue
					}
					if call%3 == 1 && pulled == 3 {
						return errors.New("oh")
					}
					if call%3 == 2 && pulled == 3 {
						panic("oh")
					}
					if call%3 == 0 && pulled == 3 {
						return nil // before the end of the shard
					}
					for _, r := range b.Records {
						mu.Lock()
						done = append(done, string(r.Data))
						mu.Unlock()
						if err := b.Done(r); err != nil {
							return err
						}
					}
				}
				return nil
			},
		})
		time.Sleep(20 * time.Minute)
		srv.Split("s", srv.OpenShards("s")[0])
		time.Sleep(5 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if calls < 4 {
			t.Errorf("%d calls", calls)
		}
		seen := map[string]bool{}
		for _, d := range done {
			if seen[d] {
				t.Errorf("%s was done twice", d)
			}
			seen[d] = true
		}
	})
}

// The end of a shard is saved after the function has returned nil. Then the children are read.
func TestPullingToTheEndOfAShard(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		put(srv, 1, 10)
		srv.Split("s", srv.OpenShards("s")[0])
		put(srv, 11, 20)
		var mu sync.Mutex
		var got []string
		failed := false
		stop := startPull(t, srv, memstore.New(), weir.Options{}, weir.PullHandler{
			Pull: func(_ context.Context, s *weir.Puller) error {
				end := false
				for b, err := range s.Batches() {
					if err != nil {
						return err
					}
					mu.Lock()
					for _, r := range b.Records {
						got = append(got, string(r.Data))
						_ = b.Done(r)
					}
					mu.Unlock()
					end = b.End
				}
				if end && !failed {
					failed = true
					return fmt.Errorf("at the end")
				}
				time.Sleep(time.Second)
				return nil
			},
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(got, numbers(20)) {
			t.Errorf("%v", got)
		}
	})
}

// With ReuseBuffers, a pulled batch is valid until the next batch is requested. This holds even if
// the worker's ownership of the shard (the term) ends before that.
func TestAPulledBatchOutlastsItsTerm(t *testing.T) {
	t.Setenv("WEIR_POISON", "1")
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		t.Run(reading.String(), func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				srv.Put("s", "k", []byte("what it was"))
				var said []string
				stop := startPull(t, srv, memstore.New(), weir.Options{FanOut: weir.FanOut{Mode: reading}, ReuseBuffers: true, Timing: weir.Timing{StopTimeout: time.Second}}, weir.PullHandler{
					Pull: func(ctx context.Context, s *weir.Puller) error {
						for b, err := range s.Batches() {
							if err != nil {
								return err
							}
							<-ctx.Done()
							time.Sleep(2 * time.Second)
							said = append(said, string(b.Records[0].Data))
						}
						return nil
					},
				})
				time.Sleep(5 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if !slices.Equal(said, []string{"what it was"}) {
					t.Errorf("the record said %q when the function looked at it", said)
				}
			})
		})
	}
}

// A batch that is done before the next one is requested has not failed, and counts as handled.
func TestAPulledBatchThatIsDoneIsNoFailure(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		put(srv, 1, 9)
		store := memstore.New()
		var failures int
		stop := startPull(t, srv, store, weir.Options{
			Batching: weir.Batching{MaxRecords: 2}, OnEvent: event.On(func(_ context.Context, f event.HandlerFailed) { failures++; t.Error(f.Err) }),
		}, weir.PullHandler{
			Pull: func(ctx context.Context, s *weir.Puller) error {
				for b, err := range s.Batches() {
					if err != nil {
						return err
					}
					if err := b.Checkpoint(ctx, b.Records[len(b.Records)-1]); err != nil {
						return err
					}
				}
				return nil
			},
		})
		time.Sleep(20 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if rest := handled(t, srv, store, weir.Options{}); len(rest) != 0 || failures != 0 {
			t.Errorf("%d failures were told, and %v is handled again", failures, rest)
		}
	})
}

// Puller.Checkpoint returns when the position is durable, and refuses positions that were not
// yielded.
func TestAPullerSavesAPosition(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		put(srv, 1, 5)
		store := memstore.New()
		last := srv.LastRecords("s")
		saved := make(chan *weir.Puller, 1)
		stop := startPull(t, srv, store, weir.Options{Batching: weir.Batching{MaxRecords: 2}}, weir.PullHandler{
			Pull: func(ctx context.Context, p *weir.Puller) error {
				for b, err := range p.Batches() {
					if err != nil {
						return err
					}
					if len(saved) > 0 {
						continue
					}
					at := b.Records[0].Position()
					if err := p.Checkpoint(ctx, at); err != nil {
						t.Error(err)
					}
					if got := checkpointOf(t, store); got != at {
						t.Errorf("the checkpoint is %v, not %v", got, at)
					}
					for _, r := range last {
						after, err := shard.After(r.SequenceNumber)
						if err != nil {
							t.Fatal(err)
						}
						if err := p.Checkpoint(ctx, after); err == nil {
							t.Error("a position was saved that was not yielded")
						}
					}
					saved <- p
				}
				return nil
			},
		})
		p := <-saved
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := p.Checkpoint(t.Context(), p.From); !errors.Is(err, weir.ErrLeaseLost) {
			t.Errorf("progress under a lease that is over: %v", err)
		}
	})
}
