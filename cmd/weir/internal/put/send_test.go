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
)

// given is a closed channel of n entries with one of the keys each.
func given(n int, keys ...string) <-chan Entry {
	entries := make(chan Entry, n)
	for i := range n {
		entries <- Entry{Data: fmt.Appendf(nil, "%d", i), Key: keys[i%len(keys)], Line: int64(i + 1)}
	}
	close(entries)
	return entries
}

func inBubble(t *testing.T, f func(t *testing.T, server *kinesistest.Server, sender *Sender)) {
	synctest.Test(t, func(t *testing.T) {
		server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		server.CreateStream("s", 1)
		f(t, server, &Sender{Client: server.Client(), Stream: "s"})
	})
}

// Past the limits of a shard a sender goes as fast as the shard lets it, and takes nothing twice.
func TestSendAtTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, server *kinesistest.Server, sender *Sender) {
		sender.Loose = true
		began := time.Now()
		sum, err := sender.Send(t.Context(), given(5000, "k"))
		if err != nil || sum.Records != 5000 || sum.Retries == 0 || len(server.Records("s")) != 5000 {
			t.Errorf("%+v, %v; the stream has %d records", sum, err, len(server.Records("s")))
		}
		// in virtual time: 1,000 records a second
		if took := time.Since(began); took < 3*time.Second || took > 20*time.Second {
			t.Errorf("5000 records took %v", took)
		}
	})
}

func TestSendGivesUpOnAStreamThatTakesNothing(t *testing.T) {
	for name, fault := range map[string]kinesistest.Fault{
		"every record is refused": {PartialFailure: func(int) string { return "ProvisionedThroughputExceededException" }},
		"every call is refused":   {Err: &kinesistest.Error{Code: "ProvisionedThroughputExceededException", Message: "slow down"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *kinesistest.Server, sender *Sender) {
				server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
					if c.N == 1 {
						return kinesistest.Fault{}
					}
					return fault
				})
				sum, err := sender.Send(t.Context(), given(20, "a", "b"))
				if err == nil || !strings.Contains(err.Error(), "took no record for") || !strings.Contains(err.Error(), "ProvisionedThroughputExceeded") {
					t.Errorf("ended with %v", err)
				}
				if sum.Records != 2 || sum.Through != 2 || sum.Beyond != 0 || len(server.Records("s")) != 2 {
					t.Errorf("%+v", sum)
				}
			})
		})
	}
}

// A lost answer puts records in the stream twice, but never a newer one of the key before an older
// one.
func TestSendAfterALostAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, server *kinesistest.Server, sender *Sender) {
		server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{LoseAnswer: c.N%3 == 2} })
		sum, err := sender.Send(t.Context(), given(30, "a", "b", "c"))
		if err != nil || sum.Records != 30 || sum.Through != 30 {
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

func TestSendEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, server *kinesistest.Server, sender *Sender) {
		ctx, cancel := context.WithCancel(t.Context())
		entries := make(chan Entry, 1)
		entries <- Entry{Data: []byte("x"), Key: "k", Line: 1}
		ended := make(chan error, 1)
		go func() {
			sum, err := sender.Send(ctx, entries)
			if sum.Through != 1 {
				t.Errorf("%+v", sum)
			}
			ended <- err
		}()
		synctest.Wait()
		if n := len(server.Records("s")); n != 1 {
			t.Errorf("%d records were put while more may come", n)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestSendToNoStream(t *testing.T) {
	inBubble(t, func(t *testing.T, server *kinesistest.Server, sender *Sender) {
		sender.Stream = "none"
		sum, err := sender.Send(t.Context(), given(3, "k"))
		if err == nil || sum.Records != 0 || sum.Through != 0 {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

// A failure of the service is not explained by the limits of a shard.
func TestSendNamesWhyNothingWasTaken(t *testing.T) {
	for code, want := range map[string]string{
		"InternalFailure":                        "more shards do not help",
		"KMSThrottlingException":                 "the key that encrypts the stream",
		"ProvisionedThroughputExceededException": "give it more shards",
	} {
		inBubble(t, func(t *testing.T, server *kinesistest.Server, sender *Sender) {
			server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
				return kinesistest.Fault{PartialFailure: func(int) string { return code }}
			})
			sum, err := sender.Send(t.Context(), given(2, "a", "b"))
			if err == nil || !strings.Contains(err.Error(), want) || sum.Refusals[code] == 0 || len(sum.Refusals) != 1 {
				t.Errorf("%s: %v, %v", code, err, sum.Refusals)
			}
		})
	}
}
