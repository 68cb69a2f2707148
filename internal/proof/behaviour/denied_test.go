package behaviour

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// denied is a fault: the call is not allowed.
func denied(*kinesistest.Call) kinesistest.Fault {
	return kinesistest.Fault{Err: &kinesistest.Error{Code: "AccessDeniedException", Message: "no", Status: http.StatusBadRequest}}
}

// A leader that loses the permission to list its stream is not ready after four minutes. Its error
// names the stream. It is ready again when it has the permission.
func TestAWorkerThatMayNotListIsNotReady(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, weir.HandlerFunc(newSink(t).handle)) }()
		time.Sleep(10 * time.Second)
		if err := c.Ready(); err != nil {
			t.Errorf("before: %v", err)
		}
		srv.Control("ListShards", denied)
		time.Sleep(4 * time.Minute)
		if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "stream s could not be listed") {
			t.Errorf("while it is denied: %v", err)
		}
		srv.Control("ListShards", nil)
		time.Sleep(2 * time.Minute)
		if err := c.Ready(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// If reads are denied from the start, the lags still grow.
func TestTheLagIsKnownWhileReadsAreDenied(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Control("GetShardIterator", denied)
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, weir.HandlerFunc(newSink(t).handle)) }()
		time.Sleep(time.Minute)
		if all := c.Shards(); len(all) != 1 || all[0].ReadLag < 40*time.Second || all[0].HandledLag < all[0].ReadLag {
			t.Errorf("%+v", all)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A stream that was deleted and created again refuses its old positions for a moment. Workers
// recover by themselves, so the log does not ask for a reset.
func TestAStreamThatIsMadeAnewNeedsNoReset(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		for i := range 20 {
			srv.Put("s", fmt.Sprint(i), []byte("x"))
		}
		log := &lines{}
		opts := weir.Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))}
		stop := start(t, srv.Client(), memstore.New(), opts, func(context.Context, *weir.Batch) error { return nil })
		time.Sleep(30 * time.Second)
		srv.DeleteStream("s")
		time.Sleep(30 * time.Second)
		srv.CreateStream("s", 2)
		time.Sleep(5 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := log.count("group reset"); n > 0 {
			t.Errorf("logged %q", log.all)
		}
	})
}

// If the handlers of two hundred shards fail for seven seconds, the log contains only a few lines
// about the failures.
func TestAnOutageOfWhatHandlersNeedIsLoggedInAFewLines(t *testing.T) {
	bubble(t, 200, func(t *testing.T, srv *kinesistest.Server) {
		for i := range 2000 {
			srv.Put("s", fmt.Sprint(i), []byte("x"))
		}
		log, began := &lines{}, time.Now()
		opts := weir.Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			if time.Since(began) < 7*time.Second {
				return fmt.Errorf("no connection for the batch at %s", b.Records[0].SequenceNumber)
			}
			return nil
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := log.count("the handler failed"); n == 0 || n > 5 {
			t.Errorf("%d lines: %q", n, log.all)
		}
		if log.count("repeated=") == 0 {
			t.Errorf("no line has the number of those left out: %q", log.all)
		}
	})
}
