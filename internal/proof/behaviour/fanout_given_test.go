package behaviour

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// If a consumer is given by its ARN, the stream is read with that consumer. No consumer is
// registered or removed.
func TestFanOutByAGivenARN(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		arn := srv.RegisterConsumer("s", "theirs")
		for _, stream := range []string{"s", srv.StreamARN("s")} {
			s := newSink(t)
			fill(srv, s, 20, 3)
			stop := start(t, srv.Client(), memstore.New(), weir.Options{
				Streams: []string{stream}, FanOut: weir.FanOut{Mode: weir.FanOutTemporary, ARNs: []string{arn}},
			}, s.handle)
			until(t, "everything handled", 10*time.Second, func() bool { return s.missing() == 0 })
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if n := srv.Requests("GetRecords") + srv.Requests("RegisterStreamConsumer") + srv.Requests("DeregisterStreamConsumer"); n > 0 {
			t.Errorf("%d calls of other kinds", n)
		}
		if names := consumersOf(t, srv); !slices.Equal(names, []string{"theirs"}) {
			t.Errorf("registered are %q", names)
		}
	})
}

// A worker with the ARNs of its stream and its consumer needs no permission to describe them, or to
// register a consumer.
func TestFanOutByAGivenARNWithoutMorePermissions(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		arn := srv.RegisterConsumer("s", "theirs")
		for _, action := range []string{"DescribeStreamSummary", "DescribeStreamConsumer", "RegisterStreamConsumer"} {
			srv.Control(action, func(*kinesistest.Call) kinesistest.Fault {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "AccessDeniedException", Status: 400}}
			})
		}
		s := newSink(t)
		fill(srv, s, 20, 3)
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Streams: []string{srv.StreamARN("s")}, FanOut: weir.FanOut{Mode: weir.FanOutRegister, ARNs: []string{arn}}}, s.handle)
		until(t, "everything handled", 10*time.Second, func() bool { return s.missing() == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := srv.Requests("GetRecords"); n > 0 {
			t.Errorf("it polled %d times", n)
		}
	})
}

// Shards of all streams have the same names. With a consumer of another stream, Run would read the
// shards of that other stream, so it returns an error.
func TestAConsumerOfAnotherStreamEndsRun(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		theirs := srv.RegisterConsumer("s", "theirs")
		foreign := strings.Replace(theirs, "000000000000", "111111111111", 1)
		if foreign == theirs {
			t.Fatalf("%s has another account", theirs)
		}
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "a", Streams: []string{"s"}, FanOut: weir.FanOut{Mode: weir.FanOutRegister, ARNs: []string{foreign}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error { t.Error("it reads"); return nil }))
		if err == nil || !strings.Contains(err.Error(), "belongs to another stream") || !strings.Contains(err.Error(), foreign) {
			t.Errorf("Run says %v", err)
		}
		if n := srv.Requests("SubscribeToShard"); n > 0 {
			t.Errorf("it subscribed %d times", n)
		}
	})
}

func TestAGivenConsumerThatIsGoneIsNotRegistered(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		arn := srv.RegisterConsumer("s", "theirs")
		gone := arn[:strings.LastIndexByte(arn, ':')] + ":17"
		s := newSink(t)
		fill(srv, s, 20, 3)
		var polled atomic.Bool
		stop := start(t, srv.Client(), memstore.New(), weir.Options{
			FanOut: weir.FanOut{Mode: weir.FanOutRegister, ARNs: []string{gone}},
			OnEvent: event.On(func(_ context.Context, e event.FanOutChanged) {
				polled.Store(!e.Active && errors.Is(e.Err, weir.ErrNoConsumer) && strings.Contains(e.Err.Error(), gone))
			}),
		}, s.handle)
		until(t, "everything handled", time.Minute, func() bool { return s.missing() == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !polled.Load() || srv.Requests("RegisterStreamConsumer") != 0 {
			t.Errorf("told: %v, registered %d times", polled.Load(), srv.Requests("RegisterStreamConsumer"))
		}
	})
}

// The last worker that stops removes the consumer. Workers that stop earlier do not.
func TestTheLastWorkerRemovesTheConsumer(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *kinesistest.Server) {
		s, store := newSink(t), memstore.New()
		opts := weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutTemporary}}
		first := start(t, srv.Client(), store, opts, s.handle)
		fill(srv, s, 20, 3)
		until(t, "everything handled", 20*time.Second, func() bool { return s.missing() == 0 })
		second := start(t, srv.Client(), store, opts, s.handle)
		time.Sleep(20 * time.Second)
		if err := first(); err != nil {
			t.Error(err)
		}
		if n := srv.Requests("DeregisterStreamConsumer"); n != 0 {
			t.Errorf("it was removed while one worker lives")
		}
		fill(srv, s, 20, 3)
		until(t, "everything handled", 20*time.Second, func() bool { return s.missing() == 0 })
		if err := second(); err != nil {
			t.Error(err)
		}
		if names := consumersOf(t, srv); len(names) != 0 {
			t.Errorf("after the last: %q", names)
		}
		third := start(t, srv.Client(), store, opts, s.handle) // it registers the consumer again
		fill(srv, s, 20, 3)
		until(t, "everything handled", time.Minute, func() bool { return s.missing() == 0 })
		if err := third(); err != nil {
			t.Error(err)
		}
		if n := srv.Requests("GetRecords"); n > 0 {
			t.Errorf("it polled %d times", n)
		}
		s.judge()
	})
}

// A worker that starts while the last one removes the consumer loses no record.
func TestAWorkerThatStartsWhileTheConsumerIsRemoved(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		s, store := newSink(t), memstore.New()
		opts := weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutTemporary}}
		first := start(t, srv.Client(), store, opts, s.handle)
		fill(srv, s, 20, 3)
		until(t, "everything handled", 20*time.Second, func() bool { return s.missing() == 0 })
		srv.SetStateDelay(10 * time.Second)
		var second func() error
		srv.Control("DeregisterStreamConsumer", func(*kinesistest.Call) kinesistest.Fault {
			if second == nil {
				second = start(t, srv.Client(), store, weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}}, s.handle)
				time.Sleep(5 * time.Second) // it has found the consumer and subscribed
			}
			return kinesistest.Fault{}
		})
		if err := first(); err != nil {
			t.Error(err)
		}
		for range 10 {
			fill(srv, s, 10, 3)
			time.Sleep(20 * time.Second)
		}
		until(t, "everything handled", time.Minute, func() bool { return s.missing() == 0 })
		if names := consumersOf(t, srv); len(names) != 1 {
			t.Errorf("registered are %q", names)
		}
		if err := second(); err != nil {
			t.Error(err)
		}
		s.judge()
	})
}

// If the store does not return which workers are alive, the consumer is not removed.
func TestTheConsumerStaysWhenTheStoreIsSilent(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		s := newSink(t)
		store := &silentAtTheEnd{Store: memstore.New()}
		stop := start(t, srv.Client(), store, weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutTemporary}}, s.handle)
		fill(srv, s, 20, 3)
		until(t, "everything handled", 20*time.Second, func() bool { return s.missing() == 0 })
		store.over.Store(true)
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("Run took %v to return", took)
		}
		if names := consumersOf(t, srv); len(names) != 1 {
			t.Errorf("registered are %q", names)
		}
	})
}

// silentAtTheEnd is a store whose View does not answer after over is set.
type silentAtTheEnd struct {
	*memstore.Store
	over atomic.Bool
}

func (s *silentAtTheEnd) View(ctx context.Context, app, since string) (lease.View, error) {
	if s.over.Load() {
		<-ctx.Done()
		return lease.View{}, context.Cause(ctx)
	}
	return s.Store.View(ctx, app, since)
}

func TestOptionsOfGivenConsumers(t *testing.T) {
	client := kinesis.New(kinesis.Options{Region: "us-east-1"})
	const arn = "arn:aws:kinesis:us-east-1:123456789012:stream/s/consumer/c:17"
	for want, opts := range map[string]weir.Options{
		"FanOut.Mode is FanOutOff":     {FanOut: weir.FanOut{ARNs: []string{arn}}},
		"is not the ARN of a consumer": {FanOut: weir.FanOut{Mode: weir.FanOutRegister, ARNs: []string{"c"}}},
		"make the client with region": {FanOut: weir.FanOut{
			Mode: weir.FanOutRegister,
			ARNs: []string{strings.Replace(arn, "us-", "eu-", 1)},
		}},
		"not among those to read": {FanOut: weir.FanOut{
			Mode: weir.FanOutRegister,
			ARNs: []string{strings.Replace(arn, "/s/", "/other/", 1)},
		}},
		"which is not of the stream":          {FanOut: weir.FanOut{Mode: weir.FanOutRegister, ARNs: []string{arn}}, Streams: []string{"arn:aws:kinesis:us-east-1:210987654321:stream/s"}},
		"two consumers of stream s":           {FanOut: weir.FanOut{Mode: weir.FanOutRegister, ARNs: []string{arn, arn + "8"}}},
		"Options.FanOut.Mode 4 must be":       {FanOut: weir.FanOut{Mode: 4}},
		"Options.FanOut.Name is set although": {FanOut: weir.FanOut{Name: "c"}},
	} {
		opts.App = "app"
		if len(opts.Streams) == 0 {
			opts.Streams = []string{"s"}
		}
		if _, err := weir.New(client, memstore.New(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", opts.FanOut.ARNs, err, want)
		}
	}
	for want, opts := range map[string]weir.ReaderOptions{
		"FanOut.Mode is FanOutOff": {FanOut: weir.FanOut{ARNs: []string{arn}}},
		"is not the ARN":           {FanOut: weir.FanOut{Mode: weir.FanOutExisting, ARNs: []string{"c"}}},
		"both set":                 {FanOut: weir.FanOut{Mode: weir.FanOutExisting, Name: "c", ARNs: []string{arn}}},
		"must be FanOutExisting":   {FanOut: weir.FanOut{Mode: weir.FanOutRegister, ARNs: []string{arn}}},
		"not among those to read":  {FanOut: weir.FanOut{Mode: weir.FanOutExisting, ARNs: []string{arn}}, Stream: "other"},
		"give one ARN":             {FanOut: weir.FanOut{Mode: weir.FanOutExisting, ARNs: []string{arn, arn}}},
	} {
		if opts.Stream == "" {
			opts.Stream = "s"
		}
		if _, err := weir.NewReader(client, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", opts, err, want)
		}
	}
}

func TestReaderReadsByAGivenARN(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		arn := srv.RegisterConsumer("s", "theirs")
		time.Sleep(time.Minute)
		srv.Put("s", "k", []byte("x"))
		foreign := strings.Replace(arn, "000000000000", "111111111111", 1)
		for _, given := range []string{arn, foreign} {
			r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s", UntilTip: true, FanOut: weir.FanOut{Mode: weir.FanOutExisting, ARNs: []string{given}}, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			n, failed := 0, error(nil)
			for _, err := range r.Records(t.Context()) {
				if failed = err; err != nil {
					break
				}
				n++
			}
			if given == arn && (n != 1 || failed != nil) || given == foreign && (n != 0 || failed == nil || !strings.Contains(failed.Error(), "another stream")) {
				t.Errorf("%s: %d records, %v", given, n, failed)
			}
		}
		if n := srv.Requests("GetRecords"); n > 0 {
			t.Errorf("it polled %d times", n)
		}
	})
}
