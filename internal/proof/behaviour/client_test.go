package behaviour

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// The methods of a wrapper are called for every request, with both transports.
func TestTheMethodsOfAWrapperAreCalled(t *testing.T) {
	polling := []string{"DescribeStreamSummary", "ListShards", "GetShardIterator", "GetRecords"}
	fanOut := []string{
		"DescribeStreamSummary", "ListShards", "SubscribeToShard",
		"DescribeStreamConsumer", "RegisterStreamConsumer", "DeregisterStreamConsumer",
	}
	for name, c := range map[string]struct {
		opts  weir.Options
		calls []string
	}{
		"polling":                 {weir.Options{}, polling},
		"polling through the SDK": {weir.Options{Transport: weir.SDKTransport}, polling},
		"fan-out":                 {weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutTemporary}}, fanOut},
		"fan-out through the SDK": {weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutTemporary}, Transport: weir.SDKTransport}, fanOut},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
				s := newSink(t)
				fill(srv, s, 20, 10)
				client := &counting{to: srv.Client()}
				stop := start(t, client, memstore.New(), c.opts, s.handle)
				until(t, "everything is handled", time.Minute, func() bool { return s.missing() == 0 })
				fill(srv, s, 20, 10)
				until(t, "later records are handled", time.Minute, func() bool { return s.missing() == 0 })
				if err := stop(); err != nil {
					t.Error(err)
				}
				for _, method := range c.calls {
					if client.of(method) == 0 {
						t.Errorf("%s was not called", method)
					}
				}
				for method := range client.calls {
					if got, requests := client.of(method), srv.Requests(method); got < requests {
						t.Errorf("%d calls of %s, but the service got %d requests", got, method, requests)
					}
				}
				if c.opts.FanOut.Mode == weir.FanOutOff && client.seen() != 400 {
					t.Errorf("the wrapper saw %d records, want 400", client.seen())
				}
			})
		})
	}
}

// A Reader calls the methods of a wrapper too.
func TestAReaderCallsTheMethodsOfAWrapper(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
		want := putSome(t, srv, false)
		client := &counting{to: srv.Client()}
		got := 0
		for _, err := range reader(t, client, weir.ReaderOptions{UntilTip: true}).Records(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got++
		}
		if got != len(want) || client.seen() != len(want) || client.of("GetRecords") < srv.Requests("GetRecords") {
			t.Errorf("%d records, the wrapper saw %d, want %d", got, client.seen(), len(want))
		}
	})
}

// A panic in a method of the client is an error of the call, and the call is repeated.
func TestAPanicOfAWrapperIsAnError(t *testing.T) {
	for _, opts := range []weir.Options{{}, {FanOut: weir.FanOut{Mode: weir.FanOutRegister}}} {
		bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
			s := newSink(t)
			fill(srv, s, 5, 5)
			var calls atomic.Int32
			client := &counting{to: srv.Client(), before: func(string) {
				if calls.Add(1)%3 == 0 {
					panic("a bug of the user's")
				}
			}}
			stop := start(t, client, memstore.New(), opts, s.handle)
			until(t, "everything is handled", 5*time.Minute, func() bool { return s.missing() == 0 })
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// fake is a stream with one shard that needs no network. A method that fake does not implement
// panics.
type fake struct {
	weir.Kinesis
	mu      sync.Mutex
	records []types.Record
}

func (f *fake) put(data string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, types.Record{
		Data: []byte(data), PartitionKey: aws.String("k"), SequenceNumber: aws.String(fmt.Sprint(1000 + len(f.records))),
		ApproximateArrivalTimestamp: aws.Time(time.Now()),
	})
}

func (f *fake) DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error) {
	return nil, errors.New("this fake describes no stream")
}

func (f *fake) ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error) {
	return &kinesis.ListShardsOutput{Shards: []types.Shard{{ShardId: aws.String("shard-1")}}}, nil
}

// GetShardIterator returns the index of the first record.
func (f *fake) GetShardIterator(_ context.Context, in *kinesis.GetShardIteratorInput, opts ...func(*kinesis.Options)) (*kinesis.GetShardIteratorOutput, error) {
	var o kinesis.Options
	for _, set := range opts {
		set(&o)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := 0
	for i, r := range f.records {
		after := in.Timestamp != nil && r.ApproximateArrivalTimestamp.Before(*in.Timestamp) ||
			in.StartingSequenceNumber != nil && *r.SequenceNumber <= *in.StartingSequenceNumber
		if after {
			at = i + 1
		}
	}
	return &kinesis.GetShardIteratorOutput{ShardIterator: aws.String(fmt.Sprint(at))}, nil
}

func (f *fake) GetRecords(_ context.Context, in *kinesis.GetRecordsInput, _ ...func(*kinesis.Options)) (*kinesis.GetRecordsOutput, error) {
	var at int
	if _, err := fmt.Sscan(*in.ShardIterator, &at); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next := aws.String(fmt.Sprint(len(f.records)))
	return &kinesis.GetRecordsOutput{Records: f.records[at:], NextShardIterator: next, MillisBehindLatest: aws.Int64(0)}, nil
}

// A fake without network can be read from each start position. If its subscriptions have no event
// stream, weir polls.
func TestAFakeIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		opts weir.Options
		want string
	}{
		"from the oldest record": {weir.Options{}, "1 2 3"},
		"from a time":            {weir.Options{Start: weir.At(time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC))}, "2 3"},
		"from the tip":           {weir.Options{Start: weir.Latest}, "3"},
		"by fan-out":             {weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister, ARNs: []string{"arn:aws:kinesis:eu-west-3:123456789012:stream/s/consumer/c:1"}}}, "1 2 3"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				f.put("1")
				time.Sleep(2 * time.Hour)
				f.put("2")
				time.Sleep(time.Hour)
				var mu sync.Mutex
				var got []string
				stop := start(t, withFanOut{f}, memstore.New(), c.opts, func(_ context.Context, b *weir.Batch) error {
					mu.Lock()
					defer mu.Unlock()
					for _, r := range b.Records {
						got = append(got, string(r.Data))
					}
					return nil
				})
				time.Sleep(20 * time.Second)
				f.put("3")
				time.Sleep(10 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if all := strings.Join(got, " "); all != c.want {
					t.Errorf("handled %q, want %q", all, c.want)
				}
			})
		})
	}
}

// withFanOut has a consumer. Its subscriptions have no event stream, because only the SDK can
// create an event stream.
type withFanOut struct{ *fake }

func (withFanOut) DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error) {
	return &kinesis.DescribeStreamSummaryOutput{StreamDescriptionSummary: &types.StreamDescriptionSummary{
		StreamARN: aws.String("arn:aws:kinesis:eu-west-3:123456789012:stream/s"),
	}}, nil
}

func (withFanOut) DescribeStreamConsumer(_ context.Context, in *kinesis.DescribeStreamConsumerInput, _ ...func(*kinesis.Options)) (*kinesis.DescribeStreamConsumerOutput, error) {
	return &kinesis.DescribeStreamConsumerOutput{ConsumerDescription: &types.ConsumerDescription{
		ConsumerARN: in.ConsumerARN, ConsumerStatus: types.ConsumerStatusActive,
	}}, nil
}

func (withFanOut) SubscribeToShard(context.Context, *kinesis.SubscribeToShardInput, ...func(*kinesis.Options)) (*kinesis.SubscribeToShardOutput, error) {
	return &kinesis.SubscribeToShardOutput{}, nil
}

// Run logs once which transport it uses, and why.
func TestTheTransportIsLogged(t *testing.T) {
	middle := func(o *kinesis.Options) {
		o.APIOptions = append(o.APIOptions, func(*middleware.Stack) error { return nil })
	}
	for name, c := range map[string]struct {
		client func(srv *kinesistest.Server) weir.Kinesis
		opts   weir.Options
		want   []string
	}{
		"a client of the SDK": {
			func(srv *kinesistest.Server) weir.Kinesis { return srv.Client() }, weir.Options{},
			[]string{`transport=own `, "need nothing else"},
		},
		"the option": {
			func(srv *kinesistest.Server) weir.Kinesis { return srv.Client() }, weir.Options{Transport: weir.SDKTransport},
			[]string{`transport=sdk `, "the transport option"},
		},
		"middleware": {
			func(srv *kinesistest.Server) weir.Kinesis { return srv.Client(middle) }, weir.Options{},
			[]string{`transport=sdk `, "APIOptions"},
		},
		"a wrapper": {
			func(srv *kinesistest.Server) weir.Kinesis { return &counting{to: srv.Client()} }, weir.Options{},
			[]string{`transport=methods `, "*behaviour.counting"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				var log lines
				c.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
				stop := start(t, c.client(srv), memstore.New(), c.opts, func(context.Context, *weir.Batch) error { return nil })
				time.Sleep(5 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				var found []string
				for _, line := range log.all {
					if strings.Contains(line, `level=INFO msg="calling Kinesis"`) {
						found = append(found, line)
					}
				}
				if len(found) != 1 {
					t.Fatalf("%d lines: %q", len(found), found)
				}
				for _, part := range c.want {
					if !strings.Contains(found[0], part) {
						t.Errorf("%s\nhas no %s", found[0], part)
					}
				}
			})
		})
	}
}

type (
	embedding struct{ *kinesis.Client }
	plainFake struct{ weir.Kinesis }
)

// The region of a stream's ARN is compared with the region of the client, if both regions are
// known.
func TestTheRegionOfAnARN(t *testing.T) {
	client := kinesis.New(kinesis.Options{Region: "eu-west-3", HTTPClient: http.DefaultClient})
	for name, c := range map[string]struct {
		client weir.Kinesis
		want   string // a part of the error
	}{
		"no client":               {nil, "client is nil"},
		"a nil client":            {(*kinesis.Client)(nil), "client is nil"},
		"the SDK's client":        {client, "eu-west-3"},
		"an embedded client":      {embedding{client}, "eu-west-3"},
		"an embedded nil client":  {embedding{}, ""},
		"a client without region": {embedding{kinesis.New(kinesis.Options{})}, ""},
		"a fake":                  {plainFake{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			arn := "arn:aws:kinesis:us-east-1:123456789012:stream/s"
			_, consumer := weir.New(c.client, memstore.New(), weir.Options{App: "app", Streams: []string{arn}})
			_, reader := weir.NewReader(c.client, weir.ReaderOptions{Stream: arn})
			for _, err := range []error{consumer, reader} {
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
		})
	}
}
