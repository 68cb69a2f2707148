package kinesistest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

// faulty applies f to the next call of SubscribeToShard.
func faulty(s *kinesistest.Server, f kinesistest.Fault) {
	calls := s.Requests("SubscribeToShard")
	s.Control("SubscribeToShard", func(call *kinesistest.Call) kinesistest.Fault {
		if call.N == calls+1 {
			return f
		}
		return kinesistest.Fault{}
	})
}

// TestFaultsOfSubscriptions tests each fault with each protocol. After each fault it makes a
// successful subscription.
func TestFaultsOfSubscriptions(t *testing.T) {
	type fault = kinesistest.SubscriptionFault
	frame := len(eventFrame(t, "initial-response", jsonType, "{}"))
	for _, tc := range []struct {
		name   string
		fault  kinesistest.Fault
		refuse string // part of the error text, if the call fails
		events int    // events that arrive before the end
		after  time.Duration
		end    string // code or part of the text of the stream's error
		// HTTP/1.1 does not report a cut inside a frame to the SDK, so the SDK treats the cut as
		// the end.
		unseen bool
	}{
		{name: "an error instead of a stream", fault: kinesistest.Fault{Err: &kinesistest.Error{Code: "LimitExceededException"}}, refuse: "LimitExceededException"},
		{name: "a cut instead of an answer", fault: kinesistest.Fault{Cut: true}, refuse: "request send failed"},
		{name: "a lost answer", fault: kinesistest.Fault{LoseAnswer: true}, refuse: "request send failed"},
		{name: "a header and no frame", fault: kinesistest.Fault{CutAfter: -1}, refuse: "decode initial response"},
		{name: "half a first frame", fault: kinesistest.Fault{CutAfter: frame / 2}, refuse: "decode initial response"},
		{name: "a first frame and no byte more", fault: kinesistest.Fault{CutAfter: frame}, end: "INTERNAL_ERROR", unseen: true},
		{name: "some bytes of an event", fault: kinesistest.Fault{CutAfter: frame + 30}, after: 5 * time.Second, end: "INTERNAL_ERROR", unseen: true},
		{name: "a slow header", fault: kinesistest.Fault{Subscription: fault{HeaderDelay: 3 * time.Second, End: true}}, after: 3 * time.Second},
		{name: "no initial-response", fault: kinesistest.Fault{Subscription: fault{NoInitialResponse: true}}, after: 5 * time.Second, refuse: "expected initial-response"},
		{name: "a stream that ends at once", fault: kinesistest.Fault{Subscription: fault{End: true}}},
		{name: "a stream that ends after events", fault: kinesistest.Fault{Subscription: fault{Events: 3, End: true}}, events: 3, after: 15 * time.Second},
		{name: "an exception at once", fault: kinesistest.Fault{Subscription: fault{Exception: &kinesistest.Error{Code: "InternalFailureException"}}}, end: "InternalFailureException"},
		{name: "an exception after events", fault: kinesistest.Fault{Subscription: fault{Events: 2, Exception: &kinesistest.Error{Code: "KMSDisabledException"}}}, events: 2, after: 10 * time.Second, end: "KMSDisabledException"},
		{name: "an exception without a type", fault: kinesistest.Fault{Subscription: fault{Exception: &kinesistest.Error{Code: "NewException"}}}, end: "NewException"},
		{name: "a protocol error", fault: kinesistest.Fault{Subscription: fault{Events: 1, ProtocolError: &kinesistest.Error{Code: "Broken"}}}, events: 1, after: 5 * time.Second, end: "Broken"},
		{name: "a cut in an event", fault: kinesistest.Fault{Subscription: fault{Events: 1, CutEvent: true}}, events: 1, after: 10 * time.Second, end: "INTERNAL_ERROR", unseen: true},
		{name: "a corrupt event", fault: kinesistest.Fault{Subscription: fault{Events: 1, Corrupt: true}}, events: 1, after: 10 * time.Second, end: "checksum"},
		{name: "each event twice", fault: kinesistest.Fault{Subscription: fault{Duplicate: true, Events: 2, End: true}}, events: 4, after: 10 * time.Second},
	} {
		for proto, p := range protocols {
			t.Run(tc.name+" over "+proto, func(t *testing.T) {
				p.cfg.NoLimits = true
				subscribing(t, p.cfg, func(t *testing.T, s *kinesistest.Server, arn string) {
					faulty(s, tc.fault)
					began := time.Now()
					sub, err := trySubscribe(t, s, arn, 0, position(newest), p.opt(s))
					if tc.refuse != "" {
						if err == nil || !strings.Contains(err.Error(), tc.refuse) {
							t.Errorf("the call ended with %v", err)
						}
					} else {
						if err != nil {
							t.Fatal(err)
						}
						events := 0
						for range sub.Events() {
							events++
						}
						err := sub.Close()
						if tc.end != "" && !(tc.unseen && p.name == "HTTP/1.1") {
							if err == nil || !strings.Contains(err.Error(), tc.end) {
								t.Errorf("the stream ended with %v", err)
							}
						} else if err != nil {
							t.Errorf("the stream ended with %v", err)
						}
						if events != tc.events {
							t.Errorf("%d events arrived", events)
						}
					}
					if took := time.Since(began); took != tc.after {
						t.Errorf("it took %v, not %v", took, tc.after)
					}
					sub = subscribe(t, s, arn, 0, position(newest), p.opt(s))
					s.Put("s", "k", []byte("x"))
					if got, _ := sub.records(1); got != "[x]" {
						t.Errorf("after the fault got %s", got)
					}
				})
			})
		}
	}
}

func TestAHalfOpenSubscription(t *testing.T) {
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			p.cfg.NoLimits = true
			subscribing(t, p.cfg, func(t *testing.T, s *kinesistest.Server, arn string) {
				faulty(s, kinesistest.Fault{Subscription: kinesistest.SubscriptionFault{Events: 1, HalfOpen: true}})
				sub := subscribe(t, s, arn, 0, position(newest), p.opt(s))
				sub.next()
				s.Put("s", "k", []byte("x"))
				s.Split("s", shardID(0))
				silence := time.After(time.Hour)
				select {
				case ev, more := <-sub.Events():
					t.Fatalf("got %v, %v", ev, more)
				case <-silence:
				}
				if live := s.Subscriptions("s"); len(live) != 1 {
					t.Errorf("live are %v", live)
				}
				// A takeover does not notify the client of the old subscription.
				heir := subscribe(t, s, arn, 0, position(oldest), p.opt(s))
				if ev := heir.next(); texts(ev.Records) != "[x]" || len(ev.ChildShards) != 2 {
					t.Errorf("got %+v", ev)
				}
				select {
				case ev, more := <-sub.Events():
					t.Fatalf("got %v, %v", ev, more)
				case <-time.After(time.Hour):
				}
				if err := sub.Close(); err != nil {
					t.Error(err)
				}
				// The subscription ends when the client closes it.
				faulty(s, kinesistest.Fault{Subscription: kinesistest.SubscriptionFault{HalfOpen: true}})
				sub = subscribe(t, s, arn, 0, position(newest), p.opt(s))
				_ = sub.Close()
				synctest.Wait()
				if live := s.Subscriptions("s"); len(live) != 0 {
					t.Errorf("live are %v", live)
				}
				// It also ends when the server is closed.
				faulty(s, kinesistest.Fault{Subscription: kinesistest.SubscriptionFault{HalfOpen: true}})
				sub = subscribe(t, s, arn, 0, position(newest), p.opt(s))
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				for range sub.Events() {
					t.Error("an event of a closed server")
				}
			})
		})
	}
}

func TestATriggeredFault(t *testing.T) {
	subscribing(t, unlimited, func(t *testing.T, s *kinesistest.Server, arn string) {
		now := make(chan struct{})
		faulty(s, kinesistest.Fault{Subscription: kinesistest.SubscriptionFault{Events: 2, Trigger: now, Exception: &kinesistest.Error{Code: "KMSAccessDeniedException"}}})
		sub := subscribe(t, s, arn, 0, position(newest))
		for i := range 10 {
			s.Put("s", "k", []byte("x"))
			if got, _ := sub.records(1); got != "[x]" {
				t.Errorf("record %d: got %s", i, got)
			}
		}
		began := time.Now()
		close(now)
		wantCode(t, sub.over(), "KMSAccessDeniedException")
		if time.Since(began) != 0 {
			t.Errorf("it took %v", time.Since(began))
		}
		// Events and Trigger must both be reached.
		faulty(s, kinesistest.Fault{Subscription: kinesistest.SubscriptionFault{Events: 2, Trigger: now, End: true}})
		sub = subscribe(t, s, arn, 0, position(newest))
		sub.next()
		sub.next()
		if err := sub.over(); err != nil || time.Since(began) != 10*time.Second {
			t.Errorf("it ended with %v after %v", err, time.Since(began))
		}
	})
}

func TestUnknownEventsAreSkippable(t *testing.T) {
	subscribing(t, unlimited, func(t *testing.T, s *kinesistest.Server, arn string) {
		faulty(s, kinesistest.Fault{Subscription: kinesistest.SubscriptionFault{Events: 1, UnknownEvent: true}})
		sub := subscribe(t, s, arn, 0, position(newest))
		s.Put("s", "k", []byte("1"))
		first, _ := sub.records(1)
		unknown, is := (<-sub.Events()).(*types.UnknownUnionMember)
		s.Put("s", "k", []byte("2"))
		second, _ := sub.records(1)
		if first != "[1]" || !is || unknown.Tag != "EventOfTomorrow" || second != "[2]" {
			t.Errorf("got %s, %+v, %s", first, unknown, second)
		}
	})
}

func TestEventsCanBeRewritten(t *testing.T) {
	subscribing(t, unlimited, func(t *testing.T, s *kinesistest.Server, arn string) {
		s.Put("s", "k", []byte("x"))
		s.Split("s", shardID(0))
		// An end marker without child shards, as observed in practice.
		faulty(s, kinesistest.Fault{Rewrite: func(payload []byte) []byte {
			var ev map[string]any
			if err := json.Unmarshal(payload, &ev); err != nil {
				t.Error(err)
			}
			delete(ev, "ChildShards")
			payload, err := json.Marshal(ev)
			if err != nil {
				t.Error(err)
			}
			return payload
		}})
		sub := subscribe(t, s, arn, 0, position(oldest))
		if ev := sub.next(); texts(ev.Records) != "[x]" || ev.ContinuationSequenceNumber != nil || ev.ChildShards != nil {
			t.Errorf("got %+v", ev)
		}
		if err := sub.over(); err != nil {
			t.Error(err)
		}
	})
}

func TestAfterRunsWithTheSubscription(t *testing.T) {
	subscribing(t, unlimited, func(t *testing.T, s *kinesistest.Server, arn string) {
		faulty(s, kinesistest.Fault{After: func() {
			if live := s.Subscriptions("s"); len(live) != 1 {
				t.Errorf("live are %v", live)
			}
			s.Split("s", shardID(0))
		}, LoseAnswer: true})
		if _, err := trySubscribe(t, s, arn, 0, position(newest)); err == nil {
			t.Error("the answer was not lost")
		}
		synctest.Wait()
		if live := s.Subscriptions("s"); len(live) != 0 {
			t.Errorf("live are %v", live)
		}
		if ev := subscribe(t, s, arn, 0, position(newest)).next(); len(ev.ChildShards) != 2 {
			t.Errorf("got %+v", ev)
		}
	})
}
