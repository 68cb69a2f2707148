package polling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// fed is a set of feeds in a bubble. They read the shards of an embedded Kinesis.
type fed struct {
	t      *testing.T
	srv    *kinesistest.Server
	client *kinesis.Client
	caller *wire.Caller
	sched  *Scheduler
	budget *memory.Budget
	got    atomic.Int64 // bytes that the client received
	mute   atomic.Int64 // connections that the server closed without an answer
	shards []string
	open   []*Feed
	hogs   []*memory.Share
}

// feeding runs f in a bubble. Afterwards it checks that all goroutines have ended and all memory
// was returned.
func feeding(t *testing.T, cfg kinesistest.Config, shards, bytes int, f func(s *fed)) {
	t.Helper()
	served(t, cfg, shards, func(t *testing.T, srv *kinesistest.Server) {
		s := &fed{t: t, srv: srv, sched: new(Scheduler), budget: memory.New(bytes), shards: srv.OpenShards("s")}
		transport := srv.Transport()
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			return &counted{Conn: c, fed: s}, err
		}
		s.client = srv.Client(func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: transport} })
		var err error
		if s.caller, err = wire.NewCaller(s.client, wire.Options{Reuse: true, Poison: true}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			for _, f := range s.open {
				f.Close()
			}
			for _, h := range s.hogs {
				h.Close()
			}
			s.sched.Close()
			s.caller.Close()
			transport.CloseIdleConnections()
			if n := s.budget.InUse(); n != 0 {
				t.Errorf("%d bytes of memory were not given back", n)
			}
		}()
		f(s)
	})
}

// counted is a connection that counts the bytes that it receives.
type counted struct {
	net.Conn
	fed *fed
	got int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.fed.got.Add(int64(n))
	if c.got += int64(n); c.got == 0 && errors.Is(err, io.EOF) {
		c.fed.mute.Add(1)
	}
	return n, err
}

func (s *fed) feed(i int, change ...func(*Poll)) *Feed {
	p := Poll{
		Setup: &source.Setup{Client: s.client, Caller: s.caller, Stream: streams.Stream{Name: "s"}, Idle: time.Second},
		Shard: s.shards[i], From: shard.Oldest, Limit: 10_000,
	}
	for _, c := range change {
		c(&p)
	}
	f := NewFeed(&owner{s.t.Context(), p.Listener, func() {}}, p, s.sched, s.budget)
	f.Waits = true
	s.open = append(s.open, f)
	return f
}

// owner is a Feed's owner in tests.
type owner struct {
	ctx   context.Context
	hears source.Listener // may be nil
	wake  func()
}

func (o *owner) Context() context.Context { return o.ctx }
func (o *owner) Calls() context.Context   { return o.ctx }
func (o *owner) Wake()                    { o.wake() }

func (o *owner) Failed(err error, throttled bool, next time.Duration) {
	if o.hears != nil {
		o.hears.Failed(err, throttled, next)
	}
}

func (o *owner) Expired(e source.Expiry) {
	if o.hears != nil {
		o.hears.Expired(e)
	}
}

// outlasted is an owner whose Context ends before its Calls.
type outlasted struct {
	owner
	calls context.Context
}

func (o *outlasted) Calls() context.Context { return o.calls }

// put puts n records of the given size into the first shard. Each record begins with its number.
func (s *fed) put(from, n, size int) {
	for i := range n {
		s.srv.Put("s", "k", append([]byte(fmt.Sprintf("%08d", from+i)), bytes.Repeat([]byte{'x'}, size-8)...))
	}
}

// take takes parts until it has at least n records, and keeps each part for the duration each. The
// records must be numbered without gaps, beginning with from. take returns the number of the next
// record.
func (s *fed) take(f *Feed, from, n int, each time.Duration) int {
	s.t.Helper()
	for n > 0 {
		page, err := f.Next(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(each)
		for _, r := range page.Records {
			if want := fmt.Sprintf("%08d", from); string(r.Data[:8]) != want || r.Key != "k" {
				s.t.Fatalf("record %q of key %q, want %s", r.Data[:8], r.Key, want)
			}
			from++
			n--
		}
		page.Release()
	}
	return from
}

const mib = 1 << 20
