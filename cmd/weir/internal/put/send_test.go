package put

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/producer"
)

// inBubble runs f in virtual time with a server that has a stream "s".
func inBubble(t *testing.T, shards int, f func(*testing.T, *kinesistest.Server, Options)) {
	synctest.Test(t, func(t *testing.T) {
		server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		server.CreateStream("s", shards)
		f(t, server, Options{Client: server.Client(), Stream: "s"})
	})
}

// refuseEach refuses each record of a request.
func refuseEach(code string) kinesistest.Fault {
	return kinesistest.Fault{PartialFailure: func(int) string { return code }}
}

// send puts n entries, each with one of the keys, and closes the Sender.
func send(t *testing.T, o Options, n int, keys ...string) (Summary, error) {
	t.Helper()
	s, err := NewSender(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		e := Entry{Data: fmt.Appendf(nil, "%d", i), Key: keys[i%len(keys)], Line: int64(i + 1)}
		if err := s.Put(t.Context(), e); err != nil {
			break // the summary has the reason
		}
	}
	return s.Close(t.Context())
}

// A Sender uses a shard up to its limit, and the shard refuses only a few records.
func TestSendAtTheLimit(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, server *kinesistest.Server, o Options) {
		o.Loose = true
		began := time.Now()
		sum, err := send(t, o, 5000, "k")
		n := len(server.Records("s"))
		if err != nil || sum.Records != 5000 || sum.Retries > 500 || n != 5000 {
			t.Errorf("%+v, %v; the stream has %d records", sum, err, n)
		}
		// The time is virtual. The shard accepts 1,000 records a second.
		if took := time.Since(began); took < 3*time.Second || took > 10*time.Second {
			t.Errorf("5000 records took %v", took)
		}
	})
}

func TestSendGivesUpOnAStreamThatTakesNothing(t *testing.T) {
	full := &kinesistest.Error{Code: "ProvisionedThroughputExceededException", Message: "slow down"}
	for name, c := range map[string]struct {
		fault kinesistest.Fault
		want  string
	}{
		"every record is refused": {refuseEach(full.Code),
			"the stream took no record for 60 s (ProvisionedThroughputExceededException"},
		"every call is refused": {kinesistest.Fault{Err: full},
			"the stream took no record for 60 s (ProvisionedThroughputExceededException: slow down): " +
				"give it more shards or try again later"},
		"no call is answered": {kinesistest.Fault{Delay: time.Hour}, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, server *kinesistest.Server, o Options) {
				server.Control("PutRecords", func(call *kinesistest.Call) kinesistest.Fault {
					if call.N == 1 {
						return kinesistest.Fault{}
					}
					return c.fault
				})
				sum, err := send(t, o, 20, "a", "b")
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("ended with %v", err)
				}
				if sum.Records != 2 || sum.Through != 2 || sum.Beyond != 0 || len(server.Records("s")) != 2 {
					t.Errorf("%+v", sum)
				}
			})
		})
	}
}

// A Sender does not count the time without input as time in which nothing was stored.
func TestSendIsPatientAfterAPause(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, server *kinesistest.Server, o Options) {
		s, err := NewSender(o)
		if err != nil {
			t.Fatal(err)
		}
		server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
			if c.N < 5 {
				return refuseEach("InternalFailure")
			}
			return kinesistest.Fault{}
		})
		time.Sleep(time.Hour)
		if err := s.Put(t.Context(), Entry{Data: []byte("x"), Key: "k", Line: 1}); err != nil {
			t.Fatal(err)
		}
		sum, err := s.Close(t.Context())
		if err != nil || sum.Records != 1 || sum.Refusals["InternalFailure"] != 4 {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

// If a record fails permanently, the Sender stops. The summary describes the records in the stream.
func TestSendStopsAtAFailure(t *testing.T) {
	denied := &kinesistest.Error{Code: "AccessDeniedException", Message: "no"}
	for name, c := range map[string]struct {
		fault kinesistest.Fault
		want  string
	}{
		"a call": {kinesistest.Fault{Err: denied}, "AccessDeniedException: no"},
		"a record after others were throttled": {kinesistest.Fault{PartialFailure: func(i int) string {
			return []string{"ProvisionedThroughputExceededException", "KMSDisabledException"}[i%2]
		}}, "the stream refused a record (KMSDisabledException"},
		"a record": {refuseEach("KMSDisabledException"),
			"the stream refused a record (KMSDisabledException"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, server *kinesistest.Server, o Options) {
				server.Control("PutRecords", func(call *kinesistest.Call) kinesistest.Fault {
					if call.N == 4 {
						return c.fault
					}
					return kinesistest.Fault{Delay: time.Duration(call.N) * time.Millisecond}
				})
				sum, err := send(t, o, 500, "a", "b", "c", "d", "e", "f", "g")
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("ended with %v", err)
				}
				through, beyond := int64(0), int64(0)
				stored := map[string]bool{}
				for _, r := range server.Records("s") {
					stored[string(r.Data)] = true
				}
				for i := range int64(500) {
					switch {
					case stored[fmt.Sprint(i)] && through == i:
						through++
					case stored[fmt.Sprint(i)]:
						beyond++
					}
				}
				if n := int64(len(stored)); n == 0 || sum.Records != n ||
					sum.Through != through || sum.Beyond != beyond {
					t.Errorf("%+v; the stream has %d records, through %d", sum, n, through)
				}
			})
		})
	}
}

// If an answer is lost, records may be in the stream twice. The first copies of the records of a
// key are in order.
func TestSendAfterALostAnswer(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, server *kinesistest.Server, o Options) {
		server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{LoseAnswer: c.N%3 == 2}
		})
		sum, err := send(t, o, 30, "a", "b", "c")
		if err != nil || sum.Records != 30 || sum.Through != 30 ||
			sum.Retries == 0 || sum.Refusals[""] != sum.Retries {
			t.Errorf("%+v, %v", sum, err)
		}
		first := map[string]int{}
		for _, r := range server.Records("s") {
			var n int
			if _, err := fmt.Sscan(string(r.Data), &n); err != nil {
				t.Fatal(err)
			}
			if before, any := first[r.PartitionKey]; any && n > before && n != before+3 {
				t.Errorf("%d of key %s comes after %d", n, r.PartitionKey, before)
			}
			first[r.PartitionKey] = max(first[r.PartitionKey], n)
		}
	})
}

// A Sender sends records while it accepts more. When the context ends, it leaves the rest unsent.
func TestSendEndsWithItsContext(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, server *kinesistest.Server, o Options) {
		s, err := NewSender(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := s.Put(ctx, Entry{Data: []byte("x"), Key: "k", Line: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := len(server.Records("s")); n != 1 {
			t.Errorf("%d records were put while more may come", n)
		}
		server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Delay: time.Hour}
		})
		if err := s.Put(ctx, Entry{Data: []byte("y"), Key: "k", Line: 4}); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, cancel)
		sum, err := s.Close(ctx)
		if !errors.Is(err, context.Canceled) || sum.Records != 1 || sum.Through != 3 {
			t.Errorf("%+v, %v", sum, err)
		}
		if err := s.Put(t.Context(), Entry{Key: "k"}); !errors.Is(err, producer.ErrClosed) {
			t.Errorf("Put after Close: %v", err)
		}
	})
}

func TestSendToNoStream(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, server *kinesistest.Server, o Options) {
		o.Stream = "none"
		sum, err := send(t, o, 3, "k")
		if err == nil || !strings.Contains(err.Error(), "ResourceNotFoundException") ||
			sum.Records != 0 || sum.Through != 0 {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

// If the service failed, the error does not mention the limits of a shard.
func TestSendNamesWhyNothingWasTaken(t *testing.T) {
	for code, want := range map[string]string{
		"InternalFailure":                        "more shards do not help",
		"KMSThrottlingException":                 "the key that encrypts the stream",
		"ProvisionedThroughputExceededException": "give it more shards",
	} {
		inBubble(t, 1, func(t *testing.T, server *kinesistest.Server, o Options) {
			server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
				return refuseEach(code)
			})
			sum, err := send(t, o, 2, "a", "b")
			if err == nil || !strings.Contains(err.Error(), want) ||
				sum.Refusals[code] == 0 || len(sum.Refusals) != 1 {
				t.Errorf("%s: %v, %v", code, err, sum.Refusals)
			}
		})
	}
}
