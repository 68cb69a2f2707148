package kinesistest_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

// subscriber reads a whole stream by fan-out. It reads a child shard after all of its parents, and
// finds child shards only through ChildShards. Whenever an event stream ends, it subscribes again.
type subscriber struct {
	tb  testing.TB
	s   *kinesistest.Server
	arn string

	mu      sync.Mutex
	parents map[string]map[string]bool // unfinished parents of each shard that waits for them
	begun   map[string]bool
	perKey  map[string][]int
	streams int
	wg      sync.WaitGroup
}

// begin starts reading a shard. The caller holds mu.
func (f *subscriber) begin(ctx context.Context, shard string) {
	f.begun[shard] = true
	f.wg.Go(func() {
		at := position(oldest)
		for ctx.Err() == nil && at != nil {
			at = f.read(ctx, shard, at)
		}
	})
}

// read reads one event stream and returns the position at which to continue. At the end of the
// shard it returns nil.
func (f *subscriber) read(ctx context.Context, shard string, at *types.StartingPosition) *types.StartingPosition {
	out, err := f.s.Client(noRetry).SubscribeToShard(ctx, &kinesis.SubscribeToShardInput{ConsumerARN: &f.arn, ShardId: &shard, StartingPosition: at})
	if err != nil {
		if ctx.Err() == nil {
			f.tb.Errorf("subscribe to %s: %v", shard, err)
		}
		return nil
	}
	stream := out.GetStream()
	defer stream.Close() // the error is checked below
	f.mu.Lock()
	f.streams++
	f.mu.Unlock()
	for got := range stream.Events() {
		ev := got.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent).Value
		if f.take(ctx, shard, ev); ev.ContinuationSequenceNumber == nil {
			return nil
		}
		at = atNumber(after, ev.ContinuationSequenceNumber)
	}
	if err := stream.Err(); err != nil && ctx.Err() == nil {
		f.tb.Errorf("the stream of %s ended with %v", shard, err)
	}
	return at
}

func (f *subscriber) take(ctx context.Context, shard string, ev types.SubscribeToShardEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rec := range ev.Records {
		n, err := strconv.Atoi(string(rec.Data))
		if err != nil {
			f.tb.Error(err)
		}
		f.perKey[*rec.PartitionKey] = append(f.perKey[*rec.PartitionKey], n)
	}
	for _, ch := range ev.ChildShards {
		waiting := f.parents[*ch.ShardId]
		if waiting == nil {
			waiting = map[string]bool{}
			for _, p := range ch.ParentShards {
				waiting[p] = true
			}
			f.parents[*ch.ShardId] = waiting
		}
		if delete(waiting, shard); len(waiting) == 0 && !f.begun[*ch.ShardId] {
			f.begin(ctx, *ch.ShardId)
		}
	}
}

// TestASubscriberSeesEverythingInOrder writes, splits, merges and scales for some minutes of
// virtual time. A consumer is subscribed to all shards.
func TestASubscriberSeesEverythingInOrder(t *testing.T) {
	for _, emptyEvent := range []bool{false, true} {
		t.Run(fmt.Sprintf("EndOnEmptyPage %v", emptyEvent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true, EndOnEmptyPage: emptyEvent, StateDelay: 700 * time.Millisecond, SubscriptionLife: 8 * time.Second})
				s.CreateStream("s", 3)
				f := &subscriber{
					tb: t, s: s, arn: s.RegisterConsumer("s", "c"),
					parents: map[string]map[string]bool{}, begun: map[string]bool{}, perKey: map[string][]int{},
				}
				ctx, cancel := context.WithCancel(t.Context())
				f.mu.Lock()
				for _, shard := range s.OpenShards("s") {
					f.begin(ctx, shard)
				}
				f.mu.Unlock()
				rng := rand.New(rand.NewPCG(3, 4))
				const puts, keys = 800, 40
				for i := range puts {
					ok[*kinesis.PutRecordOutput](t)(c.PutRecord(t.Context(), &kinesis.PutRecordInput{
						StreamName: aws.String("s"), PartitionKey: aws.String(fmt.Sprint(i % keys)), Data: strconv.AppendInt(nil, int64(i), 10),
					}))
					time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
					if i%40 != 39 {
						continue
					}
					open := s.OpenShards("s")
					switch at := rng.IntN(len(open)); {
					case i%120 == 119:
						s.Scale("s", min(max(1, len(open)*(1+rng.IntN(2))-rng.IntN(2)), 12))
					case at+1 < len(open) && rng.IntN(2) == 0:
						s.Merge("s", open[at+1], open[at])
					default:
						s.Split("s", open[at])
					}
				}
				synctest.Wait() // everything is pushed without a wait
				f.mu.Lock()
				n := 0
				for key, seen := range f.perKey {
					n += len(seen)
					for i := range seen {
						if want := i * keys; seen[i]%keys != seen[0]%keys || seen[i]/keys != want/keys {
							t.Fatalf("key %s: number %d is %d", key, i, seen[i])
						}
					}
				}
				if n != puts || len(f.begun) < 20 || f.streams < len(f.begun)+40 {
					t.Errorf("read %d of %d records from %d shards in %d streams", n, puts, len(f.begun), f.streams)
				}
				if live := len(s.Subscriptions("s")); live != len(s.OpenShards("s")) {
					t.Errorf("%d subscriptions are live", live)
				}
				f.mu.Unlock()
				cancel()
				f.wg.Wait()
			})
		})
	}
}

// TestCloseEndsSubscriptions closes servers that have event streams in every state. The bubble
// fails the test if a goroutine remains.
func TestCloseEndsSubscriptions(t *testing.T) {
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			p.cfg.NoLimits, p.cfg.InMemory = true, true
			synctest.Test(t, func(t *testing.T) {
				s := ok[*kinesistest.Server](t)(kinesistest.Start(p.cfg))
				s.CreateStream("s", 6)
				arn := s.RegisterConsumer("s", "c")
				for range 2000 {
					s.Put("s", fmt.Sprint(rand.Uint32()), make([]byte, 10<<10))
				}
				s.Control("SubscribeToShard", func(call *kinesistest.Call) kinesistest.Fault {
					return []kinesistest.Fault{
						{}, // the client reads
						{}, // the client does not read
						{Subscription: kinesistest.SubscriptionFault{HalfOpen: true}},
						{Subscription: kinesistest.SubscriptionFault{HeaderDelay: time.Hour}},
						{Subscription: kinesistest.SubscriptionFault{NoInitialResponse: true, HalfOpen: true}},
						{Delay: time.Hour},
					}[call.N-1]
				})
				var wg sync.WaitGroup
				for i := range 6 {
					at := position(newest)
					if i == 1 {
						at = position(oldest)
					}
					wg.Go(func() {
						sub, err := trySubscribe(t, s, arn, i, at, p.opt(s))
						if (err != nil) != (i > 2) {
							t.Errorf("subscription %d: %v", i, err)
						}
						for i != 1 && err == nil {
							if _, more := <-sub.Events(); !more {
								break
							}
						}
					})
					synctest.Wait()
				}
				if live := s.Subscriptions("s"); len(live) != 5 {
					t.Errorf("live are %v", live)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				wg.Wait()
			})
		})
	}
}

// TestAMountedServerClosesItsStreams mounts the handler in another HTTP server. Close does not know
// the connections of that server.
func TestAMountedServerClosesItsStreams(t *testing.T) {
	s := ok[*kinesistest.Server](t)(kinesistest.Start(kinesistest.Config{NoLimits: true}))
	s.CreateStream("s", 1)
	body := fmt.Sprintf(`{"ConsumerARN":%q,"ShardId":%q,"StartingPosition":{"Type":"LATEST"}}`, s.RegisterConsumer("s", "c"), shardID(0))
	outer, inner := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // the panic has exactly this value
				t.Errorf("it ended with %v", p)
			}
		}()
		s.ServeHTTP(&pipeWriter{inner, http.Header{}}, subscribeRequest(t, body))
	})
	if _, err := io.ReadFull(outer, make([]byte, len(eventFrame(t, "initial-response", jsonType, "{}")))); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// TestAStreamThatIsNotRead fills the buffers between the server and a client that does not read. It
// then waits for the end of the stream.
func TestAStreamThatIsNotRead(t *testing.T) {
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			p.cfg.NoLimits = true
			subscribing(t, p.cfg, func(t *testing.T, s *kinesistest.Server, arn string) {
				for range 12 {
					s.Put("s", "k", make([]byte, 1<<19))
				}
				stuck := subscribe(t, s, arn, 0, position(oldest), p.opt(s))
				time.Sleep(6 * time.Second)
				// The stream that is not read blocks no other subscription.
				heir := subscribe(t, s, arn, 0, position(newest), p.opt(s))
				s.Put("s", "k", []byte("x"))
				if got, _ := heir.records(1); got != "[x]" {
					t.Errorf("got %s", got)
				}
				if live := s.Subscriptions("s"); len(live) != 1 {
					t.Errorf("live are %v", live)
				}
				_ = heir.Close()
				time.Sleep(6 * time.Minute) // until the server cuts the stream
				n := 0
				for range stuck.Events() {
					n++
				}
				if n == 0 || n >= 12 {
					t.Errorf("%d events arrived", n)
				}
				if live := s.Subscriptions("s"); len(live) != 0 {
					t.Errorf("live are %v", live)
				}
			})
		})
	}
}

// pipeWriter is a ResponseWriter without deadlines.
type pipeWriter struct {
	*io.PipeWriter
	header http.Header
}

func (w *pipeWriter) Header() http.Header { return w.header }
func (w *pipeWriter) WriteHeader(int)     {}
func (w *pipeWriter) Flush()              {}

func subscribeRequest(tb testing.TB, body string) *http.Request {
	tb.Helper()
	r := ok[*http.Request](tb)(http.NewRequestWithContext(tb.Context(), http.MethodPost, "http://localhost/", strings.NewReader(body)))
	r.Header.Set("Content-Type", jsonType)
	r.Header.Set("X-Amz-Target", "Kinesis_20131202.SubscribeToShard")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=k, SignedHeaders=host, Signature=0")
	r.Header.Set("X-Amz-Date", "20200101T000000Z")
	return r
}
