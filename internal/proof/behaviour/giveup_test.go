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
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
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

// While no other record succeeds, a failing record is not dead-lettered before
// OnFailure.OutageGrace has passed. The delay is reported once. If other records succeed, the
// failing record is dead-lettered within seconds.
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
