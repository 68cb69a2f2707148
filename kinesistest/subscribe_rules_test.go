package kinesistest_test

import (
	"context"
	"errors"
	"fmt"
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

func TestASubscriptionIsTakenOverAfterFiveSeconds(t *testing.T) {
	for _, cleanly := range []bool{false, true} {
		for name, p := range protocols {
			t.Run(fmt.Sprintf("cleanly %v, over %s", cleanly, name), func(t *testing.T) {
				p.cfg.NoLimits, p.cfg.TakeoverEndsCleanly = true, cleanly
				subscribing(t, p.cfg, func(t *testing.T, s *kinesistest.Server, arn string) {
					began := time.Now()
					old := subscribe(t, s, arn, 0, position(newest), p.opt(s))
					for _, wait := range []time.Duration{0, time.Millisecond, 4 * time.Second, 900 * time.Millisecond} {
						time.Sleep(wait)
						_, err := trySubscribe(t, s, arn, 0, position(newest), p.opt(s))
						wantCode(t, err, "ResourceInUseException")
					}
					// Subscriptions of another consumer, or to another shard, are not affected.
					other := subscribe(t, s, s.RegisterConsumer("s", "other"), 0, position(newest), p.opt(s))
					if live := s.Subscriptions("s"); len(live) != 2 {
						t.Errorf("live are %v", live)
					}
					time.Sleep(time.Until(began.Add(5*time.Second - time.Millisecond)))
					s.Put("s", "k", []byte("to the old one"))
					if got, _ := old.records(1); got != "[to the old one]" {
						t.Errorf("got %s", got)
					}
					time.Sleep(time.Until(began.Add(5 * time.Second)))
					heir := subscribe(t, s, arn, 0, position(newest), p.opt(s))
					synctest.Wait()
					s.Put("s", "k", []byte("to the new one"))
					for range old.Events() { // the fifth second may bring an empty event
					}
					switch err := old.Close(); {
					case cleanly && err != nil:
						t.Errorf("the old one ended with %v", err)
					case !cleanly:
						wantCode(t, err, "ResourceInUseException")
					}
					if got, _ := heir.records(1); got != "[to the new one]" {
						t.Errorf("got %s", got)
					}
					if got, _ := other.records(2); got != "[to the old one to the new one]" {
						t.Errorf("got %s", got)
					}
					if live := s.Subscriptions("s"); len(live) != 2 || live[0].Began.Sub(began) != 5*time.Second {
						t.Errorf("live are %v", live)
					}
					// The new subscription is protected for 5 seconds like the old one.
					time.Sleep(4 * time.Second)
					_, err := trySubscribe(t, s, arn, 0, position(newest), p.opt(s))
					wantCode(t, err, "ResourceInUseException")
					_ = heir.Close()
					_ = other.Close()
				})
			})
		}
	}
}

func TestAClientThatLeavesFreesItsSubscription(t *testing.T) {
	eachProtocol(t, func(t *testing.T, s *kinesistest.Server, opt func(*kinesis.Options)) {
		s.CreateStream("s", 1)
		arn := s.RegisterConsumer("s", "c")
		inMemory := strings.Contains(s.URL(), "kinesistest.invalid")
		for i := range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			var stream *kinesis.SubscribeToShardEventStream
			for stream == nil {
				out, err := s.Client(opt, noRetry).SubscribeToShard(ctx, &kinesis.SubscribeToShardInput{ConsumerARN: &arn, ShardId: aws.String(shardID(0)), StartingPosition: position(newest)})
				var busy *types.ResourceInUseException
				switch {
				case err == nil:
					stream = out.GetStream()
				case !inMemory && errors.As(err, &busy):
					// Over a socket, the server may notice late that the client has left.
				default:
					t.Fatalf("subscription %d: %v", i, err)
				}
			}
			if i%2 == 0 {
				cancel()
			}
			_ = stream.Close()
			cancel()
			// Do not wait here. The server must accept the next call although the client has only
			// just left.
		}
	})
}

func TestHeldSubscriptions(t *testing.T) {
	subscribing(t, kinesistest.Config{NoLimits: true, HoldSubscriptions: true}, func(t *testing.T, s *kinesistest.Server, arn string) {
		if err := subscribe(t, s, arn, 0, position(newest)).Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(4 * time.Second)
		_, err := trySubscribe(t, s, arn, 0, position(newest))
		wantCode(t, err, "ResourceInUseException")
		if live := s.Subscriptions("s"); len(live) != 0 {
			t.Errorf("live are %v", live)
		}
		time.Sleep(time.Second)
		_ = subscribe(t, s, arn, 0, position(newest)).Close()
	})
}

func TestOneCallOfSubscribeASecond(t *testing.T) {
	subscribing(t, kinesistest.Config{}, func(t *testing.T, s *kinesistest.Server, arn string) {
		other := s.RegisterConsumer("s", "other")
		_ = subscribe(t, s, arn, 0, position(newest)).Close()
		synctest.Wait()
		_, err := trySubscribe(t, s, arn, 0, position(newest))
		wantCode(t, err, "LimitExceededException")
		_ = subscribe(t, s, other, 0, position(newest)).Close() // another consumer has its own limit
		time.Sleep(time.Second)
		sub := subscribe(t, s, arn, 0, position(newest))
		// ResourceInUseException takes precedence.
		_, err = trySubscribe(t, s, arn, 0, position(newest))
		wantCode(t, err, "ResourceInUseException")
		_ = sub.Close()
	})
}

func TestASubscriptionHasTwoMebibytesASecond(t *testing.T) {
	const mib = 1 << 20
	subscribing(t, kinesistest.Config{}, func(t *testing.T, s *kinesistest.Server, arn string) {
		for range 8 * 8 {
			s.Put("s", "k", make([]byte, mib/8-1))
		}
		began := time.Now()
		var wg sync.WaitGroup
		// Each consumer has its own limit.
		for _, arn := range []string{arn, s.RegisterConsumer("s", "other")} {
			sub := subscribe(t, s, arn, 0, position(oldest))
			wg.Go(func() {
				bytes, events := 0, 0
				for bytes < 8*mib {
					ev := sub.next()
					events++
					size := 0
					for _, r := range ev.Records {
						size += len(r.Data) + len(*r.PartitionKey)
					}
					bytes += size
					if behind := *ev.MillisBehindLatest; size > mib || (behind == 0) != (bytes == 8*mib) {
						t.Errorf("an event of %d bytes, %d ms behind after %d bytes", size, behind, bytes)
					}
				}
				// The records of the first second arrive at once.
				if took := time.Since(began); took != 3*time.Second || events != 8 {
					t.Errorf("it took %v and %d events", took, events)
				}
				_ = sub.Close()
			})
		}
		wg.Wait()
		// The limit applies across subscriptions.
		synctest.Wait()
		began = time.Now()
		s.Put("s", "k", make([]byte, mib-1))
		time.Sleep(time.Second)
		for range 3 {
			s.Put("s", "k", make([]byte, mib-1))
		}
		sub := subscribe(t, s, arn, 0, atNumber(after, aws.String(s.Records("s")[63].SequenceNumber)))
		sub.records(4)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("the rest took %v", took)
		}
		_ = sub.Close()
	})
}

func TestLargeRecordsArePushed(t *testing.T) {
	subscribing(t, kinesistest.Config{}, func(t *testing.T, s *kinesistest.Server, arn string) {
		ok[*kinesis.UpdateMaxRecordSizeOutput](t)(s.Client(noRetry).UpdateMaxRecordSize(t.Context(), &kinesis.UpdateMaxRecordSizeInput{StreamARN: aws.String(s.StreamARN("s")), MaxRecordSizeInKiB: aws.Int32(10240)}))
		const size = 10<<20 - 1
		s.Put("s", "k", make([]byte, size))
		s.Put("s", "k", []byte("small"))
		s.Put("s", "k", make([]byte, 3<<20))
		began := time.Now()
		sub := subscribe(t, s, arn, 0, position(oldest))
		var arrivals []time.Duration
		for len(arrivals) < 3 {
			if ev := sub.next(); len(ev.Records) == 1 {
				arrivals = append(arrivals, time.Since(began))
			} else if len(ev.Records) > 0 || *ev.MillisBehindLatest == 0 {
				t.Errorf("an event with %d records, %d ms behind", len(ev.Records), *ev.MillisBehindLatest)
			}
		}
		// A large record is sent at once, although it uses the limit of several seconds. A small
		// record then waits for this number of seconds. Another record that is larger than the
		// limit of one second waits until the whole limit of a second is available again.
		if arrivals[0] != 0 || arrivals[1].Round(time.Millisecond) != 5*time.Second || arrivals[2].Round(time.Millisecond) != 6*time.Second {
			t.Errorf("they came after %v", arrivals)
		}
		_ = sub.Close()
	})
}

func TestTheEndOfAShardIsPushed(t *testing.T) {
	for _, emptyEvent := range []bool{false, true} {
		t.Run(fmt.Sprintf("EndOnEmptyPage %v", emptyEvent), func(t *testing.T) {
			subscribing(t, kinesistest.Config{NoLimits: true, EndOnEmptyPage: emptyEvent}, func(t *testing.T, s *kinesistest.Server, arn string) {
				// wantEnd reads the rest of the shard and checks its end.
				wantEnd := func(sub subscription, records string, children ...string) {
					t.Helper()
					var got []types.Record
					for {
						ev := sub.next()
						got = append(got, ev.Records...)
						if ev.ContinuationSequenceNumber != nil {
							if len(ev.ChildShards) > 0 {
								t.Errorf("half an end: %+v", ev)
							}
							continue
						}
						var ids []string
						for _, ch := range ev.ChildShards {
							ids = append(ids, *ch.ShardId)
						}
						if fmt.Sprint(ids) != fmt.Sprint(children) || *ev.MillisBehindLatest != 0 || emptyEvent && len(ev.Records) > 0 || !emptyEvent && len(ev.Records) != len(got) {
							t.Errorf("children %v, want %v, with %d records of %d", ids, children, len(ev.Records), len(got))
						}
						break
					}
					if err := sub.over(); err != nil || texts(got) != records {
						t.Errorf("it ended with %v, got %s", err, texts(got))
					}
				}
				s.SetStateDelay(2 * time.Second)
				sub := subscribe(t, s, arn, 0, position(newest))
				began := time.Now()
				ok[*kinesis.SplitShardOutput](t)(s.Client(noRetry).SplitShard(t.Context(), &kinesis.SplitShardInput{StreamName: aws.String("s"), ShardToSplit: aws.String(shardID(0)), NewStartingHashKey: aws.String("1000")}))
				// The stream is not read again before the split is due.
				wantEnd(sub, "[]", shardID(1), shardID(2))
				if time.Since(began) != 2*time.Second {
					t.Errorf("the end came after %v", time.Since(began))
				}
				// Both parents of a merge report the same child shard.
				s.Put("s", "k", []byte("x"))
				full := s.Records("s")[0].Shard // one of the two parents
				a, b := subscribe(t, s, arn, 1, position(oldest)), subscribe(t, s, arn, 2, position(oldest))
				if full == shardID(1) {
					a.records(1)
				} else {
					b.records(1)
				}
				child := s.Merge("s", shardID(1), shardID(2))
				wantEnd(a, "[]", child)
				wantEnd(b, "[]", child)
				// A subscription reads a closed shard to its end. With LATEST it starts at the end.
				n := 1
				if full == shardID(2) {
					n = 2
				}
				wantEnd(subscribe(t, s, arn, n, position(oldest)), "[x]", child)
				began = time.Now()
				wantEnd(subscribe(t, s, arn, n, position(newest)), "[]", child)
				wantEnd(subscribe(t, s, arn, 0, position(oldest)), "[]", shardID(1), shardID(2))
				if time.Since(began) != 0 {
					t.Errorf("the ends of closed shards came after %v", time.Since(began))
				}
				// A closed shard can be read until its records have left the retention period.
				time.Sleep(25 * time.Hour)
				_, err := trySubscribe(t, s, arn, n, position(oldest))
				wantCode(t, err, "ResourceNotFoundException")
			})
		})
	}
}

func TestSubscribingToWhatWasTrimmed(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		t.Run(fmt.Sprintf("RefuseTrimmed %v", refuse), func(t *testing.T) {
			subscribing(t, kinesistest.Config{NoLimits: true, RefuseTrimmed: refuse}, func(t *testing.T, s *kinesistest.Server, arn string) {
				begun := subscribe(t, s, arn, 0, position(newest)).next() // before the first record
				_, old := s.Put("s", "k", []byte("old"))
				s.Put("s", "k", []byte("old too"))
				time.Sleep(time.Hour)
				idle := subscribe(t, s, arn, 0, position(newest)).next() // after both records
				time.Sleep(23*time.Hour + time.Minute)
				s.Put("s", "k", []byte("new"))
				for what, tc := range map[string]struct {
					at   *types.StartingPosition
					lost bool
				}{
					"the oldest there is":                    {position(oldest), false},
					"a record that was trimmed":              {atNumber(from, &old), true},
					"what follows one, but another lies":     {atNumber(after, &old), true},
					"a continuation from before all records": {atNumber(from, begun.ContinuationSequenceNumber), true},
					"a continuation that lost nothing":       {atNumber(from, idle.ContinuationSequenceNumber), false},
					"the same, read on after":                {atNumber(after, idle.ContinuationSequenceNumber), false},
				} {
					sub, err := trySubscribe(t, s, arn, 0, tc.at)
					if refuse && tc.lost {
						wantCode(t, err, "InvalidArgumentException")
						continue
					}
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					if got, _ := sub.records(1); got != "[new]" {
						t.Errorf("%s: got %s", what, got)
					}
					_ = sub.Close()
				}
				// An existing subscription also continues.
				sub := subscribe(t, s, arn, 0, position(newest))
				s.Put("s", "k", []byte("last"))
				if got, _ := sub.records(1); got != "[last]" {
					t.Errorf("got %s", got)
				}
				_ = sub.Close()
			})
		})
	}
}
