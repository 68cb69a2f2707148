package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// TestProgressOnlyOfWhatABatchHolds keeps a part of a batch. Through this part, it marks a record
// of a later part as done. weir must refuse the mark. Otherwise records would count as done that no
// call has received since they failed.
func TestProgressOnlyOfWhatABatchHolds(t *testing.T) {
	for name, parallel := range map[string]weir.Concurrency{"one after the other": {}, "keys in parallel": {Keys: 4}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				for i := range 8 {
					srv.Put("s", "k", fmt.Append(nil, i))
				}
				opts := weir.Options{
					Concurrency: parallel, Retry: weir.Retry{MinBackoff: 10 * time.Millisecond, MaxBackoff: 10 * time.Millisecond},
					OnFailure: weir.FailurePolicy{Destination: &letterbox{}, MaxAttempts: 100, Bisect: true},
				}
				var mu sync.Mutex
				var whole, part *weir.Batch
				var records, ofPart []weir.Record
				var calls []string
				stop := start(t, srv.Client(), memstore.New(), opts, func(ctx context.Context, b *weir.Batch) error {
					mu.Lock()
					defer mu.Unlock()
					calls = append(calls, strings.Join(data(b.Records), ""))
					switch len(calls) {
					case 1:
						whole, records = b, slices.Clone(b.Records)
						return errOnceMore
					case 2:
						part, ofPart = b, slices.Clone(b.Records)
						for _, r := range records[4:] {
							if err := b.Done(r); err == nil {
								t.Errorf("Done of %s through a batch of %q succeeded", r.Data, data(ofPart))
							}
							if err := b.Checkpoint(ctx, r); err == nil {
								t.Errorf("Checkpoint of %s through a batch of %q succeeded", r.Data, data(ofPart))
							}
						}
						return nil
					case 3:
						if err := part.Done(records[5]); err == nil {
							t.Error("Done through the part before succeeded")
						}
						if err := part.Done(ofPart[3]); err != nil {
							t.Errorf("Done of a record that is done failed: %v", err)
						}
						return errOnceMore
					case 4: // the batch that contained all records may mark all of them
						if err := whole.Done(records[6]); err != nil {
							t.Error(err)
						}
						return errOnceMore
					}
					return nil
				})
				time.Sleep(10 * time.Second)
				mu.Lock()
				defer mu.Unlock()
				if err := part.Done(records[7]); err == nil {
					t.Error("Done of a record of a later part succeeded after all was done")
				}
				if err := errors.Join(part.Done(ofPart[3]), whole.Done(records[7])); err != nil {
					t.Errorf("after all was done: %v", err)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
				if want := []string{"01234567", "0123", "4567", "45", "7"}; !slices.Equal(calls, want) {
					t.Errorf("called with %q, want %q", calls, want)
				}
			})
		})
	}
}

// TestProgressThroughAPulledBatch checks that a function that pulls can mark a record as done only
// through the record's own batch, also after it has pulled a later batch.
func TestProgressThroughAPulledBatch(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		putSome(t, srv, false)
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Batching: weir.Batching{MaxRecords: 7}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		err = c.RunPull(ctx, weir.PullHandler{Pull: func(ctx context.Context, s *weir.Puller) error {
			var first *weir.Batch
			var of []weir.Record
			for b, err := range s.Batches() {
				if err != nil {
					return err
				}
				if seen += len(b.Records); first == nil {
					first, of = b, slices.Clone(b.Records)
					continue
				}
				if err := first.Done(b.Records[0]); err == nil {
					t.Error("Done through an earlier batch of a record of a later one succeeded")
				}
				if err := b.Done(of[0]); err == nil {
					t.Error("Done through a later batch of a record of an earlier one succeeded")
				}
				if err := first.Done(of[len(of)-1]); err != nil {
					t.Error(err)
				}
				if seen >= 30 {
					cancel()
				}
			}
			return nil
		}})
		if err != nil || seen < 30 {
			t.Errorf("%d records, %v", seen, err)
		}
	})
}

// TestAFailureAtADoneRecord lets Done and FailedAt contradict each other. The record stays done.
// The next record must not be dead-lettered for a failure that is not its own.
func TestAFailureAtADoneRecord(t *testing.T) {
	reject := weir.Reject(errOnceMore)
	for name, c := range map[string]struct {
		policy   weir.FailurePolicy
		fails    func(r []weir.Record) error
		parallel weir.Concurrency
	}{
		"named":    {weir.FailurePolicy{MaxAttempts: 1, OutageGrace: -1}, func(r []weir.Record) error { return weir.FailedAt(r[0], errOnceMore) }, weir.Concurrency{}},
		"rejected": {weir.FailurePolicy{OutageGrace: -1}, func(r []weir.Record) error { return weir.FailedAt(r[0], reject) }, weir.Concurrency{}},
		"too old":  {weir.FailurePolicy{OutageGrace: -1}, func(r []weir.Record) error { return weir.RejectOld(r[0], 9, nil) }, weir.Concurrency{}},
		"bisected": {weir.FailurePolicy{MaxAttempts: 1, OutageGrace: -1, Bisect: true}, func(r []weir.Record) error { return weir.FailedAt(r[0], errOnceMore) }, weir.Concurrency{}},
		"with a later one": {
			weir.FailurePolicy{MaxAttempts: 1, OutageGrace: -1},
			func(r []weir.Record) error {
				return errors.Join(weir.FailedAt(r[len(r)-1], reject), weir.FailedAt(r[0], errOnceMore))
			}, weir.Concurrency{},
		},
		"keys in parallel": {weir.FailurePolicy{MaxAttempts: 1, OutageGrace: -1}, func(r []weir.Record) error { return weir.FailedAt(r[0], errOnceMore) }, weir.Concurrency{Keys: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				for i := range 5 {
					srv.Put("s", "k", fmt.Append(nil, i))
				}
				box := &letterbox{}
				policy := c.policy
				policy.Destination = box
				var told []event.HandlerFailed
				opts := weir.Options{OnFailure: policy, Concurrency: c.parallel}
				opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.HandlerFailed) { told = append(told, e) }))
				var got []string
				var mu sync.Mutex
				stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
					mu.Lock()
					defer mu.Unlock()
					if b.Attempt != 1 || !b.FirstFailure.IsZero() {
						t.Errorf("attempt %d of %q, failed first at %v", b.Attempt, data(b.Records), b.FirstFailure)
					}
					got = append(got, string(b.Records[0].Data))
					if err := b.Done(b.Records[0]); err != nil {
						t.Error(err)
					}
					return c.fails(b.Records)
				})
				time.Sleep(time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if letters := box.data(); len(letters) > 0 {
					t.Errorf("letters of %q", letters)
				}
				if want := []string{"0", "1", "2", "3", "4"}; !slices.Equal(got, want) {
					t.Errorf("handled %q, want %q", got, want)
				}
				for _, e := range told[:max(len(told)-1, 0)] { // at the last failure everything is done
					if !strings.Contains(e.Err.Error(), "Batch.Done had marked") || e.Attempt != 1 {
						t.Errorf("told of attempt %d: %v", e.Attempt, e.Err)
					}
				}
				if len(told) != 5 {
					t.Errorf("told of %d failures", len(told))
				}
			})
		})
	}
}
