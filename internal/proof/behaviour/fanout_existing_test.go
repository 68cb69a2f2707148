package behaviour

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// With FanOutExisting, weir never registers a missing consumer. It polls the shards, and reports
// this once for each shard with ErrNoConsumer. As soon as the consumer is registered, weir reads
// the shards with it. The consumer stays registered when the last worker stops.
func TestAWorkerWaitsForAnExistingConsumer(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		var mu sync.Mutex
		var changes []event.FanOutChanged
		events := event.On(func(_ context.Context, e event.FanOutChanged) {
			mu.Lock()
			defer mu.Unlock()
			changes = append(changes, e)
		})
		changed := func() []event.FanOutChanged {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(changes)
		}
		s := newSink(t)
		stop := start(t, srv.Client(), memstore.New(), weir.Options{
			FanOut: weir.FanOut{Mode: weir.FanOutExisting, Name: "theirs"}, OnEvent: events,
		}, s.handle)
		fill(srv, s, 20, 3)
		until(t, "polled", 10*time.Second, func() bool { return s.missing() == 0 })
		time.Sleep(5 * time.Minute)
		if all := changed(); len(all) != 2 || slices.ContainsFunc(all, func(e event.FanOutChanged) bool {
			return e.Active || !errors.Is(e.Err, weir.ErrNoConsumer)
		}) {
			t.Errorf("reported %+v, want of 2 shards that they have no consumer", all)
		}

		srv.RegisterConsumer("s", "theirs")
		until(t, "fan-out", 2*time.Minute, func() bool { return len(changed()) == 4 })
		if all := changed(); !all[2].Active || !all[3].Active {
			t.Errorf("reported %+v", all)
		}
		before := srv.Requests("GetRecords")
		fill(srv, s, 20, 3)
		until(t, "pushed", time.Second, func() bool { return s.missing() == 0 })
		if n := srv.Requests("GetRecords") - before; n > 0 {
			t.Errorf("it polled %d times with the consumer", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := srv.Requests("RegisterStreamConsumer") + srv.Requests("DeregisterStreamConsumer"); n > 0 {
			t.Errorf("it registered or deregistered %d times", n)
		}
		if names := consumersOf(t, srv); !slices.Equal(names, []string{"theirs"}) {
			t.Errorf("registered are %q", names)
		}
		s.judge()
	})
}

// If an existing consumer is deregistered while workers use it, they poll and do not register it.
func TestAnExistingConsumerThatIsRemovedIsNotRegistered(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		arn := srv.RegisterConsumer("s", "theirs")
		s := newSink(t)
		stop := start(t, srv.Client(), memstore.New(), weir.Options{
			FanOut: weir.FanOut{Mode: weir.FanOutExisting, Name: "theirs"},
		}, s.handle)
		fill(srv, s, 20, 3)
		until(t, "pushed", 10*time.Second, func() bool { return s.missing() == 0 })
		if n := srv.Requests("GetRecords"); n > 0 {
			t.Errorf("it polled %d times with the consumer", n)
		}
		deregister(t, srv, arn)
		time.Sleep(time.Minute)
		fill(srv, s, 20, 3)
		until(t, "polled", time.Minute, func() bool { return s.missing() == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := srv.Requests("RegisterStreamConsumer"); n > 0 {
			t.Errorf("it registered the consumer %d times", n)
		}
		s.judge()
	})
}

func deregister(t *testing.T, srv *kinesistest.Server, arn string) {
	t.Helper()
	if _, err := srv.Client().DeregisterStreamConsumer(t.Context(), &kinesis.DeregisterStreamConsumerInput{
		ConsumerARN: aws.String(arn),
	}); err != nil {
		t.Fatal(err)
	}
}
