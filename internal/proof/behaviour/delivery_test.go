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
	"github.com/weir-go/weir/store/memstore"
)

var errOnceMore = errors.New("once more")

// readings contains ways of reading that make no difference to a handler.
var readings = []struct {
	name   string
	opts   weir.Options
	packed bool
}{
	{"polling", weir.Options{}, false},
	{"polling, parts of pages", weir.Options{Batching: weir.Batching{MaxRecords: 7}}, false},
	{"polling, aggregates", weir.Options{Batching: weir.Batching{MaxRecords: 7}}, true},
	{"fan-out", weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}}, false},
	{"fan-out, aggregates", weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}, Batching: weir.Batching{MaxRecords: 7}}, true},
	{"reused buffers", weir.Options{ReuseBuffers: true, Batching: weir.Batching{MaxRecords: 7}}, false},
	{"reused buffers, aggregates", weir.Options{ReuseBuffers: true, Batching: weir.Batching{MaxRecords: 7}}, true},
	{"reused buffers, fan-out", weir.Options{ReuseBuffers: true, FanOut: weir.FanOut{Mode: weir.FanOutRegister}}, false},
}

// inEachReading runs f for each way of reading, with a stream of one shard that contains some
// records. want is the data of the records in order.
func inEachReading(t *testing.T, f func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string)) {
	t.Helper()
	for _, r := range readings {
		t.Run(r.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				opts := r.opts
				opts.Retry.MinBackoff, opts.Retry.MaxBackoff = 10*time.Millisecond, 10*time.Millisecond
				f(t, srv, opts, putSome(t, srv, r.packed))
			})
		})
	}
}

// putSome puts 30 records into stream "s". If aggregates is true, some of them are aggregates of
// three records.
func putSome(t *testing.T, srv *kinesistest.Server, aggregates bool) (names []string) {
	t.Helper()
	for i := range 30 {
		name := fmt.Sprint("r ", i)
		if !aggregates || i%5 != 2 {
			srv.Put("s", fmt.Sprint("key ", i), []byte(name))
			names = append(names, name)
			continue
		}
		srv.Put("s", fmt.Sprint("key ", i), packed(t, name, 3))
		names = append(names, name+" 1", name+" 2", name+" 3")
	}
	return names
}

// texts formats the records with their properties.
func texts(records []weir.Record) (all []string) {
	for _, r := range records {
		all = append(all, fmt.Sprintf("%s|%s|%s|%v|%v", r.Data, r.PartitionKey, r.SequenceNumber, r.Position(), r.ArrivalTime().UnixMilli()))
	}
	return all
}

func data(records []weir.Record) (all []string) {
	for _, r := range records {
		all = append(all, string(r.Data))
	}
	return all
}

// habits contains changes that Go code may make to a slice argument or its array.
var habits = map[string]func(b *weir.Batch){
	"takes records off as from a queue": func(b *weir.Batch) { b.Records = b.Records[len(b.Records)/2:] },
	"takes all of them off":             func(b *weir.Batch) { b.Records = b.Records[len(b.Records):] },
	"drops the slice":                   func(b *weir.Batch) { b.Records = nil },
	"deletes in place": func(b *weir.Batch) {
		n := 0
		b.Records = slices.DeleteFunc(b.Records, func(weir.Record) bool { n++; return n%2 == 1 })
	},
	"deletes in place what it does not keep": func(b *weir.Batch) {
		_ = slices.DeleteFunc(b.Records, func(r weir.Record) bool { return len(r.Data)%2 == 0 })
	},
	"sorts":      func(b *weir.Batch) { slices.Reverse(b.Records) },
	"clears":     func(b *weir.Batch) { clear(b.Records) },
	"overwrites": func(b *weir.Batch) { copy(b.Records, b.Records[len(b.Records)-1:]) },
	"appends": func(b *weir.Batch) {
		b.Records = append(b.Records[:len(b.Records)/2], weir.Record{Data: []byte("made")}, weir.Record{})
	},
	"appends to data": func(b *weir.Batch) {
		for i := range b.Records {
			_ = append(b.Records[i].Data, "and what is behind it"...)
		}
	},
	"changes fields": func(b *weir.Batch) {
		for i := range b.Records {
			b.Records[i].Data, b.Records[i].PartitionKey, b.Records[i].SequenceNumber = nil, "", "0"
		}
		b.Stream, b.Shard, b.Epoch, b.End = "", "", 0, true
	},
}

func TestARetryIsWholeWhateverTheHandlerDidToItsRecords(t *testing.T) {
	for habit, do := range habits {
		t.Run(habit, func(t *testing.T) {
			inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
				var got, before []string
				tries, failures := 0, 0
				stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
					now := texts(b.Records)
					if tries++; tries == 1 {
						before = now
					} else if !slices.Equal(now, before) || b.Shard == "" || b.End {
						t.Errorf("attempt %d is of %q (End %v), the first was of %q", tries, data(b.Records), b.End, before)
					}
					if tries < 4 {
						do(b)
						if failures++; tries == 2 {
							panic("in the middle")
						}
						return errOnceMore
					}
					tries = 0
					got = append(got, data(b.Records)...)
					do(b) // the change must not affect which records count as done
					return nil
				})
				time.Sleep(30 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("handled %q, want %q", got, want)
				}
				if failures == 0 {
					t.Error("nothing failed")
				}
			})
		})
	}
}

// The handler takes records off the batch as from a queue, and fails once in the middle. No record
// is lost.
func TestAQueueThatFailsInTheMiddleLosesNothing(t *testing.T) {
	inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
		got, failed := map[string]int{}, false
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			for len(b.Records) > 0 {
				r := b.Records[0]
				b.Records = b.Records[1:]
				if name := string(r.Data); name == want[4] && !failed {
					failed = true
					return errOnceMore
				}
				got[string(r.Data)]++
			}
			return nil
		})
		time.Sleep(30 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, name := range want {
			if got[name] == 0 {
				t.Errorf("%q was never handled", name)
			}
		}
	})
}

func TestRecordsOfEarlierAttemptsStayWhatTheyWere(t *testing.T) {
	inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
		if opts.ReuseBuffers {
			return // their records are valid only during the call
		}
		var kept [][]weir.Record
		var were [][]string
		var batches []*weir.Batch
		calls, done := 0, 0
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			for i, records := range kept { // check also while the records are handled again
				if !slices.Equal(texts(records), were[i]) {
					t.Errorf("what call %d was given has changed by call %d", i+1, calls+1)
				}
			}
			calls++
			kept, were, batches = append(kept, b.Records), append(were, texts(b.Records)), append(batches, b)
			if calls%4 != 0 {
				return errOnceMore
			}
			done += len(b.Records)
			return nil
		})
		time.Sleep(30 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for i, b := range batches {
			if !slices.Equal(texts(b.Records), were[i]) || !slices.Equal(texts(kept[i]), were[i]) {
				t.Errorf("call %d was given %q, which is %q now", i+1, were[i], data(b.Records))
			}
		}
		if done != len(want) || calls < 4 {
			t.Errorf("%d of %d records in %d calls", done, len(want), calls)
		}
	})
}

// Checkpointed records are done. That also holds if they are the whole batch and the handler fails
// afterwards.
func TestAHandlerThatFailsWhenAllIsDoneIsNotCalledAgain(t *testing.T) {
	for how, fail := range map[string]func() error{
		"with an error": func() error { return errOnceMore },
		"in a panic":    func() error { panic("after all is done") },
	} {
		t.Run(how, func(t *testing.T) {
			inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
				var got []string
				var told []event.HandlerFailed
				batches, calls := 0, 0
				opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.HandlerFailed) { told = append(told, e) }))
				opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, _ event.BatchHandled) { batches++ }))
				stop := start(t, srv.Client(), memstore.New(), opts, func(ctx context.Context, b *weir.Batch) error {
					if calls++; len(b.Records) == 0 {
						t.Error("called with nothing to do")
						return nil
					}
					got = append(got, data(b.Records)...)
					if err := b.Checkpoint(ctx, b.Records[len(b.Records)-1]); err != nil {
						t.Error(err)
					}
					return fail()
				})
				time.Sleep(40 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("handled %q, want %q", got, want)
				}
				if len(told) != calls || batches != calls {
					t.Errorf("%d calls, of which %d were told as failed, and %d as handled", calls, len(told), batches)
				}
				for _, e := range told {
					if e.Attempt != 1 || e.Next != 0 {
						t.Errorf("told of a failure with attempt %d, and the next after %v", e.Attempt, e.Next)
					}
				}
			})
		})
	}
}

// The end of a shard is delivered again until it is handled. Records that are done are not
// delivered again with it.
func TestTheEndComesAgainWithoutWhatIsDone(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		want := putSome(t, srv, false)
		parent := srv.OpenShards("s")[0]
		srv.Split("s", parent)
		srv.Put("s", "late", []byte("of a child"))
		var got []string
		var mu sync.Mutex
		empty, over := 0, false
		opts := weir.Options{Batching: weir.Batching{MaxRecords: 100}, Retry: weir.Retry{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}}
		stop := start(t, srv.Client(), memstore.New(), opts, func(ctx context.Context, b *weir.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, data(b.Records)...)
			switch {
			case b.Shard != parent:
				if !over {
					t.Error("a child begins before the end of its parent was handled")
				}
			case len(b.Records) == 0 && !b.End:
				t.Error("called with nothing to do")
			case len(b.Records) == 0:
				if empty++; empty < 5 {
					return errOnceMore
				}
				over = true
			default:
				if err := b.Checkpoint(ctx, b.Records[len(b.Records)-1]); err != nil {
					t.Error(err)
				}
				return errOnceMore
			}
			return nil
		})
		until(t, "the child handled", time.Minute, func() bool { mu.Lock(); defer mu.Unlock(); return slices.Contains(got, "of a child") })
		if err := stop(); err != nil {
			t.Error(err)
		}
		if empty != 5 || !slices.Equal(got, append(want, "of a child")) {
			t.Errorf("%d times the end alone; handled %q", empty, got)
		}
	})
}

func TestWhatACopyOfABatchCheckpointsIsDone(t *testing.T) {
	inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
		var got []string
		stop := start(t, srv.Client(), memstore.New(), opts, func(ctx context.Context, b *weir.Batch) error {
			if len(b.Records) == 1 {
				got = append(got, data(b.Records)...)
				return nil
			}
			half := *b // like middleware that passes on part of a batch at a time
			half.Records = b.Records[:len(b.Records)/2]
			got = append(got, data(half.Records)...)
			if err := half.Checkpoint(ctx, half.Records[len(half.Records)-1]); err != nil {
				t.Error(err)
			}
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
}

// Several goroutines may mark progress at the same time. A record that any of them marked is done.
func TestGoroutinesCheckpointAtOneTime(t *testing.T) {
	inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
		var got []string
		stop := start(t, srv.Client(), memstore.New(), opts, func(ctx context.Context, b *weir.Batch) error {
			n := (len(b.Records) + 1) / 2
			var all sync.WaitGroup
			for _, r := range b.Records[:n] {
				all.Go(func() {
					if err := b.Checkpoint(ctx, r); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			got = append(got, data(b.Records[:n])...)
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
}

// A checkpoint with a record of another shard is refused, even if the record's sequence number lies
// between those of the batch.
func TestACheckpointOfAnotherShardsRecordIsRefused(t *testing.T) {
	// The numbers of the first and the last shard overlap.
	bubble(t, 17, func(t *testing.T, srv *kinesistest.Server) {
		home := map[string][]string{}
		for i := range 300 {
			shard, _ := srv.Put("s", fmt.Sprint("key ", i), fmt.Appendf(nil, "r %d", i))
			home[shard] = append(home[shard], fmt.Sprint("r ", i))
		}
		var mu sync.Mutex
		all := map[string][]weir.Record{}
		got, between := map[string][]string{}, 0
		opts := weir.Options{Retry: weir.Retry{MinBackoff: time.Second, MaxBackoff: time.Second}}
		stop := start(t, srv.Client(), memstore.New(), opts, func(ctx context.Context, b *weir.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			first := len(all[b.Shard]) == 0
			all[b.Shard] = append([]weir.Record(nil), b.Records...)
			if first || len(all) < len(home) {
				return errOnceMore
			}
			low, high := b.Records[0].Position(), b.Records[len(b.Records)-1].Position()
			for shard, records := range all {
				for _, r := range records {
					if shard == b.Shard {
						continue
					}
					if r.Position().Compare(low) > 0 && r.Position().Compare(high) < 0 {
						between++
					}
					if err := b.Checkpoint(ctx, r); err == nil {
						t.Errorf("a checkpoint in %s is accepted for a record of %s", b.Shard, shard)
					}
				}
			}
			got[b.Shard] = data(b.Records)
			return nil
		})
		time.Sleep(20 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if between == 0 {
			t.Error("no record's number lies between those of the other shard: this shows nothing")
		}
		for shard, want := range home {
			if !slices.Equal(got[shard], want) {
				t.Errorf("%s: handled %q, want %q", shard, got[shard], want)
			}
		}
	})
}
