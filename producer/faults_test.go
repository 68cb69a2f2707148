package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// If a shard is split while a container for the shard is in flight, one child stores the container.
// The producer sends all records of the container again, because the KCL drops the whole container.
// It does so before it sends newer records.
func TestSplitUnderAContainer(t *testing.T) {
	inBubble(t, 1, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		put(t, p, "k", "first")
		flushed(t, p)
		lower, upper := server.Split("s", "shardId-000000000000")
		var pending []*Pending
		keys := map[string]string{} // key to shard
		for i := range 100 {
			key := fmt.Sprint("key", i%10)
			keys[key] = lower
			if shard.HashOf(key).Hi >= 1<<63 {
				keys[key] = upper
			}
			pending = append(pending, put(t, p, key, fmt.Sprintf("%03d", i)))
		}
		flushed(t, p)
		misplaced := 0
		for i, pending := range pending {
			r, err := pending.Wait(t.Context())
			if err != nil || r.Shard != keys[fmt.Sprint("key", i%10)] || !r.Repeated || r.Attempts != 2 {
				t.Errorf("record %d: %+v, %v", i, r, err)
			}
			if r.Repeated {
				misplaced++
			}
		}
		c := p.Counts()
		if misplaced == 0 || c.Misplaced != uint64(misplaced) || c.Listings != 2 || c.Shards != 2 {
			t.Errorf("%d records are misplaced: %+v", misplaced, c)
		}
		if got, repeats := history(server, rangesOf(t, p)); repeats != misplaced || len(got) != 11 {
			t.Errorf("consumers get %d keys, %d records twice", len(got), repeats)
		}
	})
}

// After a merge the child stores all records that were packed for its parents: nothing is sent
// again.
func TestMergeUnderContainers(t *testing.T) {
	inBubble(t, 2, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		put(t, p, "k", "first")
		flushed(t, p)
		child := server.Merge("s", "shardId-000000000000", "shardId-000000000001")
		var pending []*Pending
		for i := range 100 {
			pending = append(pending, put(t, p, fmt.Sprint("key", i%10), fmt.Sprint(i)))
		}
		flushed(t, p)
		for i, pending := range pending {
			if r, err := pending.Wait(t.Context()); err != nil || r.Shard != child || r.Repeated || r.Attempts != 1 {
				t.Errorf("record %d: %+v, %v", i, r, err)
			}
		}
		if c := p.Counts(); c.Misplaced != 0 || c.Shards != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// Without permission to list the shards and to describe the stream, the producer sends records
// unpacked and in order.
func TestNoPermissionToListShards(t *testing.T) {
	inBubble(t, 4, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		for _, action := range []string{"ListShards", "DescribeStreamSummary"} {
			server.Control(action, func(*kinesistest.Call) kinesistest.Fault {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "AccessDeniedException"}}
			})
		}
		for i := range 200 {
			put(t, p, fmt.Sprint("key", i%5), fmt.Sprintf("%03d", i))
		}
		closed(t, p)
		records, containers := all(t, server)
		if len(records) != 200 || containers != 0 {
			t.Errorf("%d records, %d containers", len(records), containers)
		}
		last := map[string]string{}
		for _, r := range records {
			if r.data <= last[r.key] {
				t.Errorf("%s of %s comes after %s", r.data, r.key, last[r.key])
			}
			last[r.key] = r.data
		}
		if n := server.Requests("ListShards"); n != 3 { // a listing that fails is tried again twice
			t.Errorf("%d listings", n)
		}
	})
}

// A stream that distributes records by itself gets unpacked records, with or without keys.
func TestAutoStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		autoStream(t, server)
		log := &lines{}
		p := newProducer(t, server, Options{Logger: log.logger()})
		for i := range 200 {
			if _, err := p.Put(t.Context(), Record{Data: fmt.Append(nil, i)}); err != nil {
				t.Fatal(err)
			}
		}
		closed(t, p)
		records, containers := all(t, server)
		if len(records) != 200 || containers != 0 {
			t.Errorf("%d records, %d containers", len(records), containers)
		}
		if n := log.count("itself (AUTO)"); n != 1 {
			t.Errorf("%d lines say so", n)
		}
	})
}

// The producer notices from the answers that a stream has begun to distribute records by itself.
func TestAStreamBecomesAuto(t *testing.T) {
	for _, denied := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
			onDemandStream(t, server)
			p := newProducer(t, server, Options{})
			if denied {
				server.Control("DescribeStreamSummary", func(*kinesistest.Call) kinesistest.Fault {
					return kinesistest.Fault{Err: &kinesistest.Error{Code: "AccessDeniedException"}}
				})
			}
			put(t, p, "k", "first")
			flushed(t, p)
			becomeAuto(t, server)
			for i := range 2000 {
				put(t, p, fmt.Sprint("key", i%50), fmt.Sprint(i))
				time.Sleep(time.Millisecond)
			}
			closed(t, p)
			if c := p.Counts(); c.Stored != 2001 || c.Misplaced > 1500 {
				t.Errorf("%+v", c)
			}
			if got, _ := all(t, server); len(got) != 2001+int(p.Counts().Misplaced) {
				t.Errorf("the stream has %d records", len(got))
			}
		})
	}
}

// If another attempt cannot change an error, the records fail with its code. Rejected credentials
// are first tried several times.
func TestRefusedCalls(t *testing.T) {
	for code, calls := range map[string]int{"AccessDeniedException": 1, "ResourceNotFoundException": 1, "KMSDisabledException": 1, "ExpiredTokenException": 6} {
		inBubble(t, 1, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
			server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: code}}
			})
			one, two := put(t, p, "a", "1"), put(t, p, "b", "2")
			for _, pending := range []*Pending{one, two} {
				_, err := pending.Wait(t.Context())
				var failed *Error
				if !errors.Is(err, ErrRefused) || !errors.As(err, &failed) || failed.Code != code || failed.MaybeStored || failed.Attempts != calls {
					t.Errorf("%s: %+v", code, err)
				}
			}
			if n := server.Requests("PutRecords"); n != calls {
				t.Errorf("%s: %d calls", code, n)
			}
			server.Control("PutRecords", nil)
			if _, err := put(t, p, "a", "3").Wait(t.Context()); err != nil {
				t.Errorf("%s: after that: %v", code, err)
			}
		})
	}
}

// If the stream does not exist, a record fails without a wait for the listing of shards.
func TestNoStream(t *testing.T) {
	inBubble(t, 1, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		server.DeleteStream("s")
		began := time.Now()
		if _, err := put(t, p, "a", "1").Wait(t.Context()); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "ResourceNotFound") {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// If the service calls one record invalid, only that record fails.
func TestOneInvalidRecord(t *testing.T) {
	for _, plain := range []bool{false, true} {
		inBubble(t, 2, Options{NoAggregation: plain}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
			put(t, p, "k", "first")
			flushed(t, p)
			server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
				if brings(t, c, "poison!!!") {
					return kinesistest.Fault{Err: &kinesistest.Error{Code: "ValidationException"}}
				}
				return kinesistest.Fault{}
			})
			var pending []*Pending
			for i := range 60 {
				data := fmt.Sprintf("%09d", i)
				if i == 30 {
					data = "poison!!!"
				}
				pending = append(pending, put(t, p, fmt.Sprint("key", i), data))
			}
			closed(t, p)
			for i, pending := range pending {
				_, err := pending.Wait(context.Background())
				if (i == 30) != errors.Is(err, ErrRefused) || i != 30 && err != nil {
					t.Errorf("record %d: %v", i, err)
				}
			}
		})
	}
}
