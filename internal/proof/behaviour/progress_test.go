package behaviour

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// Records that are done are not delivered again, whatever the order and number of calls of Done.
func TestARetryBeginsAfterWhatIsDone(t *testing.T) {
	done := func(t *testing.T, b *weir.Batch, r weir.Record) {
		t.Helper()
		if err := b.Done(r); err != nil {
			t.Error(err)
		}
	}
	// Each function marks the first n records as done.
	for how, note := range map[string]func(t *testing.T, b *weir.Batch, n int){
		"the last of them": func(t *testing.T, b *weir.Batch, n int) { done(t, b, b.Records[n-1]) },
		"one after the other": func(t *testing.T, b *weir.Batch, n int) {
			for _, r := range b.Records[:n] {
				done(t, b, r)
			}
		},
		"backwards": func(t *testing.T, b *weir.Batch, n int) {
			for _, r := range slices.Backward(b.Records[:n]) {
				done(t, b, r)
			}
		},
		"each twice, in any order": func(t *testing.T, b *weir.Batch, n int) {
			all := append(slices.Clone(b.Records[:n]), b.Records[:n]...)
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for _, r := range all {
				done(t, b, r)
			}
		},
		"of a queue": func(t *testing.T, b *weir.Batch, n int) {
			for range n {
				r := b.Records[0]
				b.Records = b.Records[1:]
				done(t, b, r)
			}
		},
		"of a copy, by goroutines": func(t *testing.T, b *weir.Batch, n int) {
			half := *b
			var all sync.WaitGroup
			for _, r := range b.Records[:n] {
				all.Go(func() { done(t, &half, r) })
			}
			all.Wait()
		},
	} {
		t.Run(how, func(t *testing.T) {
			inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
				var got []string
				calls := 0
				stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
					if calls++; calls%3 == 0 {
						panic("with nothing done")
					}
					n := min(len(b.Records), 1+calls%4)
					got = append(got, data(b.Records[:n])...)
					note(t, b, n)
					return errOnceMore
				})
				time.Sleep(2 * time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("handled %q, want %q", got, want)
				}
			})
		})
	}
}

func TestProgressWithAnythingElseThanTheBatchsRecordsIsRefused(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		want := putSome(t, srv, false)
		var batches []*weir.Batch
		var lists [][]weir.Record
		var got []string
		failed := false
		opts := weir.Options{Batching: weir.Batching{MaxRecords: 10}, Retry: weir.Retry{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}}
		stop := start(t, srv.Client(), memstore.New(), opts, func(ctx context.Context, b *weir.Batch) error {
			batches, lists = append(batches, b), append(lists, b.Records)
			refused := func(what string, of *weir.Batch, r weir.Record) {
				t.Helper()
				if err := of.Done(r); err == nil {
					t.Errorf("Done of %s is accepted", what)
				}
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if err := of.Checkpoint(ctx, r); err == nil {
					t.Errorf("Checkpoint of %s is accepted", what)
				}
			}
			refused("no record", b, weir.Record{})
			refused("a record that was made", b, weir.Record{Data: []byte("x"), SequenceNumber: b.Records[3].SequenceNumber})
			other := b.Records[5]
			other.SequenceNumber = "17"
			refused("a record with another number", b, other)
			other.SequenceNumber = "no number"
			refused("a record without a number", b, other)
			refused("a batch that was made", new(weir.Batch), b.Records[0])
			if lists[0][0].SequenceNumber != b.Records[0].SequenceNumber {
				refused("a later batch's record", batches[0], b.Records[2])
				refused("an earlier batch's record", b, lists[0][4])
				for _, r := range lists[0] { // nothing invalid and nothing new
					if err := errors.Join(batches[0].Done(r), batches[0].Checkpoint(ctx, r)); err != nil {
						t.Error(err)
					}
				}
			}
			if failed = !failed; failed {
				return errOnceMore
			}
			got = append(got, data(b.Records)...)
			return nil
		})
		time.Sleep(30 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("handled %q, want %q", got, want)
		}
	})
}

// Goroutines that a call has left behind may mark progress after the call.
func TestProgressCountsAfterTheHandlerHasReturned(t *testing.T) {
	inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
		opts.Retry.MinBackoff, opts.Retry.MaxBackoff = time.Second, time.Second
		var mu sync.Mutex
		var got []string
		var all sync.WaitGroup
		calls := 0
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			if calls++; len(b.Records) == 0 {
				t.Error("called with nothing to do")
			}
			if b.Attempt != 1 || !b.FirstFailure.IsZero() {
				t.Errorf("attempt %d, failed since %v, of what never was the first of a batch", b.Attempt, b.FirstFailure)
			}
			if calls%4 == 0 { // everything is done when the batch ends
				mu.Lock()
				got = append(got, data(b.Records)...)
				mu.Unlock()
			}
			late := calls%4 == 0
			for _, r := range b.Records {
				all.Go(func() {
					time.Sleep(100 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					if !late {
						got = append(got, string(r.Data))
					}
					if err := b.Done(r); err != nil {
						t.Error(err)
					}
				})
			}
			if late {
				return nil
			}
			return errOnceMore
		})
		time.Sleep(30 * time.Second)
		all.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("handled %q, want %q", got, want)
		}
	})
}

// After another worker has taken the shard, marking progress has no effect and returns an error.
func TestProgressAfterTheLeaseIsLostFails(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		want := putSome(t, srv, false)
		shared := memstore.New()
		store := &faultyStore{Store: shared}
		kept := make(chan *weir.Batch, 1)
		stopFirst := start(t, srv.Client(), store, weir.Options{}, func(ctx context.Context, b *weir.Batch) error {
			if err := b.Done(b.Records[4]); err != nil {
				t.Error(err)
			}
			select {
			case kept <- b:
			default:
			}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, weir.ErrLeaseLost) {
				t.Errorf("the cause is %v", cause)
			}
			if err := b.Done(b.Records[9]); !errors.Is(err, weir.ErrLeaseLost) {
				t.Errorf("Done says %v", err)
			}
			if err := b.Checkpoint(context.Background(), b.Records[9]); !errors.Is(err, weir.ErrLeaseLost) {
				t.Errorf("Checkpoint says %v", err)
			}
			return ctx.Err()
		})
		b := <-kept
		time.Sleep(3 * time.Second) // so that a heartbeat saves it
		store.set(true, 0)
		got := handled(t, srv, shared, weir.Options{})
		if !slices.Equal(got, want[5:]) {
			t.Errorf("the next worker handled %q, want %q", got, want[5:])
		}
		if err := b.Done(b.Records[12]); !errors.Is(err, weir.ErrLeaseLost) {
			t.Errorf("much later Done says %v", err)
		}
		if err := stopFirst(); !errors.Is(err, weir.ErrNotSaved) || !errors.Is(err, weir.ErrNotReleased) {
			t.Errorf("Run of a worker that no longer reaches the store returned %v", err)
		}
	})
}

// position returns the position of the application's only lease.
func position(t *testing.T, store lease.Store) weir.Position {
	t.Helper()
	v, err := store.View(t.Context(), "app", "")
	if err != nil || len(v.Leases) != 1 {
		t.Fatalf("%d leases, %v", len(v.Leases), err)
	}
	return v.Leases[0].Position
}

func TestWhatIsDoneIsSavedWhileTheHandlerIsAtWork(t *testing.T) {
	inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
		store, calls := memstore.New(), 0
		stop := start(t, srv.Client(), store, opts, func(_ context.Context, b *weir.Batch) error {
			if calls++; calls > 1 {
				return nil
			}
			for i, r := range b.Records { // an hour in total
				time.Sleep(time.Hour / time.Duration(len(b.Records)))
				if i > 0 && position(t, store) != b.Records[i-1].Position() {
					t.Errorf("when record %d is about to be done the checkpoint is %v, want %v", i, position(t, store), b.Records[i-1].Position())
				}
				if err := b.Done(r); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		time.Sleep(61 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if calls == 0 || len(want) == 0 {
			t.Error("nothing was handled")
		}
	})
}

// The number of attempts and the time of the first failure belong to the first record of the batch.
func TestAttemptsBelongToTheFirstRecord(t *testing.T) {
	type call struct {
		done   int  // number of records that this call marks as done
		panics bool // the call panics instead of returning an error
	}
	for _, c := range []struct {
		name  string
		calls []call
		want  string // Attempt of each call, and the call whose failure was the first
	}{
		{"nothing ever fails", nil, "1"},
		{"it fails thrice", []call{{}, {}, {}}, "1 2/1 3/1 4/1"},
		{"… in panics", []call{{0, true}, {0, true}}, "1 2/1 3/1"},
		{"… each time at another record", []call{{1, false}, {2, true}, {3, false}}, "1 2/1 2/2 2/3"},
		{"… and gets on in between", []call{{}, {}, {2, false}, {}, {}}, "1 2/1 3/1 2/3 3/3 4/3"},
		{"it is done and panics at once", []call{{}, {1, true}, {0, true}, {1, false}}, "1 2/1 2/2 3/2 2/4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				putSome(t, srv, false)
				var got []string
				var told []int
				var ended []time.Time
				opts := weir.Options{Retry: weir.Retry{MinBackoff: time.Second, MaxBackoff: time.Second}}
				opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.HandlerFailed) { told = append(told, e.Attempt) }))
				stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
					now := fmt.Sprint(b.Attempt)
					if !b.FirstFailure.IsZero() {
						now += fmt.Sprint("/", 1+slices.Index(ended, b.FirstFailure))
					}
					got = append(got, now)
					time.Sleep(time.Second)
					if n := len(got); n <= len(c.calls) {
						ended = append(ended, time.Now())
						this := c.calls[n-1]
						if this.done > 0 {
							if err := b.Done(b.Records[this.done-1]); err != nil {
								t.Error(err)
							}
						}
						if this.panics {
							panic("as the table says")
						}
						return errOnceMore
					}
					return nil
				})
				time.Sleep(time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if s := strings.Join(got, " "); s != c.want {
					t.Errorf("attempts %s, want %s", s, c.want)
				}
				// A failure is reported with the number of the attempt that failed. This is the
				// number for the record that was first in the batch at that time.
				for i, attempt := range told {
					if next := strings.Split(got[i+1], "/")[0]; next != fmt.Sprint(attempt+1) {
						t.Errorf("failure %d was told as attempt %d, and the next call says %s", i+1, attempt, next)
					}
				}
			})
		})
	}
}

func TestARecordKnowsWhatItIs(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		putSome(t, srv, true)
		putSome(t, srv, true)
		seen := map[string]string{} // data and number by ID
		var mu sync.Mutex
		ids := func() int { mu.Lock(); defer mu.Unlock(); return len(seen) }
		calls := 0
		h := func(ctx context.Context, b *weir.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range b.Records {
				if r.Stream() != "s" || r.Shard() != b.Shard {
					t.Errorf("a record of s/%s says that it is of %s/%s", b.Shard, r.Stream(), r.Shard())
				}
				id, what := r.ID(), fmt.Sprintf("%s %s %s", r.Data, r.PartitionKey, r.SequenceNumber)
				if before, known := seen[id]; known && before != what {
					t.Errorf("%s is %s, and was %s", id, what, before)
				}
				seen[id] = what
				if !strings.HasPrefix(id, "s/"+b.Shard+"/"+r.SequenceNumber) {
					t.Errorf("the record %s of %s has the ID %s", r.SequenceNumber, b.Shard, id)
				}
			}
			if calls++; calls%3 != 0 {
				if n := len(b.Records); n > 4 {
					return b.Done(b.Records[n/2])
				}
				return errOnceMore
			}
			return nil
		}
		// IDs must not depend on attempts, parts of pages, applications or ways of reading.
		for i := range 5 {
			opts := weir.Options{App: fmt.Sprint("app-", i%3), Batching: weir.Batching{MaxRecords: []int{1000, 3, 7}[i%3]}, Retry: weir.Retry{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}}
			if i%2 == 1 {
				opts.FanOut.Mode = weir.FanOutRegister
			}
			stop := start(t, srv.Client(), memstore.New(), opts, h)
			time.Sleep(time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if n := ids(); n != 2*(24+6*3) {
			t.Errorf("%d records have %d IDs", 2*(24+6*3), n)
		}
		if r := (weir.Record{SequenceNumber: "1"}); r.ID() != "" || r.Stream() != "" || r.Shard() != "" {
			t.Errorf("a record that was made says it is %s of %s/%s", r.ID(), r.Stream(), r.Shard())
		}
	})
}

type keyOfTest struct{}

func TestTheHandlersContextHasTheValuesOfRuns(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		putSome(t, srv, false)
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, Timing: weir.Timing{StopTimeout: 10 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), keyOfTest{}, "a value"))
		returned := make(chan error, 1)
		why := errors.New("why Run was to end")
		calls := 0
		go func() {
			returned <- c.Run(ctx, weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
				if calls++; calls > 1 {
					t.Error("called again")
				}
				if v := ctx.Value(keyOfTest{}); v != "a value" || ctx.Value("none") != nil {
					t.Errorf("the value is %v", v)
				}
				child, end := context.WithCancel(ctx)
				defer end()
				timed, end := context.WithTimeout(child, time.Hour)
				defer end()
				told := make(chan error, 1)
				context.AfterFunc(timed, func() { told <- context.Cause(timed) })
				cancel(why)
				time.Sleep(9 * time.Second)
				synctest.Wait()
				if ctx.Err() != nil || timed.Err() != nil || context.Cause(ctx) != nil || context.Cause(timed) != nil {
					t.Errorf("the handler's context ends with Run's: %v", context.Cause(ctx))
				}
				began := time.Now()
				<-timed.Done()
				if waited := time.Since(began); waited > 2*time.Second {
					t.Errorf("a child of the context ended %v late", waited)
				}
				for _, c := range []context.Context{ctx, child, timed} {
					if !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(c), weir.ErrStopping) {
						t.Errorf("it ends with %v, because of %v", c.Err(), context.Cause(c))
					}
				}
				if err := <-told; !errors.Is(err, weir.ErrStopping) {
					t.Errorf("AfterFunc is told %v", err)
				}
				if v := timed.Value(keyOfTest{}); v != "a value" {
					t.Errorf("in the end the value is %v", v)
				}
				return ctx.Err()
			}))
		}()
		if err := <-returned; err != nil {
			t.Error(err)
		}
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
}
