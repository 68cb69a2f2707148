package behaviour

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/previous"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// programs counts the records that several programs have handled. The programs belong to one
// application and read different streams.
type programs struct {
	mu      sync.Mutex
	handled map[string]map[string]int // by program, then by "stream data"
}

func (p *programs) handler(program string) weir.HandlerFunc {
	return func(_ context.Context, b *weir.Batch) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.handled == nil {
			p.handled = map[string]map[string]int{}
		}
		if p.handled[program] == nil {
			p.handled[program] = map[string]int{}
		}
		for _, r := range b.Records {
			p.handled[program][b.Stream+" "+string(r.Data)]++
		}
		return nil
	}
}

// count returns the number of records of a stream that a program has handled.
func (p *programs) count(program, stream string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for what := range p.handled[program] {
		if strings.HasPrefix(what, stream+" ") {
			n++
		}
	}
	return n
}

func fillStream(srv *kinesistest.Server, stream string, from, n int) {
	for i := range n {
		srv.Put(stream, fmt.Sprint("key ", i), fmt.Appendf(nil, "%d", from+i))
	}
}

const interval = 30 * time.Second

func TestTwoProgramsOfOneApplicationHandleTheirOwnStreams(t *testing.T) {
	for _, from := range []weir.Position{weir.Oldest, weir.Latest} {
		t.Run(from.String(), func(t *testing.T) {
			bubble(t, 0, func(t *testing.T, srv *kinesistest.Server) {
				store, p := memstore.New(), &programs{}
				var log lines
				stops := map[string]func() error{}
				begin := func(worker string, streams ...string) {
					program := strings.TrimRight(worker, "0123456789")
					stops[worker] = start(t, srv.Client(), store, weir.Options{Worker: worker, Streams: streams, Start: from,
						Timing: weir.Timing{ListInterval: interval}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, p.handler(program))
				}
				srv.CreateStream("a", 4)
				srv.CreateStream("b", 4)
				begin("one1", "a")
				until(t, "a is read", 10*time.Second, func() bool { return len(owned(t, store)) == 1 })
				begin("two1", "b")
				begin("two2", "b")
				until(t, "b is read too", interval, func() bool { return slices.Equal(owned(t, store), []string{"a", "b"}) })
				time.Sleep(3 * time.Second)
				fillStream(srv, "a", 0, 300)
				fillStream(srv, "b", 0, 300)
				all := func(n int) func() bool {
					return func() bool { return p.count("one", "a") == n && p.count("two", "b") == n }
				}
				until(t, "all records are handled", interval, all(300))
				if log.count("read different streams") == 0 {
					t.Error("the log does not warn")
				}
				// The leader ends. Its program is the only one that reads stream a, so the new
				// leader belongs to the program that reads only stream b.
				if err := stops["one1"](); err != nil {
					t.Error(err)
				}
				fillStream(srv, "a", 1000, 300)
				fillStream(srv, "b", 1000, 300)
				until(t, "b is handled", interval, func() bool { return p.count("two", "b") == 600 })
				begin("one2", "a")
				until(t, "a is handled", interval, all(600))
				if p.count("one", "b")+p.count("two", "a") > 0 {
					t.Error("a program handled records of the other's stream")
				}
				// After a split, the program that reads a shard also reads its children.
				for _, stream := range []string{"a", "b"} {
					srv.Split(stream, "shardId-000000000001")
					fillStream(srv, stream, 2000, 100)
				}
				until(t, "children are handled", interval, all(700))
				for _, worker := range []string{"one2", "two1", "two2"} {
					if err := stops[worker](); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func TestARollingDeploymentAddsAndRemovesAStream(t *testing.T) {
	bubble(t, 0, func(t *testing.T, srv *kinesistest.Server) {
		store, p := memstore.New(), &programs{}
		srv.CreateStream("a", 4)
		srv.CreateStream("b", 4)
		begin := func(program, worker string, streams ...string) func() error {
			return start(t, srv.Client(), store, weir.Options{Worker: worker, Streams: streams, Timing: weir.Timing{ListInterval: interval}}, p.handler(program))
		}
		var old, now []func() error
		for i := range 3 {
			old = append(old, begin("old", fmt.Sprint("old", i), "a"))
		}
		until(t, "a is read", 10*time.Second, func() bool { return len(owned(t, store)) == 1 })
		fillStream(srv, "b", 0, 100)
		n := 0
		put := func() { fillStream(srv, "a", n, 100); fillStream(srv, "b", n+100, 100); n += 100 }
		for i := range old {
			now = append(now, begin("new", fmt.Sprint("new", i), "a", "b"))
			put()
			until(t, "b is read", interval, func() bool { return p.count("new", "b") == n+100 })
			until(t, "a is read", interval, func() bool { return p.count("new", "a")+p.count("old", "a") >= n })
			if err := old[i](); err != nil {
				t.Error(err)
			}
		}
		if p.count("old", "b") > 0 {
			t.Error("an old worker handled records of the new stream")
		}
		// Now the reverse: the second stream is removed again.
		var last []func() error
		for i := range now {
			last = append(last, begin("last", fmt.Sprint("last", i), "a"))
			put()
			until(t, "b is read while a worker reads it", interval, func() bool { return p.count("new", "b") == n+100 })
			if err := now[i](); err != nil {
				t.Error(err)
			}
		}
		put()
		time.Sleep(2 * interval)
		if p.count("last", "b") > 0 || p.count("new", "b") != n || !slices.Equal(owned(t, store), []string{"a"}) {
			t.Errorf("the stream that was removed is read: %v", owned(t, store))
		}
		for _, stop := range last {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestALeaderThatMayNotListAStreamLetsOthersListIt(t *testing.T) {
	bubble(t, 0, func(t *testing.T, srv *kinesistest.Server) {
		srv.CreateStream("a", 2)
		srv.CreateStream("b", 2)
		denied := srv.Client(func(o *kinesis.Options) { o.HTTPClient = denying{srv.HTTPClient(), "b"} })
		store, p := memstore.New(), &programs{}
		one := start(t, denied, store, weir.Options{Worker: "one", Streams: []string{"a", "b"}, Timing: weir.Timing{ListInterval: interval}}, p.handler("one"))
		until(t, "a is read", 10*time.Second, func() bool { return len(owned(t, store)) == 1 })
		time.Sleep(2 * interval)
		if streams := owned(t, store); len(streams) != 1 {
			t.Fatalf("%v are read, although b cannot be listed", streams)
		}
		two := start(t, srv.Client(), store, weir.Options{Worker: "two", Streams: []string{"a", "b"}, Timing: weir.Timing{ListInterval: interval}}, p.handler("two"))
		fillStream(srv, "b", 0, 50)
		until(t, "b is read", interval, func() bool { return p.count("one", "b")+p.count("two", "b") == 50 })
		if err := one(); err != nil {
			t.Error(err)
		}
		if err := two(); err != nil {
			t.Error(err)
		}
	})
}

func TestANewWorkerUnderALeaderOfTheVersionBefore(t *testing.T) {
	bubble(t, 0, func(t *testing.T, srv *kinesistest.Server) {
		srv.CreateStream("a", 4)
		srv.CreateStream("b", 4)
		store, p := memstore.New(), &programs{}
		old := start(t, srv.Client(), previous.Client(store), weir.Options{Worker: "old", Streams: []string{"a"}, Timing: weir.Timing{ListInterval: interval}}, p.handler("old"))
		until(t, "a is read", 10*time.Second, func() bool { return len(owned(t, store)) == 1 })
		// A leader of the previous version assigns shards to any worker, so the new worker gets
		// shards of a stream that it does not read. It returns these shards.
		var log lines
		now := start(t, srv.Client(), store, weir.Options{Worker: "new", Streams: []string{"b"}, Timing: weir.Timing{ListInterval: interval}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, p.handler("new"))
		fillStream(srv, "a", 0, 100)
		fillStream(srv, "b", 0, 100)
		until(t, "a is handled", interval, func() bool { return p.count("old", "a") == 100 })
		time.Sleep(4 * interval)
		if n := log.count("streams are not read yet, because the leader runs an older version"); n != 1 {
			t.Errorf("the log has %d warnings about the stream that waits, want 1", n)
		}
		if err := old(); err != nil {
			t.Error(err)
		}
		until(t, "b is handled", interval, func() bool { return p.count("new", "b") == 100 })
		if p.count("new", "a") > 0 {
			t.Error("a worker handled records of a stream that it does not read")
		}
		// A worker of the previous version that joins now gets no shards of the other stream.
		old = start(t, srv.Client(), previous.Client(store), weir.Options{Worker: "old", Streams: []string{"a"}, Timing: weir.Timing{ListInterval: interval}}, p.handler("old"))
		fillStream(srv, "b", 100, 100)
		until(t, "b is handled", interval, func() bool { return p.count("new", "b") == 200 })
		time.Sleep(2 * interval)
		if p.count("old", "b") > 0 {
			t.Error("a worker of the version before got a stream that it does not read")
		}
		if err := now(); err != nil {
			t.Error(err)
		}
		if err := old(); err != nil {
			t.Error(err)
		}
	})
}

// Workers of the previous version do not report which streams they read. A new leader assigns them
// no shards of a stream unless the leader itself reads that stream. The leader logs this once for
// each stream.
func TestAStreamOfOlderWorkersUnderANewLeader(t *testing.T) {
	bubble(t, 0, func(t *testing.T, srv *kinesistest.Server) {
		srv.CreateStream("a", 2)
		srv.CreateStream("b", 2)
		store, p := memstore.New(), &programs{}
		waits := "shards of a stream may stay unassigned, because workers of an older version"
		older := weir.Options{Worker: "old", Streams: []string{"b"}, Timing: weir.Timing{ListInterval: interval}}
		old := start(t, srv.Client(), previous.Client(store), older, p.handler("old"))
		until(t, "b is read", 10*time.Second, func() bool { return len(owned(t, store)) == 1 })
		var log lines
		now := start(t, srv.Client(), store, weir.Options{Worker: "new", Streams: []string{"a"}, Timing: weir.Timing{ListInterval: interval}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, p.handler("new"))
		time.Sleep(interval)
		if err := old(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * interval) // the new worker is the leader by now
		if n := log.count(waits); n > 0 {
			t.Errorf("%d warnings while no older worker is there", n)
		}
		old = start(t, srv.Client(), previous.Client(store), older, p.handler("old"))
		time.Sleep(4 * interval)
		if n := log.count(waits); n != 1 {
			t.Errorf("the log has %d warnings about the stream that waits, want 1", n)
		}
		view, err := store.View(t.Context(), "app", "")
		if err != nil {
			t.Fatal(err)
		}
		if s := strings.Join(lease.DescribeStreams(view), "\n"); !strings.Contains(s, "the stream b, and workers of an older version get no more") {
			t.Errorf("described as %q", s)
		}
		if err := now(); err != nil {
			t.Error(err)
		}
		fillStream(srv, "b", 0, 100)
		until(t, "b is handled", interval, func() bool { return p.count("old", "b") == 100 })
		if err := old(); err != nil {
			t.Error(err)
		}
	})
}

func TestAWorkerStopsWhenTheStoresFormatIsNewer(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		store := &upgraded{Store: memstore.New()}
		c, err := weir.New(srv.Client(), store, weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			done <- c.Run(t.Context(), weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil }))
		}()
		until(t, "the shard is read", 10*time.Second, func() bool { return len(owned(t, store.Store)) == 1 })
		store.newer.Store(true)
		select {
		case err = <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("it goes on")
		}
		if err == nil || !strings.Contains(err.Error(), "replace this program") {
			t.Errorf("Run returned %v", err)
		}
	})
}

// denying is an HTTP client that refuses listings of a stream.
type denying struct {
	*http.Client
	stream string
}

func (d denying) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".ListShards") && bytes.Contains(body, []byte(`"`+d.stream+`"`)) ||
		strings.HasSuffix(r.URL.Path, "/ListShards") && bytes.Contains(body, []byte(d.stream)) {
		return nil, errors.New("access denied")
	}
	return d.Client.Do(r)
}

// upgraded is a store whose format can become newer.
type upgraded struct {
	lease.Store
	newer atomic.Bool
}

func (s *upgraded) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if s.newer.Load() {
		return lease.Orders{}, lease.CheckFormat(lease.Format + 1)
	}
	return s.Store.Heartbeat(ctx, app, r)
}

func (s *upgraded) Leave(ctx context.Context, app string, r lease.Report) error {
	if s.newer.Load() {
		return lease.CheckFormat(lease.Format + 1)
	}
	return s.Store.Leave(ctx, app, r)
}
