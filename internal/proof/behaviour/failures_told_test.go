package behaviour

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// The event and the log of a failure name the records that will be delivered again. The stack of a
// panic is logged only at the first attempt.
func TestAFailureNamesItsRecords(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		for _, text := range []string{"a", "b", "c", "d"} {
			srv.Put("s", "key", []byte(text))
		}
		var told []event.HandlerFailed
		var log bytes.Buffer // the goroutine of the queue writes, one record at a time
		opts := weir.Options{
			App: "app", Streams: []string{"s"}, Worker: "w", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			OnEvent: event.On(func(_ context.Context, e event.HandlerFailed) { told = append(told, e) }),
		}
		var seen []weir.Record
		calls := 0
		runUntilStopped(t, srv, opts, memstore.New(), func(b *weir.Batch, stop func()) error {
			switch calls++; calls {
			case 1:
				seen = slices.Clone(b.Records)
				panic(errBug)
			case 2, 3:
				_ = b.Done(b.Records[0])
				panic(errBug)
			}
			stop()
			return nil
		})

		if len(told) != 3 || len(seen) != 4 {
			t.Fatalf("%d failures were told, of %d records", len(told), len(seen))
		}
		for i, want := range []struct {
			first   int
			at      weir.Position
			attempt int
		}{{0, weir.Oldest, 1}, {1, seen[0].Position(), 1}, {2, seen[1].Position(), 1}} {
			e, panicked := told[i], &weir.PanicError{}
			if e.Records != 4-want.first || e.First != seen[want.first].SequenceNumber || e.Last != seen[3].SequenceNumber ||
				e.At != want.at || e.Attempt != want.attempt {
				t.Errorf("failure %d: %+v", i, e)
			}
			if !errors.As(e.Err, &panicked) || !errors.Is(e.Err, errBug) || !strings.Contains(panicked.Stack, "failures_told_test.go") ||
				strings.Contains(e.Err.Error(), "goroutine") {
				t.Errorf("failure %d is %v", i, e.Err)
			}
		}
		var lines []string
		for line := range strings.Lines(log.String()) {
			if !strings.Contains(line, " app=app worker=w ") {
				t.Errorf("a line does not say of whom it is: %s", line)
			}
			if strings.Contains(line, "the handler failed") {
				lines = append(lines, line)
			}
		}
		// Repeated lines with the same cause are limited: only the first and the last are logged.
		if len(lines) != 2 || !strings.Contains(lines[1], "repeated=2") {
			t.Fatalf("logged %q", lines)
		}
		for n, line := range lines {
			i := 2 * n
			if !strings.Contains(line, " first="+told[i].First+" ") || !strings.Contains(line, " last="+told[i].Last+" ") ||
				!strings.Contains(line, "shard="+told[i].Shard) || !strings.Contains(line, " stack=") {
				t.Errorf("failure %d was logged as %s", i, line)
			}
		}
	})
}

var errBug = errors.New("a bug")

func TestTheStackOfAPanicIsLoggedOnce(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "key", []byte("a"))
		var log bytes.Buffer
		calls := 0
		opts := weir.Options{
			App: "app", Streams: []string{"s"}, Logger: slog.New(slog.NewTextHandler(&log, nil)), Retry: weir.Retry{MaxBackoff: time.Second},
			OnEvent: event.On(func(context.Context, event.BatchBegins) { panic("a hook's") }),
		}
		runUntilStopped(t, srv, opts, memstore.New(), func(_ *weir.Batch, stop func()) error {
			switch calls++; {
			case calls == 1:
				return errors.New("no panic")
			case calls < 10:
				panic(errBug)
			}
			stop()
			return nil
		})
		// Repeated lines with the same cause are limited: only the first and the last of the eight
		// panics are logged.
		for text, want := range map[string]int{"the handler panicked": 2, "Options.OnEvent panicked": 10, " stack=": 2} {
			if got := strings.Count(log.String(), text); got != want {
				t.Errorf("%q is %d times in the log, want %d:\n%s", text, got, want, log.String())
			}
		}
	})
}

// runUntilStopped runs a consumer until its handler calls stop.
func runUntilStopped(t *testing.T, srv *kinesistest.Server, opts weir.Options, store lease.Store, handle func(b *weir.Batch, stop func()) error) {
	t.Helper()
	c, err := weir.New(srv.Client(), store, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error { return handle(b, cancel) })); err != nil {
		t.Error(err)
	}
}
