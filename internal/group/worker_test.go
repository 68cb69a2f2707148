package group

import (
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// A reader may return its error right after the loop looked for errors: the same beat then gives the lease back and the term
// is dropped, and the error must still end Run.
func TestAnErrorOfATermThatIsDroppedIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(Config{
			Store: memstore.New(), App: "app", Worker: "w", Times: lease.Times{Beat: time.Second, Failover: 5 * time.Second},
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		defer w.running.Wait()
		defer w.trust.end(ErrLeaseLost)
		asked := errors.New("the handler asked to stop")
		l := lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Owner: w.session, Position: shard.Oldest}
		w.trust.extend(time.Now())
		w.cfg.Read = func(*Term) error { return asked }
		w.startTerm(l)
		synctest.Wait() // the reader has returned
		_, sent := w.report()
		w.settle(sent) // the orders name no lease: it was given back
		if len(w.terms) != 0 {
			t.Fatal("the term is still there")
		}
		if err := w.findFatal(); !errors.Is(err, asked) {
			t.Errorf("what ends Run is %v, want what the reader returned", err)
		}
	})
}
