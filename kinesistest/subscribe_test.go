package kinesistest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

// position returns a starting position of the given type.
func position(kind types.ShardIteratorType) *types.StartingPosition {
	return &types.StartingPosition{Type: kind}
}

func atNumber(kind types.ShardIteratorType, sequence *string) *types.StartingPosition {
	return &types.StartingPosition{Type: kind, SequenceNumber: sequence}
}

const (
	oldest = types.ShardIteratorTypeTrimHorizon
	newest = types.ShardIteratorTypeLatest
	from   = types.ShardIteratorTypeAtSequenceNumber
	after  = types.ShardIteratorTypeAfterSequenceNumber
)

// subscription is a subscription that uses the SDK.
type subscription struct {
	tb testing.TB
	*kinesis.SubscribeToShardEventStream
}

// trySubscribe subscribes with a client of its own, because the SDK does not support two concurrent
// event streams of one client. The stream is closed when the test ends.
func trySubscribe(tb testing.TB, s *kinesistest.Server, arn string, shard int, at *types.StartingPosition, opts ...func(*kinesis.Options)) (subscription, error) {
	tb.Helper()
	out, err := s.Client(append(opts, noRetry)...).SubscribeToShard(tb.Context(), &kinesis.SubscribeToShardInput{
		ConsumerARN: &arn, ShardId: aws.String(shardID(shard)), StartingPosition: at,
	})
	if err != nil {
		return subscription{}, err
	}
	tb.Cleanup(func() { _ = out.GetStream().Close() }) // a stream that was not read may return an error
	return subscription{tb, out.GetStream()}, nil
}

func subscribe(tb testing.TB, s *kinesistest.Server, arn string, shard int, at *types.StartingPosition, opts ...func(*kinesis.Options)) subscription {
	tb.Helper()
	return ok[subscription](tb)(trySubscribe(tb, s, arn, shard, at, opts...))
}

// next waits for an event.
func (s subscription) next() types.SubscribeToShardEvent {
	s.tb.Helper()
	switch ev := (<-s.Events()).(type) {
	case *types.SubscribeToShardEventStreamMemberSubscribeToShardEvent:
		return ev.Value
	case nil:
		s.tb.Fatalf("the stream ended, %v", s.Err())
	default:
		s.tb.Fatalf("an event of type %T", ev)
	}
	panic("unreachable")
}

// records waits for n records and returns their data and the last event.
func (s subscription) records(n int) (string, types.SubscribeToShardEvent) {
	s.tb.Helper()
	var ev types.SubscribeToShardEvent
	var got []types.Record
	for len(got) < n {
		ev = s.next()
		got = append(got, ev.Records...)
	}
	return texts(got), ev
}

// over waits for the end of the stream and returns the stream's error.
func (s subscription) over() error {
	s.tb.Helper()
	for ev := range s.Events() {
		s.tb.Fatalf("an event of type %T instead of the end", ev)
	}
	return s.Close()
}

// protocols contains a server configuration and client options for each protocol.
var protocols = map[string]struct {
	cfg  kinesistest.Config
	name string
	opt  func(*kinesistest.Server) func(*kinesis.Options)
}{
	"HTTP/1.1": {kinesistest.Config{}, "HTTP/1.1", func(*kinesistest.Server) func(*kinesis.Options) { return noRetry }},
	"HTTPS with HTTP/1.1": {kinesistest.Config{TLS: true}, "HTTP/1.1", func(s *kinesistest.Server) func(*kinesis.Options) {
		t := s.Transport()
		t.ForceAttemptHTTP2 = false
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		return through(t)
	}},
	"h2c": {kinesistest.Config{}, "HTTP/2.0", func(s *kinesistest.Server) func(*kinesis.Options) {
		t := s.Transport()
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
		return through(t)
	}},
	"h2": {kinesistest.Config{TLS: true}, "HTTP/2.0", func(*kinesistest.Server) func(*kinesis.Options) { return noRetry }},
	"h2 without ALPN": {kinesistest.Config{TLS: true}, "HTTP/2.0", func(s *kinesistest.Server) func(*kinesis.Options) {
		p := new(http.Protocols)
		p.SetUnencryptedHTTP2(true)
		return withoutALPN(s, p)
	}},
}

func through(t *http.Transport) func(*kinesis.Options) {
	return func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: kinesistest.Whole(t)} }
}

// eachProtocol runs a test with each protocol, once on a port and once in a bubble with a network
// in memory. opt configures a client for the protocol.
func eachProtocol(t *testing.T, test func(t *testing.T, s *kinesistest.Server, opt func(*kinesis.Options))) {
	t.Helper()
	for name, p := range protocols {
		run := func(t *testing.T, inMemory bool) {
			p.cfg.NoLimits, p.cfg.InMemory = true, inMemory
			s := kinesistest.NewServer(t, p.cfg)
			test(t, s, p.opt(s))
		}
		t.Run(name+" on a port", func(t *testing.T) { run(t, false) })
		t.Run(name+" in memory", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, true) })
		})
	}
}

func TestSubscribe(t *testing.T) {
	eachProtocol(t, func(t *testing.T, s *kinesistest.Server, opt func(*kinesis.Options)) {
		s.CreateStream("s", 1)
		arn := s.RegisterConsumer("s", "c")
		var about kinesistest.Call
		s.Control("SubscribeToShard", func(call *kinesistest.Call) kinesistest.Fault {
			about = *call
			return kinesistest.Fault{}
		})
		s.Put("s", "k", []byte("1"))
		_, last := s.Put("s", "k", []byte("2"))
		sub := subscribe(t, s, arn, 0, position(oldest), opt)
		if about.Stream != "s" || about.Consumer != "c" || about.Shard != shardID(0) {
			t.Errorf("the call is about %q %q %q", about.Stream, about.Consumer, about.Shard)
		}
		ev := sub.next()
		if texts(ev.Records) != "[1 2]" || *ev.ContinuationSequenceNumber != last || *ev.MillisBehindLatest != 0 || ev.ChildShards != nil {
			t.Errorf("got %s, %v, %d, %v", texts(ev.Records), *ev.ContinuationSequenceNumber, *ev.MillisBehindLatest, ev.ChildShards)
		}
		kept := s.Records("s")[1]
		if r := ev.Records[1]; *r.SequenceNumber != last || *r.PartitionKey != "k" || r.EncryptionType != "" || !r.ApproximateArrivalTimestamp.Equal(kept.Arrival) {
			t.Errorf("got %+v, kept is %+v", r, kept)
		}
		if live := s.Subscriptions("s"); len(live) != 1 || live[0].Consumer != "c" || live[0].Shard != shardID(0) {
			t.Errorf("live are %v", live)
		}
		// Records are pushed as soon as they are put. Otherwise the test would time out.
		for i := range 20 {
			s.Put("s", "k", fmt.Append(nil, i))
			if got, _ := sub.records(1); got != fmt.Sprint([]int{i}) {
				t.Errorf("got %s", got)
			}
		}
		lower, upper := s.Split("s", shardID(0))
		ev = sub.next()
		if len(ev.Records) != 0 || ev.ContinuationSequenceNumber != nil || len(ev.ChildShards) != 2 ||
			*ev.ChildShards[0].ShardId != lower || *ev.ChildShards[1].ShardId != upper || fmt.Sprint(ev.ChildShards[1].ParentShards) != "["+shardID(0)+"]" {
			t.Errorf("the end is %+v", ev)
		}
		if err := sub.over(); err != nil {
			t.Errorf("the stream ended with %v", err)
		}
		if live := s.Subscriptions("s"); len(live) != 0 {
			t.Errorf("live are %v", live)
		}
	})
}

// subscribing runs a test in a bubble, with a stream s of one shard and a consumer.
func subscribing(t *testing.T, cfg kinesistest.Config, test func(t *testing.T, s *kinesistest.Server, arn string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.InMemory = true
		s := kinesistest.NewServer(t, cfg)
		s.CreateStream("s", 1)
		test(t, s, s.RegisterConsumer("s", "c"))
	})
}

var unlimited = kinesistest.Config{NoLimits: true}

// bigger reports whether sequence number a is larger than b.
func bigger(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

func TestASubscriptionLastsFiveMinutes(t *testing.T) {
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			p.cfg.NoLimits = true
			subscribing(t, p.cfg, func(t *testing.T, s *kinesistest.Server, arn string) {
				_, first := s.Put("s", "k", []byte("before"))
				began := time.Now()
				sub := subscribe(t, s, arn, 0, position(newest), p.opt(s))
				continuation := first
				for i := range 59 {
					ev := sub.next()
					if at := time.Since(began); at != time.Duration(i+1)*5*time.Second {
						t.Fatalf("event %d came after %v", i, at)
					}
					if len(ev.Records) > 0 || *ev.MillisBehindLatest != 0 || ev.ChildShards != nil || !bigger(*ev.ContinuationSequenceNumber, continuation) {
						t.Fatalf("got %+v after %s", ev, continuation)
					}
					continuation = *ev.ContinuationSequenceNumber
				}
				if err := sub.over(); err != nil || time.Since(began) != 5*time.Minute {
					t.Errorf("it ended after %v with %v", time.Since(began), err)
				}
				// Continuing at this number loses nothing and repeats nothing.
				s.Put("s", "k", []byte("between"))
				for _, kind := range []types.ShardIteratorType{from, after} {
					again := subscribe(t, s, arn, 0, atNumber(kind, &continuation), p.opt(s))
					if got, _ := again.records(1); got != "[between]" {
						t.Errorf("%s: got %s", kind, got)
					}
					if err := again.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func TestEventsComeWithoutDelay(t *testing.T) {
	subscribing(t, unlimited, func(t *testing.T, s *kinesistest.Server, arn string) {
		sub := subscribe(t, s, arn, 0, position(newest))
		for i := range 100 {
			time.Sleep(time.Duration(i) * 37 * time.Millisecond)
			put := time.Now()
			s.Put("s", "k", []byte("x"))
			if got, ev := sub.records(1); got != "[x]" || time.Since(put) != 0 || *ev.MillisBehindLatest != 0 {
				t.Fatalf("record %d: %s after %v, %d behind", i, got, time.Since(put), *ev.MillisBehindLatest)
			}
		}
		// The 5 seconds before an empty event start at the last event.
		silent := time.Now()
		if ev := sub.next(); len(ev.Records) != 0 || time.Since(silent) != 5*time.Second {
			t.Errorf("an event with %d records after %v", len(ev.Records), time.Since(silent))
		}
	})
}

func TestStartingPositions(t *testing.T) {
	subscribing(t, unlimited, func(t *testing.T, s *kinesistest.Server, arn string) {
		r := reader{t, t.Context(), s.Client(noRetry), "s"}
		first := r.shards(nil)[0].SequenceNumberRange.StartingSequenceNumber
		var numbers []string
		var times []time.Time
		for i := range 4 {
			_, n := s.Put("s", "k", fmt.Append(nil, i))
			numbers, times = append(numbers, n), append(times, time.Now())
			time.Sleep(time.Minute)
		}
		at := func(d time.Time) *types.StartingPosition {
			return &types.StartingPosition{Type: types.ShardIteratorTypeAtTimestamp, Timestamp: &d}
		}
		for _, tc := range []struct {
			name string
			at   *types.StartingPosition
			want string // data of the records before the stream is silent
		}{
			{"the oldest", position(oldest), "[0 1 2 3]"},
			{"the newest", position(newest), ""},
			{"at a record", atNumber(from, &numbers[2]), "[2 3]"},
			{"after a record", atNumber(after, &numbers[2]), "[3]"},
			{"after the last record", atNumber(after, &numbers[3]), ""},
			{"at the shard's first number", atNumber(from, first), "[0 1 2 3]"},
			{"after the shard's first number", atNumber(after, first), "[0 1 2 3]"},
			{"at the time of a record", at(times[1]), "[1 2 3]"},
			{"at a time between records", at(times[1].Add(time.Millisecond)), "[2 3]"},
			{"at the beginning of time", at(time.Unix(0, 0)), "[0 1 2 3]"},
			{"now", at(time.Now()), ""},
		} {
			sub := subscribe(t, s, arn, 0, tc.at)
			if tc.want != "" {
				if got, _ := sub.records(strings.Count(tc.want, " ") + 1); got != tc.want {
					t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
				}
			}
			if empty := sub.next(); len(empty.Records) != 0 {
				t.Errorf("%s: got %s besides", tc.name, texts(empty.Records))
			}
			if err := sub.Close(); err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
		}
	})
}

func TestSubscribeIsRefused(t *testing.T) {
	subscribing(t, unlimited, func(t *testing.T, s *kinesistest.Server, arn string) {
		s.CreateStream("other", 1)
		_, elsewhere := s.Put("other", "k", []byte("x"))
		_, own := s.Put("s", "k", []byte("x"))
		for _, tc := range []struct {
			name  string
			arn   string
			shard int
			at    *types.StartingPosition
			code  string
		}{
			{"an unknown consumer", strings.Replace(arn, "/c:", "/d:", 1), 0, position(newest), "ResourceNotFoundException"},
			{"a consumer of another time", arn + "0", 0, position(newest), "ResourceNotFoundException"},
			{"an unknown stream", strings.Replace(arn, "/s/", "/t/", 1), 0, position(newest), "ResourceNotFoundException"},
			{"another account", strings.Replace(arn, ":000000000000:", ":111111111111:", 1), 0, position(newest), "ResourceNotFoundException"},
			{"no ARN", "c", 0, position(newest), "ValidationException"},
			{"a stream's ARN", s.StreamARN("s"), 0, position(newest), "ValidationException"},
			{"an unknown shard", arn, 1, position(newest), "ResourceNotFoundException"},
			{"a position of no type", arn, 0, &types.StartingPosition{Type: "SOMEWHERE"}, "ValidationException"},
			{"no sequence number", arn, 0, position(after), "InvalidArgumentException"},
			{"a sequence number too many", arn, 0, atNumber(newest, &own), "InvalidArgumentException"},
			{"a sequence number of nothing", arn, 0, atNumber(from, aws.String("123")), "InvalidArgumentException"},
			{"no sequence number at all", arn, 0, atNumber(from, aws.String("x")), "ValidationException"},
			// The other stream was created in the same second, so the server cannot detect this.
			{"a sequence number of another stream", arn, 0, atNumber(from, &elsewhere), ""},
			{"no timestamp", arn, 0, position(types.ShardIteratorTypeAtTimestamp), "InvalidArgumentException"},
			{"a time to come", arn, 0, &types.StartingPosition{Type: types.ShardIteratorTypeAtTimestamp, Timestamp: aws.Time(time.Now().Add(time.Hour))}, "InvalidArgumentException"},
		} {
			t.Log(tc.name)
			sub, err := trySubscribe(t, s, tc.arn, tc.shard, tc.at)
			if tc.code != "" {
				wantCode(t, err, tc.code)
			} else if err != nil {
				t.Errorf("%v", err)
			} else {
				_ = sub.Close()
			}
		}
		status, _, body := post(t, s, "SubscribeToShard", jsonType, []byte(`{}`))
		if want := "3 validation errors detected: Value null at 'consumerARN'"; status != 400 || !strings.Contains(string(body), want) {
			t.Errorf("an empty request was answered with %d %s", status, body)
		}
		synctest.Wait()
		if live := s.Subscriptions("s"); len(live) != 0 {
			t.Errorf("live are %v", live)
		}
	})
}

func TestADryRunOfSubscribe(t *testing.T) {
	subscribing(t, kinesistest.Config{}, func(t *testing.T, s *kinesistest.Server, arn string) {
		dry := func(shard int) error {
			_, err := s.Client(noRetry).SubscribeToShard(t.Context(), &kinesis.SubscribeToShardInput{
				ConsumerARN: &arn, ShardId: aws.String(shardID(shard)), StartingPosition: position(newest), DryRun: aws.Bool(true),
			})
			return err
		}
		wantCode(t, dry(0), "DryRunOperationException")
		wantCode(t, dry(1), "ResourceNotFoundException")
		sub := subscribe(t, s, arn, 0, position(newest)) // the dry run did not count against a limit
		wantCode(t, dry(0), "ResourceInUseException")
		time.Sleep(6 * time.Second)
		wantCode(t, dry(0), "DryRunOperationException")
		s.Put("s", "k", []byte("x"))
		if got, _ := sub.records(1); got != "[x]" {
			t.Errorf("got %s", got)
		}
		_ = sub.Close()
	})
}

func TestOnlyAnActiveConsumerMaySubscribe(t *testing.T) {
	subscribing(t, unlimited, func(t *testing.T, s *kinesistest.Server, _ string) {
		s.SetStateDelay(10 * time.Second)
		c := s.Client(noRetry)
		con := ok[*kinesis.RegisterStreamConsumerOutput](t)(c.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{StreamARN: aws.String(s.StreamARN("s")), ConsumerName: aws.String("late")})).Consumer
		_, err := trySubscribe(t, s, *con.ConsumerARN, 0, position(newest))
		wantCode(t, err, "ResourceInUseException")
		time.Sleep(10 * time.Second)
		sub := subscribe(t, s, *con.ConsumerARN, 0, position(newest))
		if live := s.Subscriptions("s"); len(live) != 1 || live[0].Consumer != "late" {
			t.Errorf("live are %v", live)
		}
		ok[*kinesis.DeregisterStreamConsumerOutput](t)(c.DeregisterStreamConsumer(t.Context(), &kinesis.DeregisterStreamConsumerInput{ConsumerARN: con.ConsumerARN}))
		wantCode(t, sub.over(), "ResourceNotFoundException")
		_, err = trySubscribe(t, s, *con.ConsumerARN, 0, position(newest))
		wantCode(t, err, "ResourceInUseException") // the stream is DELETING
		time.Sleep(10 * time.Second)
		_, err = trySubscribe(t, s, *con.ConsumerARN, 0, position(newest))
		wantCode(t, err, "ResourceNotFoundException")
	})
}

func TestDeletingTheStreamEndsSubscriptions(t *testing.T) {
	subscribing(t, unlimited, func(t *testing.T, s *kinesistest.Server, arn string) {
		sub := subscribe(t, s, arn, 0, position(newest))
		s.SetStateDelay(7 * time.Second)
		began := time.Now()
		ok[*kinesis.DeleteStreamOutput](t)(s.Client(noRetry).DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: aws.String("s"), EnforceConsumerDeletion: aws.Bool(true)}))
		if ev := sub.next(); len(ev.Records) != 0 { // the subscription continues while the stream is DELETING
			t.Errorf("got %+v", ev)
		}
		wantCode(t, sub.over(), "ResourceNotFoundException")
		if time.Since(began) != 7*time.Second {
			t.Errorf("it ended after %v", time.Since(began))
		}
		// A new stream with the same name is a different stream.
		s.CreateStream("s", 1)
		_, err := trySubscribe(t, s, arn, 0, position(newest))
		wantCode(t, err, "ResourceNotFoundException")
		sub = subscribe(t, s, s.RegisterConsumer("s", "c"), 0, position(newest))
		s.DeleteStream("s")
		wantCode(t, sub.over(), "ResourceNotFoundException")
	})
}
