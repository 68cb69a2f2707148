package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/kinesistest"
)

const firstShard = "shardId-000000000000"

var fromOldest = types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon}

// subscribed is an embedded Kinesis with a stream and a consumer.
type subscribed struct {
	srv      *kinesistest.Server
	client   *kinesis.Client
	consumer string
}

func newSubscribed(tb testing.TB, cfg kinesistest.Config, opts ...func(*kinesis.Options)) *subscribed {
	tb.Helper()
	srv, err := kinesistest.Start(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	srv.CreateStream("s", 1)
	s := &subscribed{srv: srv, client: srv.Client(opts...)}
	out, err := s.client.RegisterStreamConsumer(tb.Context(), &kinesis.RegisterStreamConsumerInput{
		StreamARN: aws.String(srv.StreamARN("s")), ConsumerName: aws.String("c"),
	})
	if err != nil {
		tb.Fatal(err)
	}
	s.consumer = *out.Consumer.ConsumerARN
	return s
}

func (s *subscribed) request() SubscribeRequest {
	return SubscribeRequest{ConsumerARN: s.consumer, Shard: firstShard, At: fromOldest, Answer: 10 * time.Second}
}

func (s *subscribed) subscribe(tb testing.TB, c *Caller) *Subscription {
	tb.Helper()
	sub, err := c.Subscribe(tb.Context(), s.request())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(sub.Close)
	return sub
}

// inBubble runs f with a server in a bubble, once for each path.
func inBubble(t *testing.T, cfg kinesistest.Config, f func(t *testing.T, s *subscribed, path Path)) {
	for _, path := range []Path{OwnCall, UnderSDK, PlainSDK} {
		t.Run(path.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg.InMemory = true
				s := newSubscribed(t, cfg)
				defer func() { _ = s.srv.Close() }()
				f(t, s, path)
			})
		})
	}
}

// Every path and format reads the same events of a shard. This includes HTTP/1.1 and HTTP/2, memory
// with and without reuse, and clients with middleware.
func TestEveryPathReadsTheSameEvents(t *testing.T) {
	for _, tls := range []bool{false, true} {
		inBubble(t, kinesistest.Config{TLS: tls}, func(t *testing.T, s *subscribed, path Path) {
			var data [][]byte
			for i := range 40 {
				data = append(data, bytes.Repeat([]byte{byte(i), 0xfe}, i*i*i%5000))
				s.srv.Put("s", fmt.Sprintf("key-%d-é", i), data[i])
			}
			proto := ""
			s.srv.Control("SubscribeToShard", func(call *kinesistest.Call) kinesistest.Fault {
				proto = call.Proto
				return kinesistest.Fault{}
			})
			for _, client := range []*kinesis.Client{s.client, s.srv.Client(traced)} {
				for _, format := range []codec.Format{codec.Auto, codec.JSON, codec.CBOR} {
					for _, reuse := range []bool{false, true} {
						time.Sleep(5 * time.Second) // Kinesis refuses another subscription for that time
						c := newCaller(t, client, Options{Path: path, Format: format, Reuse: reuse, Poison: reuse})
						sub := s.subscribe(t, c)
						var p codec.Page
						for n := 0; n < len(data); {
							if err := sub.Next(10*time.Second, &p); err != nil {
								t.Fatal(format, reuse, err)
							}
							if p.RequestID == "" || p.Next == "" || p.Behind < 0 {
								t.Errorf("%s: request %q, next %q, %v behind", format, p.RequestID, p.Next, p.Behind)
							}
							for _, r := range p.Records {
								if !bytes.Equal(r.Data, data[n]) || r.Key != fmt.Sprintf("key-%d-é", n) || r.SequenceNumber == "" || r.Arrival == 0 {
									t.Fatalf("%s, reuse %v: record %d is %.100v", format, reuse, n, r)
								}
								n++
							}
							p.Release()
						}
						sub.Close()
						if want := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[tls]; proto != want {
							t.Errorf("over %s, want %s", proto, want)
						}
					}
				}
			}
		})
	}
}

// A request arrives as the SDK would send it: the same call, the same members, and the SDK's
// signature.
func TestSubscribeRequestsAsTheyArrive(t *testing.T) {
	const consumer = "arn:aws:kinesis:eu-west-3:123456789012:stream/s/consumer/c:1"
	server := newFake(t, func(w http.ResponseWriter, _ seen) {
		w.Header().Set("X-Amzn-Requestid", "id-1")
		write(w, 200, "application/vnd.amazon.eventstream", string(answers.EventMessage(t, "initial-response", codec.JSONType, "{}")))
	})
	at := time.UnixMilli(1_718_549_822_123)
	for _, token := range []string{"", "a session token"} {
		for _, position := range []types.StartingPosition{
			fromOldest, {Type: types.ShardIteratorTypeAfterSequenceNumber, SequenceNumber: aws.String("49\"é")},
			{Type: types.ShardIteratorTypeAtTimestamp, Timestamp: &at},
		} {
			client := fakeClient(server.URL+"/some/path", func(o *kinesis.Options) { o.Credentials = staticCredentials(token) })
			var bodies []any
			for _, path := range []Path{OwnCall, UnderSDK, PlainSDK} {
				sub, err := newCaller(t, client, Options{Path: path}).Subscribe(t.Context(), SubscribeRequest{ConsumerARN: consumer, Shard: "sh", At: position})
				if err != nil {
					t.Fatal(path, err)
				}
				if err := sub.Next(time.Second, new(codec.Page)); !errors.Is(err, ErrEnded) {
					t.Errorf("%s: %v", path, err)
				}
				all := server.take()
				if len(all) != 1 {
					t.Fatalf("%d requests", len(all))
				}
				r := all[0]
				if r.Method != "POST" || r.URL.Path != "/some/path" || r.Header.Get("X-Amz-Target") != "Kinesis_20131202.SubscribeToShard" ||
					r.Header.Get("Accept-Encoding") != "identity" && path != PlainSDK || r.Header.Get("Content-Type") != codec.JSONType || r.ContentLength != int64(len(r.body)) {
					t.Errorf("%s: %s %s %v", path, r.Method, r.URL, r.Header)
				}
				var body any
				if err := json.Unmarshal(r.body, &body); err != nil {
					t.Error(err)
				}
				bodies = append(bodies, body)
				if path == OwnCall {
					cred, _ := client.Options().Credentials.Retrieve(t.Context())
					if got, want := r.Header.Get("Authorization"), sdkSigns(t, r.Request, r.body, "eu-west-3", cred); got != want {
						t.Errorf("%s, want %s", got, want)
					}
				}
			}
			if !reflect.DeepEqual(bodies[0], bodies[2]) || !reflect.DeepEqual(bodies[1], bodies[2]) {
				t.Errorf("asked for %v, the SDK asks for %v", bodies[0], bodies[2])
			}
		}
	}
}

// Errors have the SDK's types, whether they arrive in a stream or in place of a stream.
func TestSubscriptionErrors(t *testing.T) {
	codes := []string{
		"ResourceInUseException", "ResourceNotFoundException", "InternalFailureException", "KMSDisabledException", "KMSInvalidStateException",
		"KMSAccessDeniedException", "KMSNotFoundException", "KMSOptInRequired", "KMSThrottlingException", "LimitExceededException", "NeverHeardOfException",
	}
	for _, tls := range []bool{false, true} {
		inBubble(t, kinesistest.Config{TLS: tls}, func(t *testing.T, s *subscribed, path Path) {
			for _, format := range []codec.Format{codec.JSON, codec.CBOR} {
				c := newCaller(t, s.client, Options{Path: path, Format: format})
				for _, code := range codes {
					fault := &kinesistest.Error{Code: code, Message: "because"}
					s.srv.Control("SubscribeToShard", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Err: fault} })
					_, err := c.Subscribe(t.Context(), s.request())
					checkError(t, "instead of a stream", code, err)

					s.srv.Control("SubscribeToShard", func(*kinesistest.Call) kinesistest.Fault {
						return kinesistest.Fault{Subscription: kinesistest.SubscriptionFault{Exception: fault}}
					})
					time.Sleep(5 * time.Second) // Kinesis refuses another subscription for that time
					sub := s.subscribe(t, c)
					checkError(t, "in the stream", code, sub.Next(10*time.Second, new(codec.Page)))
					if err := sub.Next(time.Second, new(codec.Page)); !errors.Is(err, ErrClosed) {
						t.Errorf("after its end: %v", err)
					}
				}
			}
			s.srv.Control("SubscribeToShard", func(*kinesistest.Call) kinesistest.Fault {
				return kinesistest.Fault{Subscription: kinesistest.SubscriptionFault{ProtocolError: &kinesistest.Error{Code: "Oops", Message: "because"}}}
			})
			time.Sleep(5 * time.Second)
			checkError(t, "protocol error", "Oops", s.subscribe(t, newCaller(t, s.client, Options{Path: path})).Next(10*time.Second, new(codec.Page)))
		})
	}
}

func checkError(t *testing.T, where, code string, err error) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code || api.ErrorMessage() != "because" {
		t.Errorf("%s: %s came as %v", where, code, err)
		return
	}
	switch code {
	case "ResourceInUseException":
		if e := (*types.ResourceInUseException)(nil); !errors.As(err, &e) {
			t.Errorf("%s: %T", where, api)
		}
	case "KMSThrottlingException":
		if e := (*types.KMSThrottlingException)(nil); !errors.As(err, &e) {
			t.Errorf("%s: %T", where, api)
		}
	}
}

// Every wait of a subscription is limited. When the limit is reached, the error names the wait.
func TestSubscriptionWaitsAreBounded(t *testing.T) {
	for _, tls := range []bool{false, true} {
		inBubble(t, kinesistest.Config{TLS: tls}, func(t *testing.T, s *subscribed, path Path) {
			c := newCaller(t, s.client, Options{Path: path})
			fault := func(f kinesistest.Fault) {
				s.srv.Control("SubscribeToShard", func(*kinesistest.Call) kinesistest.Fault { return f })
				time.Sleep(5 * time.Second)
			}
			began := time.Now()
			after := func(what string, want time.Duration, err, is error) {
				t.Helper()
				if took := time.Since(began); took != want || !errors.Is(err, is) {
					t.Errorf("%s: %v after %v, want %v after %v", what, err, took, is, want)
				}
			}
			subscribe := func(ctx context.Context) (*Subscription, error) {
				began = time.Now()
				return c.Subscribe(ctx, s.request())
			}
			for what, f := range map[string]kinesistest.Fault{
				"no header":        {Subscription: kinesistest.SubscriptionFault{HeaderDelay: time.Hour}},
				"no answer at all": {Delay: time.Hour},
				"no first message": {Subscription: kinesistest.SubscriptionFault{NoInitialResponse: true, HalfOpen: true}},
			} {
				fault(f)
				_, err := subscribe(t.Context())
				after(what, 10*time.Second, err, ErrNoAnswer)
				fault(f)
				why := errors.New("why")
				ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, why)
				_, err = subscribe(ctx)
				after(what+", cancelled", 3*time.Second, err, why)
				cancel()
			}
			silent := kinesistest.Fault{Subscription: kinesistest.SubscriptionFault{HalfOpen: true}}
			fault(silent)
			sub := s.subscribe(t, c)
			began = time.Now()
			after("silent", 30*time.Second, sub.Next(30*time.Second, new(codec.Page)), ErrSilent)
			fault(silent)
			ctx, cancel := context.WithCancel(t.Context())
			if sub, began = nil, time.Now(); true {
				var err error
				if sub, err = c.Subscribe(ctx, s.request()); err != nil {
					t.Fatal(err)
				}
			}
			cancel() // ctx only applies to the call
			began = time.Now()
			time.AfterFunc(4*time.Second, sub.Stop)
			after("stopped", 4*time.Second, sub.Next(30*time.Second, new(codec.Page)), ErrClosed)
			sub.Close()
			fault(kinesistest.Fault{Subscription: kinesistest.SubscriptionFault{UnknownEvent: true, HalfOpen: true}})
			sub = s.subscribe(t, c)
			began = time.Now()
			after("an event that nobody knows", 7*time.Second, sub.Next(7*time.Second, new(codec.Page)), ErrSilent)
			fault(kinesistest.Fault{})
			sub = s.subscribe(t, c)
			began = time.Now()
			for err := error(nil); !errors.Is(err, ErrEnded); {
				if err = sub.Next(30*time.Second, new(codec.Page)); err != nil && !errors.Is(err, ErrEnded) {
					t.Fatal(err)
				}
			}
			after("the five minutes", 5*time.Minute, ErrEnded, ErrEnded)
			if n := len(s.srv.Subscriptions("s")); n != 0 {
				t.Errorf("%d subscriptions are left", n)
			}
		})
	}
}

// A stream that breaks in the middle returns an error, not the normal end.
func TestSubscriptionsThatBreak(t *testing.T) {
	for _, tls := range []bool{false, true} {
		inBubble(t, kinesistest.Config{TLS: tls}, func(t *testing.T, s *subscribed, path Path) {
			if path == PlainSDK {
				return // the SDK does not report it
			}
			c := newCaller(t, s.client, Options{Path: path})
			s.srv.Put("s", "k", []byte("x"))
			for what, f := range map[string]kinesistest.Fault{
				"cut in an event": {Subscription: kinesistest.SubscriptionFault{CutEvent: true}},
				"wrong checksum":  {Subscription: kinesistest.SubscriptionFault{Corrupt: true}},
				"junk":            {Rewrite: func([]byte) []byte { return []byte("<html>") }},
			} {
				s.srv.Control("SubscribeToShard", func(*kinesistest.Call) kinesistest.Fault { return f })
				time.Sleep(5 * time.Second)
				err := s.subscribe(t, c).Next(30*time.Second, new(codec.Page))
				if err == nil || errors.Is(err, ErrEnded) || errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), "SubscribeToShard") {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// If an answer is not an event stream, the error contains its content type. A stream that begins
// with an event is accepted.
func TestSubscriptionsOfOtherServers(t *testing.T) {
	event := string(answers.EventMessage(t, "SubscribeToShardEvent", "", `{"Records":[],"ContinuationSequenceNumber":"7"}`))
	for name, c := range map[string]struct {
		contentType, body, want string
	}{
		"a page":            {"text/html", "<html><body>Welcome to the network", `"text/html"`},
		"an event at first": {"application/vnd.amazon.eventstream", event, ""},
		"nothing":           {"application/vnd.amazon.eventstream", "", ErrEnded.Error()},
		"an exception at first": {"application/vnd.amazon.eventstream",
			string(answers.Message(t, `{"message":"because"}`, ":message-type", "exception", ":exception-type", "ResourceInUseException")), "because"},
		"a message of no kind":        {"application/vnd.amazon.eventstream", string(answers.Message(t, "")), "without a type"},
		"a message of a new kind":     {"application/vnd.amazon.eventstream", string(answers.Message(t, "", ":message-type", "rumour")), `"rumour"`},
		"an event of no type":         {"application/vnd.amazon.eventstream", string(answers.Message(t, "", ":message-type", "event")), "without a type"},
		"an exception without a type": {"application/vnd.amazon.eventstream", string(answers.Message(t, "", ":message-type", "exception")), "without a type"},
	} {
		server := newFake(t, func(w http.ResponseWriter, _ seen) { write(w, 200, c.contentType, c.body) })
		sub, err := newCaller(t, fakeClient(server.URL), Options{}).Subscribe(t.Context(), SubscribeRequest{ConsumerARN: "c", Shard: "sh", At: fromOldest})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		var p codec.Page
		if err := sub.Next(time.Second, &p); err != nil || p.Next != "7" {
			t.Errorf("%s: %q, %v", name, p.Next, err)
		}
		sub.Close()
	}
}
