package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/kinesistest"
)

// wallet is a WaitingMemory that counts its bytes.
type wallet struct {
	answers.Purse
	mu   sync.Mutex
	open chan struct{} // closed when memory becomes available
	no   error         // returned in place of memory
}

func (w *wallet) Take(ctx context.Context, n int) error {
	if w.no != nil {
		return w.no
	}
	select {
	case <-w.open:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Purse.TakeExcess(n)
	return nil
}

// A subscription waits for an event's memory for as long as necessary. The wait does not count as
// silence, and the memory is returned exactly once.
func TestSubscriptionWaitsForMemory(t *testing.T) {
	inBubble(t, kinesistest.Config{TLS: true}, func(t *testing.T, s *subscribed, path Path) {
		c := newCaller(t, s.client, Options{Path: path, Reuse: true})
		s.srv.Put("s", "k", make([]byte, 100_000))
		w := &wallet{open: make(chan struct{}), Purse: answers.Purse{Left: 1 << 30}}
		p := codec.Page{Memory: w}
		sub := s.subscribe(t, c)
		began := time.Now()
		time.AfterFunc(100*time.Second, func() { close(w.open) })
		if err := sub.Next(2*time.Second, &p); err != nil || len(p.Records) != 1 {
			t.Fatal(err)
		}
		if took := time.Since(began); path != PlainSDK && took != 100*time.Second {
			t.Errorf("it took %v", took)
		}
		if w.Used < 100_000 || w.Used > 200_000 {
			t.Errorf("%d bytes were taken", w.Used)
		}
		p.Release()
		p.Release()
		if w.Used != 0 {
			t.Errorf("%d bytes were not given back", w.Used)
		}
		if path == PlainSDK {
			return
		}
		w.open = make(chan struct{})
		s.srv.Put("s", "k", make([]byte, 100_000))
		w.no = errors.New("no more")
		if err := sub.Next(30*time.Second, &p); !errors.Is(err, w.no) || w.Used != 0 {
			t.Errorf("refused: %v, %d bytes taken", err, w.Used)
		}
		w.no = nil
		time.Sleep(5 * time.Second)
		sub = s.subscribe(t, c)
		time.AfterFunc(3*time.Second, sub.Stop)
		if err := sub.Next(30*time.Second, &p); !errors.Is(err, ErrClosed) || w.Used != 0 {
			t.Errorf("stopped while it waits: %v, %d bytes taken", err, w.Used)
		}
	})
}

// Many subscriptions of one Caller do not disturb each other.
func TestManySubscriptionsAtOnce(t *testing.T) {
	for _, path := range []Path{OwnCall, UnderSDK, PlainSDK} {
		srv, err := kinesistest.Start(kinesistest.Config{TLS: true})
		if err != nil {
			t.Fatal(err)
		}
		srv.CreateStream("s", 8)
		client := srv.Client()
		out, err := client.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{StreamARN: aws.String(srv.StreamARN("s")), ConsumerName: aws.String("c")})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 400 {
			srv.Put("s", fmt.Sprint("key", i), bytes.Repeat([]byte{byte(i)}, 1000))
		}
		c := newCaller(t, client, Options{Path: path, Reuse: true})
		var total sync.WaitGroup
		var mu sync.Mutex
		got := 0
		for _, shard := range srv.OpenShards("s") {
			total.Go(func() {
				sub, err := c.Subscribe(t.Context(), SubscribeRequest{ConsumerARN: *out.Consumer.ConsumerARN, Shard: shard, At: fromOldest})
				if err != nil {
					t.Error(err)
					return
				}
				defer sub.Close()
				var p codec.Page
				for behind := time.Duration(1); behind != 0; behind = p.Behind {
					p.Release()
					if err := sub.Next(10*time.Second, &p); err != nil {
						t.Error(err)
						return
					}
					for _, r := range p.Records {
						if len(r.Data) != 1000 || bytes.Count(r.Data, r.Data[:1]) != 1000 {
							t.Errorf("%.20q", r.Data)
						}
					}
					mu.Lock()
					got += len(p.Records)
					mu.Unlock()
				}
			})
		}
		total.Wait()
		if got != 400 {
			t.Errorf("%s: %d records", path, got)
		}
		_ = srv.Close()
	}
}

// This test counts the heap objects of an event with a thousand records.
func TestAllocationsOfAnEvent(t *testing.T) {
	const records = 1000
	for _, format := range []codec.Format{codec.JSON, codec.CBOR} {
		payload := string(answers.JSON{Time: "e"}.Encode(answers.Sample(records, 1024)))
		if format == codec.CBOR {
			payload = string(answers.CBOR{}.Encode(answers.Sample(records, 1024)))
		}
		in := answers.EventMessage(t, "SubscribeToShardEvent", format.ContentType(), payload)
		const runs = 10
		body := io.NopCloser(bytes.NewReader(bytes.Repeat(in, runs+1)))
		c := newCaller(t, fakeClient("http://localhost"), Options{Reuse: true})
		sub := &Subscription{c: c, resp: &http.Response{}}
		sub.ctx, sub.cancel = context.WithCancelCause(t.Context())
		sub.events = &framedEvents{body: body, frames: codec.NewFrameReader(body, codec.MostBody)}
		var p codec.Page
		n := testing.AllocsPerRun(runs, func() {
			if err := sub.Next(time.Minute, &p); err != nil || len(p.Records) != records {
				t.Fatal(err, len(p.Records))
			}
			p.Release()
		})
		t.Logf("%s: %.0f allocations for %d records", format, n, records)
		if n > atMost(10) {
			t.Errorf("%s: %.0f allocations", format, n)
		}
	}
}
