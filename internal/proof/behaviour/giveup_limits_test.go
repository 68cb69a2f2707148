package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// A stream that contains only rejected records is dead-lettered at the allowed rate.
func TestTheRateOfLettersIsBounded(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		for i := range 500 {
			srv.Put("s", fmt.Sprint(i), nil)
		}
		box := &letterbox{}
		held := map[string]int{}
		opts := weir.Options{Retry: weir.Retry{MinBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond}, OnFailure: weir.FailurePolicy{Destination: box, MaxPerMinute: 10}}
		opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.DeadLetterDelayed) {
			held[e.Why]++
		}))
		stop := start(t, srv.Client(), memstore.New(), opts, weir.RecordFunc(func(context.Context, weir.Record) error { return weir.Reject(nil) }).Handle)
		time.Sleep(20*time.Minute + 30*time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := len(box.letters()); n < 205 || n > 215 {
			t.Errorf("%d dead letters in 20 minutes and a half, want ten and ten a minute", n)
		}
		if len(held) != 1 || held[health.RateLimited.String()] == 0 {
			t.Errorf("held: %v", held)
		}
	})
}

// The checkpoint does not pass a record whose dead letter is not durable, however the destination
// fails. An owner never stores the same dead letter twice.
func TestNothingPassesALetterThatFails(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		names := putSome(t, srv, false)
		box := &letterbox{fail: func(put int) error {
			switch {
			case put == 2:
				panic("a bug")
			case put < 5:
				return errors.New("disk full")
			}
			return nil
		}}
		h := &taster{bad: map[string]bool{names[5]: true}, calls: map[string]int{}}
		var failed []event.DeadLetterFailed
		opts := weir.Options{Retry: weir.Retry{MinBackoff: time.Minute, MaxBackoff: time.Minute}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 1, OutageGrace: -1}}
		opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.DeadLetterFailed) { failed = append(failed, e) }))
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, Retry: weir.Retry{MinBackoff: opts.Retry.MinBackoff, MaxBackoff: opts.Retry.MaxBackoff}, OnFailure: opts.OnFailure, OnEvent: opts.OnEvent})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, ways["a function of single records"].handle(h)) }()
		time.Sleep(90 * time.Second)
		synctest.Wait() // other goroutines write the state
		if !slices.Equal(h.got, names[:5]) || len(box.letters()) > 0 {
			t.Errorf("handled %q, dead letters of %q", h.got, box.data())
		}
		if s := c.Shards(); len(s) != 1 || s[0].Reason != health.DeadLettersFailed || s[0].Err == nil {
			t.Errorf("status %+v", s)
		}
		time.Sleep(10 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if want := slices.Delete(slices.Clone(names), 5, 6); !slices.Equal(h.got, want) || !slices.Equal(box.data(), names[5:6]) || h.calls[names[5]] != 1 {
			t.Errorf("handled %q, dead letters of %q, %d calls", h.got, box.data(), h.calls[names[5]])
		}
		if len(failed) != 4 || failed[3].Attempt != 4 || failed[0].Records != 1 || !strings.Contains(failed[1].Err.Error(), "OnFailure.Destination panicked: a bug") {
			t.Errorf("told of %+v", failed)
		}
		if n := c.Counts(); n.RecordsDeadLettered != 1 || n.DeadLettersFailed != 4 || n.RecordsHandled != uint64(len(names)-1) || n.HandlerFailures != 1 {
			t.Errorf("%+v", n)
		}
	})
}

// A worker may end after it has stored a dead letter and before it has saved the checkpoint. The
// next worker then receives the record, and may store a dead letter again. Both dead letters have
// the same ID.
func TestALetterThatIsPutAgainHasItsID(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		names := putSome(t, srv, true)
		store := memstore.New()
		ctx, cancel := context.WithCancel(t.Context())
		box := &letterbox{}
		policy := weir.FailurePolicy{MaxAttempts: 1, OutageGrace: -1}
		policy.Destination = deadletter.Func(func(ctx context.Context, letters []deadletter.Letter) error {
			if err := box.Put(ctx, letters); err != nil {
				return err
			}
			cancel()
			return errors.New("nobody heard that it is durable")
		})
		opts := weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, Retry: weir.Retry{MinBackoff: time.Second}, OnFailure: policy}
		c, err := weir.New(srv.Client(), store, opts)
		if err != nil {
			t.Fatal(err)
		}
		h := &taster{bad: map[string]bool{names[3]: true}, calls: map[string]int{}}
		if err := c.Run(ctx, ways["a function of single records"].handle(h)); err != nil {
			t.Error(err)
		}
		opts.OnFailure.Destination = box
		stop := start(t, srv.Client(), store, opts, ways["a function of single records"].handle(h))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		letters := box.letters()
		if len(letters) != 2 || letters[0].ID != letters[1].ID || letters[0].Epoch >= letters[1].Epoch || string(letters[1].Data) != names[3] || !strings.HasSuffix(letters[0].ID, letters[0].Position) {
			t.Errorf("letters %+v", letters)
		}
		if want := slices.Delete(slices.Clone(names), 3, 4); !slices.Equal(h.got, want) {
			t.Errorf("handled %q, want %q", h.got, want)
		}
	})
}

// The end of a shard is never dead-lettered. It follows the dead letters of the shard's last
// records.
func TestAShardEndsAfterItsLetters(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		names := putSome(t, srv, false)
		srv.Split("s", "shardId-000000000000")
		srv.Put("s", "of a child", []byte("of a child"))
		box := &letterbox{}
		ends, got := 0, []string{}
		opts := weir.Options{Retry: weir.Retry{MinBackoff: 10 * time.Millisecond, MaxBackoff: 10 * time.Millisecond}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 2, OutageGrace: -1}}
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			if b.Shard != "shardId-000000000000" {
				if len(b.Records) > 0 {
					got = append(got, b.Shard)
				}
				return nil
			}
			for _, r := range b.Records {
				if string(r.Data) == names[len(names)-1] {
					return weir.FailedAt(r, nil)
				}
			}
			if b.End {
				if ends++; ends < 5 {
					return errOnceMore
				}
				got = append(got, "end")
			}
			return nil
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(box.data(), names[len(names)-1:]) || ends != 5 || len(got) != 2 || got[0] != "end" {
			t.Errorf("dead letters of %q, %d ends, then %q", box.data(), ends, got)
		}
		if l := box.letters(); l[0].Error != "weir: the handler failed without an error" {
			t.Errorf("%+v", l[0])
		}
	})
}

// If the error names a record that the handler did not receive, that record is not blamed.
func TestFailedAtNamesARecordOfTheBatch(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		names := putSome(t, srv, false)
		box := &letterbox{}
		var failures []error
		opts := weir.Options{Batching: weir.Batching{MaxRecords: 10}, Retry: weir.Retry{MinBackoff: 10 * time.Millisecond, MaxBackoff: 10 * time.Millisecond}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 1, OutageGrace: -1, Bisect: true}}
		opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.HandlerFailed) { failures = append(failures, e.Err) }))
		var first weir.Record
		var got []string
		wrong := 0
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			if first.SequenceNumber == "" {
				first = b.Records[0]
			}
			if string(b.Records[0].Data) == names[10] && wrong < 3 {
				wrong++
				return weir.FailedAt([]weir.Record{first, {}, {SequenceNumber: first.SequenceNumber}}[wrong-1], errOnceMore)
			}
			got = append(got, data(b.Records)...)
			return nil
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(got, names) || len(box.letters()) > 0 {
			t.Errorf("handled %q, dead letters of %q", got, box.data())
		}
		if len(failures) != 3 || !strings.Contains(failures[0].Error(), "named a record that is not in the batch: once more") {
			t.Errorf("told of %q", failures)
		}
	})
}

// While a dead letter waits for its destination, the shard can be handed off to another worker.
func TestAShardWhoseLettersFailIsHandedOff(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		for i := range 20 {
			srv.Put("s", fmt.Sprint("key ", i), []byte("bad"))
		}
		var store lease.Store = memstore.New()
		opts := weir.Options{OnFailure: weir.FailurePolicy{MaxAttempts: 1, OutageGrace: -1, Destination: deadletter.Func(func(ctx context.Context, _ []deadletter.Letter) error {
			<-ctx.Done() // until the term has ended
			return context.Cause(ctx)
		})}}
		fail := func(context.Context, *weir.Batch) error { return errOnceMore }
		opts.Worker = "a"
		stopA := start(t, srv.Client(), store, opts, fail)
		time.Sleep(time.Minute)
		box := &letterbox{}
		opts.Worker, opts.OnFailure.Destination, opts.Timing.HandoffTimeout = "b", box, 10*time.Second
		stopB := start(t, srv.Client(), store, opts, fail)
		time.Sleep(2 * time.Minute)
		if len(box.letters()) == 0 {
			t.Error("the other worker has put no dead letter")
		}
		if err := stopA(); err != nil {
			t.Error(err)
		}
		if err := stopB(); err != nil {
			t.Error(err)
		}
	})
}

// A handler marks all records of a part as done and then fails. The failure does not count for the
// first record of the next part.
func TestAFailureWhenAPartIsDoneIsNobodysAttempt(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		putSome(t, srv, false)
		box := &letterbox{}
		var calls []string
		opts := weir.Options{Retry: weir.Retry{MinBackoff: 10 * time.Millisecond}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 1, OutageGrace: -1, Bisect: true}}
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			calls = append(calls, fmt.Sprintf("%d records, attempt %d", len(b.Records), b.Attempt))
			switch len(calls) {
			case 1:
				return errOnceMore
			case 2:
				if err := b.Done(b.Records[len(b.Records)-1]); err != nil {
					t.Error(err)
				}
				return errOnceMore
			}
			return nil
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if want := []string{"30 records, attempt 1", "15 records, attempt 2", "15 records, attempt 1"}; !slices.Equal(calls, want) || len(box.letters()) > 0 {
			t.Errorf("calls %q, dead letters of %q", calls, box.data())
		}
	})
}

// A call that contains only the end of a shard does not show that other records can be handled.
func TestTheEndOfAShardIsNoOtherRecord(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		bad, _ := srv.Put("s", "bad", []byte("bad"))
		for _, id := range srv.OpenShards("s") {
			if id != bad {
				time.AfterFunc(30*time.Second, func() { srv.Split("s", id) })
			}
		}
		box, ends := &letterbox{}, 0
		var first time.Time
		opts := weir.Options{Retry: weir.Retry{MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Second}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 3}}
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			if b.Shard != bad {
				ends++
				return nil
			}
			if first.IsZero() {
				first = time.Now()
			}
			return errOnceMore
		})
		time.Sleep(5 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if l := box.letters(); len(l) != 1 || ends != 1 || l[0].GivenUp.Sub(first) < 2*time.Minute {
			t.Errorf("%d ends, letters %+v", ends, l)
		}
	})
}

// If a handler calls another handler, it can find out at which record the other handler failed.
func TestTheRecordThatAnErrorNames(t *testing.T) {
	three, five, oops := weir.Record{SequenceNumber: "3"}, weir.Record{SequenceNumber: "5"}, errors.New("oops")
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{oops, ""},
		{weir.Reject(oops), ""},
		{weir.FailedAt(five, oops), "5"},
		{weir.RejectAt(five, oops), "5"},
		{weir.Reject(weir.FailedAt(five, oops)), "5"},
		{fmt.Errorf("wrapped: %w", errors.Join(oops, weir.FailedAt(five, oops), weir.FailedAt(three, nil))), "3"},
	} {
		if r, named := weir.FailedRecord(c.err); r.SequenceNumber != c.want || named != (c.want != "") {
			t.Errorf("%v names %q, %t; want %q", c.err, r.SequenceNumber, named, c.want)
		}
	}
}
