package behaviour

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// Three workers with one client read by fan-out, through splits, merges and handoffs. They handle
// all records in order, and share one consumer that is registered with the stream.
func TestFanOutThroughSplitAndMerge(t *testing.T) {
	for name, cfg := range map[string]kinesistest.Config{
		"as usual": {}, "ends on empty events, subscriptions are held": {EndOnEmptyPage: true, HoldSubscriptions: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubbleWith(t, cfg, 3, func(t *testing.T, srv *kinesistest.Server) {
				d := &day{t: t, srv: srv, sink: newSink(t)}
				d.learn()
				client, store := srv.Client(), memstore.New()
				events := event.On(func(_ context.Context, e event.FanOutChanged) {
					t.Errorf("%s has fan-out: %v, because of %v", e.Shard, e.Active, e.Err)
				})
				opts := weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}, OnEvent: events}
				stops := []func() error{start(t, client, store, opts, d.sink.handle)}
				for range 2 {
					fill(srv, d.sink, 20, 3)
					stops = append(stops, start(t, client, store, opts, d.sink.handle))
					time.Sleep(20 * time.Second)
				}
				for range 3 {
					open := srv.OpenShards("s")
					srv.Split("s", open[1])
					d.learn()
					fill(srv, d.sink, 20, 3)
					time.Sleep(time.Minute)
					open = srv.OpenShards("s")
					srv.Merge("s", open[0], open[1])
					d.learn()
					fill(srv, d.sink, 20, 3)
					time.Sleep(6 * time.Minute) // longer than a subscription lasts
				}
				fill(srv, d.sink, 20, 3)
				took := until(t, "everything handled", 10*time.Second, func() bool { return d.sink.missing() == 0 })
				if took > time.Second {
					t.Errorf("the last records took %v, though they are pushed", took)
				}
				for _, stop := range stops {
					if err := stop(); err != nil {
						t.Error(err)
					}
				}
				d.sink.judge()
				if d.sink.again > 0 {
					t.Errorf("%d records were handled twice though nobody died", d.sink.again)
				}
				if n := srv.Requests("GetRecords"); n > 0 {
					t.Errorf("it polled %d times", n)
				}
				if n := srv.Requests("RegisterStreamConsumer"); n != 1 {
					t.Errorf("consumers were registered %d times", n)
				}
				synctest.Wait()
				if live := srv.Subscriptions("s"); len(live) > 0 {
					t.Errorf("after Run there are still %v", live)
				}
			})
		})
	}
}

// The next owner of a shard reads it by fan-out soon, whether the previous owner stopped or died.
// Kinesis may refuse the new subscription for 5 s.
func TestFanOutFailover(t *testing.T) {
	for _, hold := range []bool{false, true} {
		bubbleWith(t, kinesistest.Config{HoldSubscriptions: hold}, 2, func(t *testing.T, srv *kinesistest.Server) {
			s, store := newSink(t), memstore.New()
			first := &process{faultyStore: &faultyStore{Store: store}}
			first.stop = start(t, srv.Client(), first, weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}}, func(ctx context.Context, b *weir.Batch) error {
				if first.crashed() {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return s.handle(ctx, b)
			})
			fill(srv, s, 10, 1)
			until(t, "the first handled", 10*time.Second, func() bool { return s.missing() == 0 })
			var gone sync.WaitGroup
			first.crash(&gone)
			stop := start(t, srv.Client(), store, weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}}, s.handle)
			fill(srv, s, 10, 1)
			// 7 s of failover and 6 s of fan-out
			took := until(t, "taken over", 13*time.Second, func() bool { return s.missing() == 0 })
			t.Logf("held %v: read %v after a crash", hold, took)
			if err := stop(); err != nil {
				t.Error(err)
			}
			stop = start(t, srv.Client(), store, weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}}, s.handle)
			fill(srv, s, 10, 1)
			took = until(t, "started again", 10*time.Second, func() bool { return s.missing() == 0 })
			t.Logf("held %v: read %v after a restart", hold, took)
			if err := stop(); err != nil {
				t.Error(err)
			}
			gone.Wait()
			s.judge()
		})
	}
}

// If fan-out is refused, the shards are polled, and this is reported once for each shard. Fan-out
// resumes within two minutes after it is allowed again.
func TestFanOutIsRefusedAndThenAllowed(t *testing.T) {
	for action, code := range map[string]string{
		"RegisterStreamConsumer": "LimitExceededException",
		"DescribeStreamConsumer": "AccessDeniedException",
		"DescribeStreamSummary":  "AccessDeniedException",
		"SubscribeToShard":       "AccessDeniedException",
	} {
		t.Run(action, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, srv *kinesistest.Server) {
				srv.Control(action, func(*kinesistest.Call) kinesistest.Fault {
					return kinesistest.Fault{Err: &kinesistest.Error{Code: code}}
				})
				var mu sync.Mutex
				var changes []event.FanOutChanged
				active := map[string]bool{}
				events := event.On(func(_ context.Context, e event.FanOutChanged) {
					mu.Lock()
					defer mu.Unlock()
					changes = append(changes, e)
					active[e.Shard] = e.Active
				})
				s := newSink(t)
				stop := start(t, srv.Client(), memstore.New(), weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister, Name: "pushed"}, OnEvent: events}, s.handle)
				fill(srv, s, 20, 5)
				took := until(t, "polled", 10*time.Second, func() bool { return s.missing() == 0 })
				t.Logf("polled after %v", took)
				time.Sleep(10 * time.Minute)
				mu.Lock()
				if len(changes) != 3 || changes[0].Active || changes[0].Err == nil || !strings.Contains(changes[0].Err.Error(), code) {
					t.Errorf("told %+v, want of 3 shards that they are polled", changes)
				}
				mu.Unlock()
				if n := srv.Requests(action); n > 33 {
					t.Errorf("%s was called %d times in ten minutes", action, n)
				}
				srv.Control(action, nil)
				took = until(t, "back", 110*time.Second, func() bool {
					mu.Lock()
					defer mu.Unlock()
					return len(changes) == 6
				})
				t.Logf("back after %v", took)
				for id, on := range active {
					if !on {
						t.Errorf("%s is polled", id)
					}
				}
				if live := srv.Subscriptions("s"); len(live) != 3 || live[0].Consumer != "pushed" {
					t.Errorf("live are %v", live)
				}
				fill(srv, s, 20, 5)
				until(t, "pushed", time.Second, func() bool { return s.missing() == 0 })
				if err := stop(); err != nil {
					t.Error(err)
				}
				s.judge()
				if s.again > 0 {
					t.Errorf("%d records were handled twice", s.again)
				}
			})
		})
	}
}

// If a handler takes longer than a subscription lasts, no record is lost, and no record is handled
// twice.
func TestFanOutWithASlowHandler(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		s := newSink(t)
		slow := true
		stop := start(t, srv.Client(), memstore.New(), weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}, Batching: weir.Batching{MaxRecords: 100}}, func(ctx context.Context, b *weir.Batch) error {
			if slow && len(b.Records) > 0 {
				slow = false
				select {
				case <-time.After(12 * time.Minute):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return s.handle(ctx, b)
		})
		for range 20 {
			fill(srv, s, 10, 2)
			time.Sleep(20 * time.Second)
		}
		until(t, "everything handled", 10*time.Minute, func() bool { return s.missing() == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		s.judge()
		if s.again > 0 {
			t.Errorf("%d records were handled twice", s.again)
		}
	})
}

// A worker that abandons a handler leaves no subscription behind. Otherwise the next owner would
// have to replace that subscription.
func TestAnAbandonedHandlerKeepsNoSubscription(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		entered, hang := make(chan struct{}), make(chan struct{})
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{
			App: "app", Streams: []string{"s"}, Logger: quiet, FanOut: weir.FanOut{Mode: weir.FanOutRegister}, Timing: weir.Timing{HandlerTimeout: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error {
				close(entered)
				<-hang
				return nil
			}))
		}()
		until(t, "a subscription", time.Minute, func() bool { return len(srv.Subscriptions("s")) == 1 })
		srv.Put("s", "k", []byte("x"))
		<-entered
		time.Sleep(50 * time.Second) // HandlerTimeout has not passed yet
		if n := len(srv.Subscriptions("s")); n != 1 {
			t.Errorf("%d subscriptions while the handler has time", n)
		}
		// After 100 s, HandlerTimeout and then HandoffTimeout have passed, but not the five minutes
		// of a subscription.
		time.Sleep(50 * time.Second)
		if left := srv.Subscriptions("s"); len(left) > 0 {
			t.Errorf("when it has been left behind: %v", left)
		}
		close(hang)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestFanOutOfAStreamGivenByARN(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		s := newSink(t)
		fill(srv, s, 3, 3)
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Streams: []string{srv.StreamARN("s")}, FanOut: weir.FanOut{Mode: weir.FanOutRegister}}, s.handle)
		until(t, "everything handled", 10*time.Second, func() bool { return s.missing() == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		// The leader queries the creation time once.
		if n := srv.Requests("DescribeStreamSummary"); n > 1 {
			t.Errorf("the stream was described %d times although its ARN is known", n)
		}
	})
}

func TestFanOutOptions(t *testing.T) {
	client := kinesis.New(kinesis.Options{Region: "us-east-1"})
	for want, opts := range map[string]weir.Options{
		"Options.FanOut.Mode 7 must":  {FanOut: weir.FanOut{Mode: 7}},
		"Options.FanOut.Name \"a b\"": {FanOut: weir.FanOut{Mode: weir.FanOutRegister, Name: "a b"}},
		"is set although":             {FanOut: weir.FanOut{Name: "billing"}},
	} {
		opts.App, opts.Streams = "app", []string{"s"}
		if _, err := weir.New(client, memstore.New(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want an error with %q", err, want)
		}
	}
	if _, err := weir.New(client, memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, FanOut: weir.FanOut{Mode: weir.FanOutRegister}}); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(weir.FanOutOff, weir.FanOutExisting, weir.FanOutRegister, weir.FanOutTemporary, weir.FanOutMode(4)); got != "off existing register temporary FanOutMode(4)" {
		t.Errorf("they are called %s", got)
	}
}

// If a stream is deleted while a worker reads it by fan-out, the worker waits, and Run ends
// gracefully.
func TestFanOutOfADeletedStream(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		s := newSink(t)
		var mu sync.Mutex
		gone := 0
		events := event.On(func(_ context.Context, e event.ReadFailed) {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(e.Err.Error(), "does not exist") && !errors.Is(e.Err, context.Canceled) {
				gone++
			}
		})
		stop := start(t, srv.Client(), memstore.New(), weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}, OnEvent: events}, s.handle)
		fill(srv, s, 3, 3)
		until(t, "everything handled", 10*time.Second, func() bool { return s.missing() == 0 })
		srv.DeleteStream("s")
		time.Sleep(time.Minute)
		mu.Lock()
		if gone == 0 {
			t.Error("nobody said that the stream is gone")
		}
		mu.Unlock()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
