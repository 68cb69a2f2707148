package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/kinesistest"
)

// network is a server with shards and a consumer in a bubble. The transport uses HTTP/2 and records
// its connections.
type network struct {
	srv       *kinesistest.Server
	client    *kinesis.Client
	consumer  string
	transport *http.Transport
	dials     atomic.Int32
	mu        sync.Mutex
	conns     []*blackhole
}

// blackhole is a connection that can silently stop transferring data.
type blackhole struct {
	net.Conn
	dead atomic.Bool
}

func (b *blackhole) Write(p []byte) (int, error) {
	if b.dead.Load() {
		return len(p), nil
	}
	return b.Conn.Write(p)
}

func (b *blackhole) Read(p []byte) (int, error) {
	for {
		n, err := b.Conn.Read(p)
		if err != nil || !b.dead.Load() {
			return n, err
		}
	}
}

func (n *network) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.dead.Store(true)
	}
}

func withNetwork(t *testing.T, shards int, f func(t *testing.T, n *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true, TLS: true, NoLimits: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = srv.Close() }()
		srv.CreateStream("s", shards)
		n := &network{srv: srv, transport: srv.Transport()}
		dial := n.transport.DialContext
		n.transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			n.dials.Add(1)
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			b := &blackhole{Conn: c}
			n.mu.Lock()
			defer n.mu.Unlock()
			n.conns = append(n.conns, b)
			return b, nil
		}
		n.client = srv.Client(func(o *kinesis.Options) {
			o.HTTPClient = &http.Client{Transport: n.transport, Timeout: 20 * time.Second}
		})
		n.consumer = srv.RegisterConsumer("s", "c")
		f(t, n)
	})
}

func (n *network) subscribe(t *testing.T, c *Caller, shard string) (*Subscription, error) {
	return c.Subscribe(t.Context(), SubscribeRequest{ConsumerARN: n.consumer, Shard: shard, At: fromOldest, Answer: 10 * time.Second})
}

// Each subscription that is not read holds at most one HTTP/2 flow-control window of data. The
// other subscriptions can still use the connection, with any settings of the user's transport.
func TestSubscriptionsThatAreNotReadHoldUpNoOther(t *testing.T) {
	const stuck, records, size = 8, 10, 200 << 10
	withNetwork(t, stuck+1, func(t *testing.T, n *network) {
		n.transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerConnection: 1 << 20, MaxReceiveBufferPerStream: 4<<20 - 1}
		shards := n.srv.OpenShards("s")
		put := map[string]int{}
		for i, full := 0, 0; full < len(shards); i++ {
			shard, _ := n.srv.Put("s", fmt.Sprint("key", i), bytes.Repeat([]byte{byte(i)}, size))
			if put[shard]++; put[shard] == records {
				full++
			}
		}
		c := newCaller(t, n.client, Options{Reuse: true})
		subs := make([]*Subscription, len(shards))
		for i, shard := range shards {
			var err error
			if subs[i], err = n.subscribe(t, c, shard); err != nil {
				t.Fatal(err)
			}
			defer subs[i].Close()
		}
		synctest.Wait() // they have sent as much as the window allows
		if got := n.dials.Load(); got != 1 {
			t.Errorf("%d connections for %d subscriptions", got, len(shards))
		}
		// Read the fast subscription first, and then the stuck ones.
		for i := len(shards) - 1; i >= 0; i-- {
			began := time.Now()
			var p codec.Page
			for got := 0; got < put[shards[i]]; got += len(p.Records) {
				if err := subs[i].Next(20*time.Second, &p); err != nil {
					t.Fatalf("subscription %d after %d records: %v", i, got, err)
				}
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("subscription %d took %v", i, took)
			}
		}
	})
}

// If there are more subscriptions than a connection allows HTTP/2 streams, the client makes more
// connections.
func TestManySubscriptionsTakeMoreConnections(t *testing.T) {
	const many = 300 // the server accepts 250 on one connection
	withNetwork(t, many, func(t *testing.T, n *network) {
		c := newCaller(t, n.client, Options{})
		var failed atomic.Int32
		var all sync.WaitGroup
		for _, shard := range n.srv.OpenShards("s") {
			sub, err := n.subscribe(t, c, shard)
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				defer sub.Close()
				var p codec.Page
				for range 3 { // including empty events
					if err := sub.Next(30*time.Second, &p); err != nil {
						failed.Add(1)
					}
				}
			})
		}
		all.Wait()
		if n := failed.Load(); n > 0 {
			t.Errorf("%d failed", n)
		}
		if n := n.dials.Load(); n != 2 {
			t.Errorf("%d connections", n)
		}
	})
}

// Pings detect a connection that died silently, and its subscriptions end before their own limit
// for silence. A new subscription uses another connection.
func TestADeadConnectionIsGivenUp(t *testing.T) {
	withNetwork(t, 3, func(t *testing.T, n *network) {
		c := newCaller(t, n.client, Options{})
		var subs []*Subscription
		for _, shard := range n.srv.OpenShards("s") {
			sub, err := n.subscribe(t, c, shard)
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Close()
			subs = append(subs, sub)
			if err := sub.Next(30*time.Second, new(codec.Page)); err != nil {
				t.Fatal(err)
			}
		}
		n.kill()
		began := time.Now()
		for _, sub := range subs {
			err := error(nil)
			for err == nil { // events that had already arrived
				err = sub.Next(time.Hour, new(codec.Page))
			}
			if errors.Is(err, ErrEnded) || errors.Is(err, ErrSilent) {
				t.Errorf("on a dead connection: %v", err)
			}
		}
		if took := time.Since(began); took > streamPing+streamPong+time.Second {
			t.Errorf("that took %v", took)
		}
		sub, err := n.subscribe(t, c, n.srv.OpenShards("s")[0])
		if err != nil {
			t.Fatalf("%v: after %v", err, time.Since(began))
		}
		defer sub.Close()
		if err := sub.Next(30*time.Second, new(codec.Page)); err != nil {
			t.Error(err)
		}
	})
}

// The settings of the user's HTTP client apply, except those that would limit or end streams.
func TestTransportsForStreams(t *testing.T) {
	never := new(http.Protocols)
	never.SetHTTP1(true)
	for name, test := range map[string]struct {
		from  *http.Transport
		force bool
	}{
		"usual":              {&http.Transport{MaxConnsPerHost: 7}, true},
		"HTTP/1.1 alone":     {&http.Transport{Protocols: never}, false},
		"in the old way":     {&http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}, false},
		"dials TLS itself":   {&http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return nil, nil }}, false},
		"a smaller window":   {&http.Transport{HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 100_000}}, true},
		"pings of its own":   {&http.Transport{HTTP2: &http.HTTP2Config{SendPingTimeout: time.Hour}}, true},
		"idle for ever":      {&http.Transport{IdleConnTimeout: 0}, true},
		"asked for HTTP/2":   {&http.Transport{ForceAttemptHTTP2: true}, true},
		"answers in a while": {&http.Transport{ResponseHeaderTimeout: time.Minute}, true},
	} {
		from := test.from
		doer, _ := streamDoer(&http.Client{Transport: from, Timeout: time.Second})
		client := doer.(*http.Client)
		to := client.Transport.(*http.Transport)
		if to == from || client.Timeout != 0 || to.MaxConnsPerHost != 0 || to.ForceAttemptHTTP2 != test.force ||
			to.ResponseHeaderTimeout != from.ResponseHeaderTimeout || to.HTTP2.MaxReceiveBufferPerStream > streamWindow {
			t.Errorf("%s: %+v", name, to)
		}
		if h2 := from.HTTP2; h2 != nil && (h2.MaxReceiveBufferPerStream != 0 && to.HTTP2.MaxReceiveBufferPerStream != h2.MaxReceiveBufferPerStream ||
			h2.SendPingTimeout != 0 && to.HTTP2.SendPingTimeout != h2.SendPingTimeout) {
			t.Errorf("%s: %+v of %+v", name, to.HTTP2, h2)
		}
		if name == "usual" && from.MaxConnsPerHost != 7 {
			t.Error("the user's transport was changed")
		}
	}
	doer, _ := streamDoer(awshttp.NewBuildableClient().WithTimeout(time.Second))
	if c, ok := doer.(*http.Client); !ok || c.Timeout != 0 || c.Transport.(*http.Transport).HTTP2 == nil {
		t.Errorf("of the SDK's client: %T", doer)
	}
}
