package consume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

func TestManyLeasesAreFewLines(t *testing.T) {
	t.Parallel()
	for _, verbose := range []bool{false, true} {
		var b bytes.Buffer
		h := newLeases(cli.LogText.Handler(&b), verbose)
		log := slog.New(h).With("app", "a")
		for n := range 20 {
			log.Info(leaseTaken, "shard", fmt.Sprint(n))
		}
		log.Info(leaseEnded, "shard", "1")
		log.Warn("something else", "for", 90*time.Second, "err", explain.ErrInterrupted)
		h.flush()
		want := map[bool]int{false: leaseLines + 3, true: 22}[verbose]
		if n := strings.Count(b.String(), "\n"); n != want || !strings.Contains(b.String(), "for=1m30s") {
			t.Errorf("verbose %v: %d lines\n%s", verbose, n, b.String())
		}
		if !verbose && !strings.Contains(b.String(), `message="lease taken" shards=12`) {
			t.Errorf("%s", b.String())
		}
		b.Reset()
		log.Info(leaseTaken, "shard", "later")
		h.flush()
		if n := strings.Count(b.String(), "\n"); n != 1 {
			t.Errorf("later: %s", b.String())
		}
	}
}

func TestABadStateThatLasts(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		states string // one for each minute: o is well, b is bad
		want   string // + when it is logged, - when the end is logged
	}{
		"well":            {"oooo", "    "},
		"briefly bad":     {"obbo", "    "},
		"bad":             {"obbbbb", "   +  "},
		"bad, then well":  {"bbbbooo", "  + -  "},
		"bad, well, bad":  {"bbbobbb", "  +-  +"},
		"bad states turn": {"bfbf", "  ++"},
		"it gets better":  {"fffbf", "  +  "},
		"a cause is seen": {"bbbcbc", "  ++  "},
	} {
		var l lasting
		got := ""
		for n, state := range c.states {
			v := map[rune]health.Verdict{
				'o': {}, 'b': {State: health.Behind}, 'f': {State: health.FallingBehind},
				'c': {State: health.Behind, Cause: health.CauseHandlerBusy},
			}[state]
			changed, began := l.see(v, begin.Add(time.Duration(n)*time.Minute))
			switch {
			case changed && began.IsZero():
				got += "-"
			case changed:
				got += "+"
			default:
				got += " "
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A worker whose handler fails for a while logs that, a summary every ten minutes, and its end.
func TestAWorkerTellsItsStory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", 2)
		srv.Put("s", "k", []byte("x"))
		var b bytes.Buffer
		h := newLeases(cli.LogText.Handler(&b), false)
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "a", Streams: []string{"s"}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		tale := story{log: slog.New(h), consumer: c, leases: h}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 21*time.Minute)
		defer cancel()
		err = tale.run(ctx, func(ctx context.Context) error {
			return c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error {
				if time.Since(begin) < 5*time.Minute {
					return errors.New("no room")
				}
				return nil
			}))
		})
		if err != nil {
			t.Error(err)
		}
		for what, n := range map[string]int{
			"records wait for a long time, or shards are not read": 1,
			"the shards of this worker are well again":             1,
			"what the worker did since the previous summary":       2,
			"records=1 handler_failures=":                          2, // the first summary and the end
			"the worker has stopped; its progress is saved":        1,
		} {
			if got := strings.Count(b.String(), what); got != n {
				t.Errorf("%q is there %d times, want %d, in\n%s", what, got, n, b.String())
			}
		}
	})
}
