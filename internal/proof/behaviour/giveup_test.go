package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// letterbox keeps dead letters. It fails as the test requests.
type letterbox struct {
	mu   sync.Mutex
	got  []deadletter.Letter
	puts int
	fail func(put int) error // returns the error of a call, counted from 1; may panic
}

func (b *letterbox) Put(_ context.Context, letters []deadletter.Letter) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.puts++
	if b.fail != nil {
		if err := b.fail(b.puts); err != nil {
			return err
		}
	}
	b.got = append(b.got, letters...)
	return nil
}

func (b *letterbox) letters() []deadletter.Letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// data returns the data of the letters.
func (b *letterbox) data() (all []string) {
	for _, l := range b.letters() {
		all = append(all, string(l.Data))
	}
	return all
}

// taster is a handler that fails in a given way at some records.
type taster struct {
	bad   map[string]bool
	calls map[string]int // number of calls at each bad record
	got   []string
}

func (h *taster) tastes(r weir.Record) error {
	if !h.bad[string(r.Data)] {
		return nil
	}
	h.calls[string(r.Data)]++
	return fmt.Errorf("record %s: %w", r.Data, errOnceMore)
}

// ways contains the ways in which a handler may fail at a record, with a policy that finds the
// record.
var ways = map[string]struct {
	policy weir.FailurePolicy
	reason deadletter.Reason
	handle func(h *taster) weir.HandlerFunc
}{
	"a function of single records": {weir.FailurePolicy{MaxAttempts: 3}, deadletter.Attempts, func(h *taster) weir.HandlerFunc {
		return weir.RecordFunc(func(_ context.Context, r weir.Record) error {
			err := h.tastes(r)
			if err == nil {
				h.got = append(h.got, string(r.Data))
			}
			return err
		}).Handle
	}},
	"a function of single records that panics": {weir.FailurePolicy{MaxAttempts: 3}, deadletter.Attempts, func(h *taster) weir.HandlerFunc {
		return weir.RecordFunc(func(_ context.Context, r weir.Record) error {
			if err := h.tastes(r); err != nil {
				panic(err)
			}
			h.got = append(h.got, string(r.Data))
			return nil
		}).Handle
	}},
	"the record is named": {weir.FailurePolicy{MaxAttempts: 3}, deadletter.Attempts, func(h *taster) weir.HandlerFunc {
		return func(_ context.Context, b *weir.Batch) error {
			for _, r := range b.Records {
				if err := h.tastes(r); err != nil {
					return fmt.Errorf("in a wrapper: %w", weir.FailedAt(r, err))
				}
				h.got = append(h.got, string(r.Data))
			}
			return nil
		}
	}},
	"all before it is done": {weir.FailurePolicy{MaxAttempts: 3, Bisect: true}, deadletter.Attempts, func(h *taster) weir.HandlerFunc {
		return func(_ context.Context, b *weir.Batch) error {
			for _, r := range b.Records {
				if err := h.tastes(r); err != nil {
					return err
				}
				h.got = append(h.got, string(r.Data))
				if err := b.Done(r); err != nil {
					return err
				}
			}
			return nil
		}
	}},
	"all or nothing": {weir.FailurePolicy{MaxAttempts: 3, Bisect: true}, deadletter.Attempts, func(h *taster) weir.HandlerFunc {
		return func(_ context.Context, b *weir.Batch) error {
			for _, r := range b.Records {
				if h.bad[string(r.Data)] {
					if len(b.Records) == 1 {
						return h.tastes(r)
					}
					return errOnceMore
				}
			}
			h.got = append(h.got, data(b.Records)...)
			return nil
		}
	}},
	"rejected by name": {weir.FailurePolicy{}, deadletter.Rejected, func(h *taster) weir.HandlerFunc {
		return func(_ context.Context, b *weir.Batch) error {
			for _, r := range b.Records {
				if err := h.tastes(r); err != nil {
					return weir.Reject(weir.FailedAt(r, err))
				}
				h.got = append(h.got, string(r.Data))
			}
			return nil
		}
	}},
	"rejected as a whole": {weir.FailurePolicy{}, deadletter.Rejected, func(h *taster) weir.HandlerFunc {
		return func(_ context.Context, b *weir.Batch) error {
			for _, r := range b.Records {
				if err := h.tastes(r); err != nil {
					return weir.Reject(err)
				}
			}
			h.got = append(h.got, data(b.Records)...)
			return nil
		}
	}},
}

// For each way of reading and of failing, the failing record is in a dead letter. All other records
// are handled in order, and only once if the handler reports its progress. A later worker receives
// no record again.
func TestOnlyWhatFailsIsGivenUp(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
				h := &taster{bad: map[string]bool{}, calls: map[string]int{}}
				var bad, good []string
				for i, name := range want {
					if i == 0 || i == len(want)-1 || i%8 == 3 || i%8 == 4 {
						h.bad[name] = true
						bad = append(bad, name)
					} else {
						good = append(good, name)
					}
				}
				box := &letterbox{}
				opts.OnFailure = way.policy
				opts.OnFailure.Destination, opts.OnFailure.OutageGrace, opts.OnFailure.MaxPerMinute = box, -1, -1
				var given []event.DeadLettered
				opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.DeadLettered) { given = append(given, e) }))
				store := memstore.New()
				stop := start(t, srv.Client(), store, opts, way.handle(h))
				time.Sleep(2 * time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if !slices.Equal(h.got, good) {
					t.Errorf("handled %q, want %q", h.got, good)
				}
				if got := box.data(); !slices.Equal(got, bad) {
					t.Errorf("dead letters of %q, want %q", got, bad)
				}
				attempts := way.policy.MaxAttempts
				for i, l := range box.letters() {
					if attempts == 0 {
						attempts = l.Attempts
					}
					if l.Reason != way.reason || l.Attempts != attempts || l.Together != 1 || l.Version != deadletter.Version || !strings.Contains(l.Error, "record "+string(l.Data)) {
						t.Errorf("%+v", l)
					}
					if l.App != "app" || l.Stream != "s" || l.Shard != "shardId-000000000000" || l.Epoch == 0 || l.Arrived.IsZero() || l.PartitionKey == "" ||
						l.FirstFailure.After(l.LastFailure) || l.LastFailure.After(l.GivenUp) {
						t.Errorf("%+v", l)
					}
					if e := given[i]; e.First != l.RecordID() || e.Records != 1 || e.Reason != l.Reason || e.Attempts != l.Attempts || !errors.Is(e.Err, errOnceMore) && !strings.Contains(e.Err.Error(), "panicked") {
						t.Errorf("told of %+v, with the dead letter %+v", e, l)
					}
				}
				if way.policy.MaxAttempts > 0 && name != "all before it is done" { // in that case it fails there first, together with others
					for record, n := range h.calls {
						if n != way.policy.MaxAttempts {
							t.Errorf("%q failed %d times", record, n)
						}
					}
				}
				h.got = nil
				stop = start(t, srv.Client(), store, opts, way.handle(h))
				time.Sleep(time.Minute)
				if err := stop(); err != nil || len(h.got) > 0 || len(box.letters()) != len(bad) {
					t.Errorf("a later worker handled %q, %v; %d dead letters", h.got, err, len(box.letters()))
				}
			})
		})
	}
}

// If a handler does not name the failed record, its batch is dead-lettered as a whole, except for
// records that are done.
func TestABatchThatFailsAsOneIsGivenUpAsOne(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		names := putSome(t, srv, false)
		box := &letterbox{}
		var got []string
		opts := weir.Options{Batching: weir.Batching{MaxRecords: 10}, Retry: weir.Retry{MinBackoff: 10 * time.Millisecond, MaxBackoff: 10 * time.Millisecond}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 3, OutageGrace: -1}}
		var attempts []int
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			if string(b.Records[0].Data) == names[10] {
				if b.Attempt == 1 {
					got = append(got, data(b.Records[:3])...)
					_ = b.Done(b.Records[2])
				}
				return errOnceMore
			}
			if string(b.Records[0].Data) == names[13] {
				attempts = append(attempts, b.Attempt)
				return errOnceMore
			}
			got = append(got, data(b.Records)...)
			return nil
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if want := slices.Concat(names[:13], names[20:]); !slices.Equal(got, want) {
			t.Errorf("handled %q, want %q", got, want)
		}
		if !slices.Equal(box.data(), names[13:20]) || box.puts != 1 {
			t.Errorf("dead letters of %q in %d calls", box.data(), box.puts)
		}
		for _, l := range box.letters() {
			if l.Together != 7 || l.Attempts != 3 || l.Error != "once more" || l.ErrorType != "*errors.errorString" {
				t.Errorf("%+v", l)
			}
		}
		if !slices.Equal(attempts, []int{2, 3}) { // the first record counts an earlier failure, which named it as the next record
			t.Errorf("attempts %v", attempts)
		}
	})
}

// A record is not dead-lettered only because of its age: it must also fail.
func TestAgeGivesUpOnlyWhatHasFailed(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		names := putSome(t, srv, false)
		time.Sleep(time.Hour)
		late := "late"
		srv.Put("s", "late", []byte(late))
		put := time.Now()
		box := &letterbox{}
		h := &taster{bad: map[string]bool{names[4]: true, late: true}, calls: map[string]int{}}
		opts := weir.Options{Retry: weir.Retry{MinBackoff: time.Second, MaxBackoff: time.Second}, OnFailure: weir.FailurePolicy{Destination: box, MaxAge: 10 * time.Minute, OutageGrace: -1}}
		stop := start(t, srv.Client(), memstore.New(), opts, ways["a function of single records"].handle(h))
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if want := slices.Delete(slices.Clone(names), 4, 5); !slices.Equal(h.got, want) {
			t.Errorf("handled %q, want %q", h.got, want)
		}
		letters := box.letters()
		if len(letters) != 2 || h.calls[names[4]] != 1 || letters[0].Reason != deadletter.Age || letters[0].Attempts != 1 || letters[1].Reason != deadletter.Age {
			t.Fatalf("%d calls, letters %+v", h.calls[names[4]], letters)
		}
		if age := letters[1].GivenUp.Sub(put); age < 10*time.Minute || age > 10*time.Minute+3*time.Second {
			t.Errorf("given up at the age of %v", age)
		}
	})
}

// While no other record succeeds, a failing record is not dead-lettered before the time
// OnFailure.OutageGrace has passed. The delay is reported once. If another record succeeds, the
// failing record is dead-lettered immediately.
func TestTheBrakeWaitsForOtherRecords(t *testing.T) {
	for _, others := range []bool{false, true} {
		bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
			bad, _ := srv.Put("s", "bad", []byte("bad"))
			box := &letterbox{}
			var first time.Time
			held := 0
			opts := weir.Options{
				Retry: weir.Retry{MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Second}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 3, OutageGrace: 5 * time.Minute},
				OnEvent: event.On(func(_ context.Context, e event.DeadLetterDelayed) {
					held++
					if e.Records != 1 || e.Reason != deadletter.Attempts || e.Shard != bad || e.Stream != "s" || e.Why != health.NoOtherHandled.String() {
						t.Errorf("told of %+v", e)
					}
				}),
			}
			var handled atomic.Int64
			stop := start(t, srv.Client(), memstore.New(), opts, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
				if string(r.Data) == "bad" {
					if first.IsZero() {
						first = time.Now()
					}
					return errOnceMore
				}
				handled.Add(1)
				return nil
			}).Handle)
			for i := range 600 {
				time.Sleep(time.Second)
				if !others {
					continue
				}
				for k := range 100 {
					if s, _ := srv.Put("s", fmt.Sprint(i, k), nil); s != bad {
						break
					}
				}
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			letters := box.letters()
			if len(letters) != 1 {
				t.Fatalf("%d letters", len(letters))
			}
			took := letters[0].GivenUp.Sub(first)
			switch {
			case !others && (took < 5*time.Minute || took > 5*time.Minute+2*time.Second || held != 1):
				t.Errorf("with nothing else, given up after %v; told %d times", took, held)
			case others && (took > 10*time.Second || held > 1 || handled.Load() < 500):
				t.Errorf("beside others, given up after %v; told %d times, handled %d", took, held, handled.Load())
			}
		})
	}
}

// If a dependency of the handlers is away for a minute, no record is dead-lettered. If it is away
// for ten minutes, each shard gets at most one dead letter every two minutes.
func TestAnOutageDoesNotEmptyAStreamIntoLetters(t *testing.T) {
	for _, row := range []struct {
		away time.Duration
		most int
	}{{time.Minute, 0}, {10 * time.Minute, 4 * 5}} {
		bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
			box := &letterbox{}
			names := map[string]bool{}
			began := time.Now()
			opts := weir.Options{Retry: weir.Retry{MinBackoff: 100 * time.Millisecond, MaxBackoff: 200 * time.Millisecond}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 3, MaxAge: time.Minute}}
			away := func() bool { d := time.Since(began); return d >= time.Minute && d < time.Minute+row.away }
			handled := map[string]bool{}
			var mu sync.Mutex
			stop := start(t, srv.Client(), memstore.New(), opts, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
				if away() {
					time.Sleep(3 * time.Second) // the hold may end when others succeed again
					return errOnceMore
				}
				time.Sleep(50 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				handled[string(r.Data)] = true
				return nil
			}).Handle)
			for i := range 600 {
				time.Sleep(time.Second)
				name := fmt.Sprint("r ", i)
				names[name] = true
				srv.Put("s", name, []byte(name))
			}
			time.Sleep(10 * time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
			letters := box.data()
			if len(letters) > row.most {
				t.Errorf("away for %v: %d dead letters, want %d at most: %q", row.away, len(letters), row.most, letters)
			}
			for _, name := range letters {
				if handled[name] {
					t.Errorf("%q was handled, and is in a dead letter", name)
				}
				handled[name] = true
			}
			if len(handled) != len(names) {
				t.Errorf("%d of %d records", len(handled), len(names))
			}
		})
	}
}

// A record that fails right before an outage, and would succeed later, is not dead-lettered.
// Records that were handled before the outage do not count for failures during it.
func TestAFailureRightBeforeAnOutageIsNoReasonToGiveUp(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
		box := &letterbox{}
		var begins time.Time
		failed := false
		var mu sync.Mutex
		handled := map[string]bool{}
		opts := weir.Options{Retry: weir.Retry{MinBackoff: 5 * time.Second, MaxBackoff: 5 * time.Second}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 3}}
		stop := start(t, srv.Client(), memstore.New(), opts, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
			mu.Lock()
			defer mu.Unlock()
			name := string(r.Data)
			switch d := time.Since(begins); {
			case name == "unlucky" && !failed:
				failed, begins = true, time.Now().Add(2200*time.Millisecond) // other records are handled in the meantime
				return errOnceMore
			case failed && d >= 0 && d < time.Minute:
				return errOnceMore
			}
			handled[name] = true
			return nil
		}).Handle)
		for i := range 60 {
			name := fmt.Sprint("r ", i)
			if i == 20 {
				name = "unlucky"
			}
			srv.Put("s", name, []byte(name))
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(2 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if letters := box.data(); len(letters) > 0 || len(handled) != 60 {
			t.Errorf("dead letters %q, %d of 60 handled", letters, len(handled))
		}
	})
}

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
		if s := c.Shards(); len(s) != 1 || s[0].Reason != health.HandlerFailed || s[0].Err == nil {
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
