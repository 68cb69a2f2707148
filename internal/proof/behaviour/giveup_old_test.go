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
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// A record that a handler skips because of its age has not failed. The limits on dead letters
// neither delay nor count the record. A record that follows 200 skipped records fails, and is
// dead-lettered without delay, although MaxPerMinute is 1.
func TestWhatIsLeftOutForItsAgeHasNoBrake(t *testing.T) {
	for _, keys := range []int{0, 4} {
		t.Run(fmt.Sprintf("%d keys in parallel", keys), func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				for i := range 200 {
					srv.Put("s", fmt.Sprint(i%10), fmt.Appendf(nil, "old %d", i))
				}
				time.Sleep(2 * time.Hour)
				srv.Put("s", "0", []byte("bad"))
				srv.Put("s", "0", []byte("young"))
				box := &letterbox{fail: func(put int) error {
					if put == 2 {
						return errOnceMore // the record is not passed
					}
					return nil
				}}
				failures := 0
				opts := weir.Options{Batching: weir.Batching{MaxRecords: 20}, Concurrency: weir.Concurrency{Keys: keys}, Retry: weir.Retry{MinBackoff: time.Second, MaxBackoff: time.Second},
					OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 1, MaxPerMinute: 1, OutageGrace: -1}}
				opts.OnEvent = event.Join(opts.OnEvent, event.On(func(context.Context, event.HandlerFailed) { failures++ }))
				got := make(chan string, 1000)
				stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
					n := 0
					for n < len(b.Records) && time.Since(b.Records[n].ArrivalTime()) > time.Hour {
						n++
					}
					if n > 0 {
						return fmt.Errorf("wrapped: %w", weir.RejectOld(b.Records[0], n, errors.New("too old")))
					}
					for _, r := range b.Records {
						if string(r.Data) == "bad" {
							return weir.FailedAt(r, errOnceMore)
						}
						got <- string(r.Data)
					}
					return nil
				})
				time.Sleep(30 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if close(got); <-got != "young" || len(got) > 0 {
					t.Error("young was not handled alone")
				}
				old := 0
				for _, l := range box.letters() {
					switch {
					case string(l.Data) == "bad":
						if l.Reason != deadletter.Attempts || l.Attempts != 1 {
							t.Errorf("%+v", l)
						}
					case l.Reason != deadletter.Age || l.Attempts != 0 || !strings.Contains(l.Error, "too old") || !l.FirstFailure.Equal(l.GivenUp) || !l.LastFailure.Equal(l.GivenUp):
						t.Errorf("%+v", l)
					default:
						old++
					}
				}
				if old != 200 || failures != 1 {
					t.Errorf("%d dead letters of old records, %d failures", old, failures)
				}
			})
		})
	}
}

// The delivery of one key is reused for another key. Records that the handler skipped for the first
// key must not change which records of the second key are handled, dead-lettered or counted.
func TestWhatWasLeftOutOfOneKeySaysNothingOfTheNext(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "slow", []byte("slow")) // takes one of the two slots, so that the others share a delivery
		for i := range 10 {
			srv.Put("s", "old", fmt.Appendf(nil, "old %d", i))
		}
		for i := range 10 {
			srv.Put("s", "new", fmt.Appendf(nil, "new %d", i))
		}
		box := &letterbox{}
		opts := weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, Batching: weir.Batching{MaxRecords: 10}, Concurrency: weir.Concurrency{Keys: 2}, Retry: weir.Retry{MinBackoff: time.Second, MaxBackoff: time.Second},
			OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 1, OutageGrace: -1}}
		var mu sync.Mutex // guards handled and records
		var handled []string
		records := 0
		opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.BatchHandled) {
			mu.Lock()
			defer mu.Unlock()
			if records += e.Records; e.Records < 0 {
				t.Errorf("BatchHandled.Records is %d", e.Records)
			}
		}))
		c, err := weir.New(srv.Client(), memstore.New(), opts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		h := func(_ context.Context, b *weir.Batch) error {
			if b.Records[0].PartitionKey == "slow" {
				time.Sleep(5 * time.Second)
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			for i, r := range b.Records {
				switch {
				case b.Records[0].PartitionKey == "old" && i == 5:
					return weir.RejectOld(r, 5, nil)
				case string(r.Data) == "new 3":
					return weir.FailedAt(r, errOnceMore)
				}
				handled = append(handled, string(r.Data))
			}
			return nil
		}
		go func() { done <- c.Run(ctx, weir.HandlerFunc(h)) }()
		time.Sleep(15 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		var want, letters, wantLetters []string
		for i := range 10 {
			if i < 5 {
				want = append(want, fmt.Sprint("old ", i))
			} else {
				wantLetters = append(wantLetters, fmt.Sprint("old ", i))
			}
		}
		for i := range 10 {
			if i != 3 {
				want = append(want, fmt.Sprint("new ", i))
			}
		}
		wantLetters = append(wantLetters, "new 3")
		for _, l := range box.letters() {
			letters = append(letters, string(l.Data))
		}
		if !slices.Equal(handled, want) || !slices.Equal(letters, wantLetters) {
			t.Errorf("handled %q, dead-lettered %q", handled, letters)
		}
		if n := c.Counts().RecordsHandled; n != 15 || records != 15 {
			t.Errorf("%d records are counted and %d reported, want 15", n, records)
		}
	})
}

// If a record fails and is later skipped because of its age, its dead letter contains the failures.
func TestARecordThatGotTooOldTellsOfItsFailures(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "k", []byte("bad"))
		box := &letterbox{}
		opts := weir.Options{Retry: weir.Retry{MinBackoff: 10 * time.Second, MaxBackoff: 10 * time.Second}, OnFailure: weir.FailurePolicy{Destination: box}}
		began := time.Now()
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			if time.Since(began) > 25*time.Second {
				return weir.RejectOld(b.Records[0], 99, nil)
			}
			return errOnceMore
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		letters := box.letters()
		if len(letters) != 1 {
			t.Fatalf("%d letters", len(letters))
		}
		if l := letters[0]; l.Attempts < 2 || l.Reason != deadletter.Age || !strings.Contains(l.Error, "too old") || !strings.Contains(l.Error, errOnceMore.Error()) ||
			!l.LastFailure.Before(l.GivenUp) || !l.FirstFailure.Before(l.LastFailure) {
			t.Errorf("%+v", l)
		}
	})
}

// Without a destination for dead letters, no record is skipped, because it would be lost.
func TestNothingIsLeftOutWithoutAPlaceForLetters(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "k", []byte("old"))
		var calls []string
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Retry: weir.Retry{MinBackoff: time.Second, MaxBackoff: time.Second}}, func(_ context.Context, b *weir.Batch) error {
			calls = append(calls, string(b.Records[0].Data))
			return weir.RejectOld(b.Records[0], 1, nil)
		})
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if len(calls) < 3 || len(slices.Compact(calls)) != 1 {
			t.Errorf("%d calls", len(calls))
		}
	})
}
