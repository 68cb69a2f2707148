package behaviour

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// If fan-out is refused, a shard is polled. Its status is then the status of a polled shard and
// shows no problem. The worker does not probe other shards to find out whether it can read at all.
func TestTheStatusWhileFanOutIsRefused(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		refuse := func(code string) func(*kinesistest.Call) kinesistest.Fault {
			return func(*kinesistest.Call) kinesistest.Fault {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: code}}
			}
		}
		srv.Control("SubscribeToShard", refuse("AccessDeniedException"))
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{
			App: "app", Streams: []string{"s"}, Logger: quiet, FanOut: weir.FanOut{Mode: weir.FanOutRegister}, Polling: weir.Polling{IdleInterval: 40 * time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil }))
		}()
		time.Sleep(30 * time.Second)
		tip := 0
		for range 100 { // ten minutes in all
			time.Sleep(6 * time.Second)
			s := c.Shards()[0]
			if s.Reason == health.AtTip {
				tip++
				if s.Err != nil || s.Attempt != 0 || time.Since(s.Since) > 40*time.Second {
					t.Errorf("%+v", s)
				}
			}
		}
		if tip < 80 {
			t.Errorf("at the tip in %d looks of 100", tip)
		}
		if n := srv.Requests("GetShardIterator"); n != 1 {
			t.Errorf("%d iterators were requested: the worker probed other shards", n)
		}
		srv.Control("GetRecords", refuse("KMSDisabledException"))
		time.Sleep(55 * time.Second)
		if s := c.Shards()[0]; s.Reason != health.ReadFailed || s.Err == nil || s.Attempt == 0 {
			t.Errorf("%+v", s)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// If a stream is deleted, its workers query the stream for each shard, with pauses of up to 10 s.
func TestADeletedStreamIsNoStorm(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		t.Run(reading.String(), func(t *testing.T) {
			bubble(t, 10, func(t *testing.T, srv *kinesistest.Server) {
				var mu sync.Mutex
				told := 0
				events := event.On(func(context.Context, event.ReadFailed) {
					mu.Lock()
					defer mu.Unlock()
					told++
				})
				stop := start(t, srv.Client(), memstore.New(), weir.Options{FanOut: weir.FanOut{Mode: reading}, OnEvent: events}, func(context.Context, *weir.Batch) error { return nil })
				time.Sleep(30 * time.Second)
				srv.DeleteStream("s")
				time.Sleep(time.Minute)
				mu.Lock()
				told = 0
				mu.Unlock()
				listed := srv.Requests("ListShards")
				time.Sleep(10 * time.Minute)
				mu.Lock()
				if told < 10*30 || told > 10*140 { // with pauses of 5 to 10 s
					t.Errorf("10 shards said %d times in ten minutes that the stream is gone", told)
				}
				mu.Unlock()
				if n := srv.Requests("ListShards") - listed; n > 10*140+100 {
					t.Errorf("it was listed %d times", n)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
