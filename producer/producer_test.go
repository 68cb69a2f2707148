package producer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/kinesistest"
)

// quiet drops log lines.
var quiet = slog.New(slog.DiscardHandler)

// inBubble runs f in virtual time with a server that has a stream "s", and a producer for it.
func inBubble(t *testing.T, shards int, o Options, f func(t *testing.T, server *kinesistest.Server, p *Producer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		server.CreateStream("s", shards)
		f(t, server, newProducer(t, server, o))
	})
}

// newProducer makes a producer for the stream "s" that is closed at the end of the test.
func newProducer(t *testing.T, server *kinesistest.Server, o Options) *Producer {
	t.Helper()
	o.Stream = "s"
	if o.Logger == nil {
		o.Logger = quiet
	}
	p, err := New(server.Client(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Close(ctx) // most tests close it themselves
	})
	return p
}

func put(t *testing.T, p *Producer, key, data string) *Pending {
	t.Helper()
	pending, err := p.Put(t.Context(), Record{PartitionKey: key, Data: []byte(data)})
	if err != nil {
		t.Fatal(err)
	}
	return pending
}

func flushed(t *testing.T, p *Producer) {
	t.Helper()
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func closed(t *testing.T, p *Producer) {
	t.Helper()
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// storedRecord is a record that a consumer gets.
type storedRecord struct {
	shard, sequence, key, data string
	sub                        int
}

// all returns the records that unpacking consumers get from the stream, shard by shard.
func all(t *testing.T, server *kinesistest.Server) (records []storedRecord, containers int) {
	t.Helper()
	for _, r := range server.Records("s") {
		var a aggregate.Aggregate
		if packed, _ := a.Parse(r.Data); !packed {
			records = append(records, storedRecord{r.Shard, r.SequenceNumber, r.PartitionKey, string(r.Data), 0})
			continue
		}
		containers++
		for sub := range a.All() {
			records = append(records, storedRecord{r.Shard, r.SequenceNumber, sub.PartitionKey(), string(sub.Data()), int(sub.Sub())})
		}
	}
	return records, containers
}

// Each record has a result that says where it is.
func TestResultsSayWhereRecordsAre(t *testing.T) {
	for _, plain := range []bool{false, true} {
		inBubble(t, 4, Options{NoAggregation: plain}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
			var pending []*Pending
			for i := range 1000 {
				pending = append(pending, put(t, p, fmt.Sprint("key", i%37), fmt.Sprint(i)))
			}
			flushed(t, p)
			places := map[string]storedRecord{}
			records, containers := all(t, server)
			for _, r := range records {
				places[r.data] = r
			}
			if len(records) != 1000 || (containers > 0) == plain {
				t.Fatalf("the stream has %d records and %d containers", len(records), containers)
			}
			for i, pending := range pending {
				got, err := pending.Wait(t.Context())
				at := places[fmt.Sprint(i)]
				want := Result{Shard: at.shard, SequenceNumber: at.sequence, SubSequenceNumber: at.sub, Packed: !plain, Attempts: got.Attempts}
				if err != nil || got != want || got.Attempts < 1 {
					t.Fatalf("record %d: %+v, %v, want %+v", i, got, err, want)
				}
			}
			c := p.Counts()
			if c.Records != 1000 || c.Stored != 1000 || c.BufferedRecords != 0 || c.BufferedBytes != 0 || c.InFlight != 0 || c.Shards != 4 {
				t.Errorf("%+v", c)
			}
			closed(t, p)
		})
	}
}

// A record that is alone is not packed, and lingers no longer than Linger.
func TestOneRecord(t *testing.T) {
	inBubble(t, 2, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		began := time.Now()
		got, err := put(t, p, "k", "data").Wait(t.Context())
		if err != nil || got.Packed || got.Attempts != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		if took := time.Since(began); took < 50*time.Millisecond || took > 70*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if records, containers := all(t, server); len(records) != 1 || containers != 0 || records[0].key != "k" {
			t.Errorf("the stream has %v", records)
		}
	})
}

// Data that already are an aggregate are sent unchanged, and the records around them are packed.
func TestAggregatesAreNotPackedAgain(t *testing.T) {
	inBubble(t, 1, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		var b aggregate.Builder
		for _, key := range []string{"a", "b"} {
			if err := b.Add(key, "", []byte("inner")); err != nil {
				t.Fatal(err)
			}
		}
		container := b.AppendContainer(nil)
		put(t, p, "k", "1")
		put(t, p, "k", "2")
		put(t, p, "k", string(container))
		put(t, p, "k", "3")
		flushed(t, p)
		records, containers := all(t, server)
		var got []string
		for _, r := range records {
			got = append(got, r.key+r.data)
		}
		if want := []string{"k1", "k2", "ainner", "binner", "k3"}; !slices.Equal(got, want) || containers != 2 {
			t.Errorf("consumers get %q from %d containers, want %q", got, containers, want)
		}
	})
}

// Records keep their explicit hash keys, in containers and alone.
func TestExplicitHashKeys(t *testing.T) {
	inBubble(t, 2, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		const upper = "340282366920938463463374607431768211455"
		for _, hash := range []string{"0", upper, "0", upper, upper} {
			if _, err := p.Put(t.Context(), Record{PartitionKey: "k", ExplicitHashKey: hash, Data: []byte(hash)}); err != nil {
				t.Fatal(err)
			}
		}
		flushed(t, p)
		shards := map[string]string{"0": "shardId-000000000000", upper: "shardId-000000000001"}
		records, containers := all(t, server)
		for _, r := range records {
			if r.shard != shards[r.data] {
				t.Errorf("the hash key %s is in %s", r.data, r.shard)
			}
		}
		if len(records) != 5 || containers != 2 {
			t.Errorf("%d records, %d containers", len(records), containers)
		}
	})
}

func TestRecordsThatAreNotAccepted(t *testing.T) {
	inBubble(t, 1, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		put(t, p, "k", "first") // the stream is looked at
		flushed(t, p)
		for name, c := range map[string]struct {
			record Record
			want   error
			says   string
		}{
			"no key":              {Record{Data: []byte("x")}, ErrInvalid, "no partition key"},
			"a key that is long":  {Record{PartitionKey: strings.Repeat("é", 257)}, ErrInvalid, "257 characters"},
			"a key of bytes":      {Record{PartitionKey: "\xff"}, ErrInvalid, "UTF-8"},
			"a hash key":          {Record{PartitionKey: "k", ExplicitHashKey: "01"}, ErrInvalid, "hash key"},
			"a large record":      {Record{PartitionKey: "k", Data: make([]byte, 1<<20)}, ErrTooLarge, "1048577 bytes"},
			"a very large record": {Record{PartitionKey: "k", Data: make([]byte, 10<<20)}, ErrTooLarge, "10485761 bytes"},
		} {
			if _, err := p.Put(t.Context(), c.record); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: Put returns %v", name, err)
			}
			if _, err := p.TryPut(c.record); !errors.Is(err, c.want) {
				t.Errorf("%s: TryPut returns %v", name, err)
			}
		}
		// A key of 256 characters has up to 1,024 bytes.
		put(t, p, strings.Repeat("😀", 256), strings.Repeat("x", 1<<20-1024))
		flushed(t, p)
		closed(t, p)
		if _, err := p.Put(t.Context(), Record{PartitionKey: "k"}); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed producer returns %v", err)
		}
		if n := p.Counts().BufferedRecords; n != 0 {
			t.Errorf("%d records are held", n)
		}
	})
}

// Before the stream is described, its limits are unknown. Put accepts the record, which then fails.
func TestRecordsThatTheStreamDoesNotTake(t *testing.T) {
	inBubble(t, 1, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		server.Control("DescribeStreamSummary", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: 20 * time.Millisecond} })
		large := put(t, p, "k", strings.Repeat("x", 1<<20))
		keyless := put(t, p, "", "x")
		good := put(t, p, "k", "x")
		flushed(t, p)
		var failed *Error
		if _, err := large.Wait(t.Context()); !errors.Is(err, ErrTooLarge) || !errors.As(err, &failed) || failed.Attempts != 0 || failed.MaybeStored {
			t.Errorf("the large record: %v", err)
		}
		if _, err := keyless.Wait(t.Context()); !errors.Is(err, ErrInvalid) {
			t.Errorf("the record without a key: %v", err)
		}
		if _, err := good.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestOptionsErrorsNameTheField(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
	_, err := New(server.Client(), Options{MaxRecords: -1, MaxBytes: 1, MaxRequests: 1001, Linger: time.Hour, MaxAge: time.Millisecond})
	for _, field := range []string{"Stream", "MaxRecords", "MaxBytes", "MaxRequests", "Linger", "MaxAge"} {
		if err == nil || !strings.Contains(err.Error(), "Options."+field) {
			t.Errorf("no problem of %s: %v", field, err)
		}
	}
	if _, err := New(nil, Options{Stream: "a stream"}); err == nil || !strings.Contains(err.Error(), "client is nil") || !strings.Contains(err.Error(), "Options.Stream") {
		t.Errorf("%v", err)
	}
	if _, err := New(server.Client(), Options{Stream: "arn:aws:kinesis:mars-1:123456789012:stream/s"}); err == nil || !strings.Contains(err.Error(), "mars-1") {
		t.Errorf("%v", err)
	}
}

// Put waits for room, TryPut does not, and a context ends the wait.
func TestPutWaitsForRoom(t *testing.T) {
	inBubble(t, 1, Options{MaxRecords: 10}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		gate := make(chan struct{})
		server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault { <-gate; return kinesistest.Fault{} })
		for i := range 10 {
			put(t, p, "k", fmt.Sprint(i))
		}
		if _, err := p.TryPut(Record{PartitionKey: "k"}); !errors.Is(err, ErrFull) {
			t.Errorf("TryPut returns %v", err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		if _, err := p.Put(ctx, Record{PartitionKey: "k"}); err == nil || err.Error() != "enough" {
			t.Errorf("Put returns %v", err)
		}
		got := make(chan int, 3)
		for i := range 3 {
			go func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if _, err := p.Put(context.Background(), Record{PartitionKey: "k", Data: fmt.Append(nil, 10+i)}); err != nil {
					t.Error(err)
				}
				got <- i
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if c := p.Counts(); c.Blocked != 3 || c.BufferedRecords != 10 || c.InFlight == 0 {
			t.Errorf("%+v", c)
		}
		close(gate)
		for range 3 {
			<-got
		}
		flushed(t, p)
		records, _ := all(t, server)
		var order []string
		for _, r := range records {
			order = append(order, r.data)
		}
		if want := strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11 12"); !slices.Equal(order, want) {
			t.Errorf("the stream has %q", order)
		}
	})
}

// Calls of Put that still wait when the producer is closed fail with ErrClosed.
func TestCloseEndsWaitingPuts(t *testing.T) {
	inBubble(t, 1, Options{MaxRecords: 1}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: time.Second} })
		put(t, p, "k", "1")
		refused := make(chan error, 1)
		go func() {
			_, err := p.Put(context.Background(), Record{PartitionKey: "k"})
			refused <- err
		}()
		time.Sleep(100 * time.Millisecond)
		closed(t, p)
		if err := <-refused; !errors.Is(err, ErrClosed) {
			t.Errorf("Put returns %v", err)
		}
		if records, _ := all(t, server); len(records) != 1 || p.Counts().BufferedRecords != 0 {
			t.Errorf("the stream has %v", records)
		}
	})
}

// Close reports the remaining records, and each of them has its own error.
func TestCloseReportsWhatRemains(t *testing.T) {
	inBubble(t, 2, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		put(t, p, "first", "1")
		flushed(t, p)
		server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{After: func() { <-c.Context.Done() }} // stored, and no answer
		})
		inFlight := put(t, p, "k", "22")
		time.Sleep(200 * time.Millisecond)
		waiting := put(t, p, "k", "333")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := p.Close(ctx)
		var left *RemainingError
		if !errors.As(err, &left) || !errors.Is(err, ErrClosed) || left.Records != 2 || left.Bytes != 7 || left.MaybeStored != 1 {
			t.Errorf("Close returns %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v", took)
		}
		for pending, maybe := range map[*Pending]bool{inFlight: true, waiting: false} {
			_, err := pending.Wait(context.Background())
			var failed *Error
			if !errors.As(err, &failed) || !errors.Is(err, ErrClosed) || failed.MaybeStored != maybe {
				t.Errorf("%v, want one that says %v", err, maybe)
			}
		}
		if again := p.Close(t.Context()); !errors.As(again, &left) || left.Records != 2 {
			t.Errorf("Close returns %v the second time", again)
		}
	})
}

func TestCloseBeforePut(t *testing.T) {
	inBubble(t, 1, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		flushed(t, p)
		closed(t, p)
		closed(t, p)
		if n := server.Requests(""); n != 0 {
			t.Errorf("%d calls were made", n)
		}
	})
}

// Flush waits for the outcomes of earlier records, and not for those of later records.
func TestFlush(t *testing.T) {
	inBubble(t, 1, Options{Linger: time.Minute}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		began := time.Now()
		first := put(t, p, "k", "1")
		flushed(t, p)
		select {
		case <-first.Done():
		default:
			t.Error("the record has no outcome")
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		put(t, p, "k", "2")
		time.Sleep(30 * time.Second)
		if records, _ := all(t, server); len(records) != 1 {
			t.Errorf("the stream has %v", records)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Flush(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Flush returns %v", err)
		}
		flushed(t, p)
		closed(t, p)
	})
}

// The callbacks of a key run in order, a panic does not end the callbacks, and Flush and Close wait
// for them.
func TestCallbacks(t *testing.T) {
	inBubble(t, 3, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		order := map[string][]int{}
		for i := range 300 {
			key := fmt.Sprint(i % 7)
			_, err := p.Put(t.Context(), Record{PartitionKey: key, Data: []byte("x"), Done: func(r Result, err error) {
				if err != nil || r.Shard == "" || r.SequenceNumber == "" {
					t.Errorf("%+v, %v", r, err)
				}
				order[key] = append(order[key], i)
				if i%50 == 0 {
					panic("a bug in a callback")
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		flushed(t, p)
		total := 0
		for key, got := range order {
			total += len(got)
			if !slices.IsSorted(got) {
				t.Errorf("the callbacks of key %s came in the order %v", key, got)
			}
		}
		if total != 300 {
			t.Errorf("%d callbacks were made", total)
		}
		closed(t, p)
	})
}

// A callback that does not return delays Close only until its context has ended and grace is over.
func TestCloseLeavesACallbackBehind(t *testing.T) {
	inBubble(t, 1, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		blocked := make(chan struct{})
		if _, err := p.Put(t.Context(), Record{PartitionKey: "k", Done: func(Result, error) { <-blocked }}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); !errors.Is(err, ErrAbandoned) {
			t.Errorf("Close returns %v", err)
		}
		close(blocked)
		closed(t, p)
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	inBubble(t, 1, Options{Linger: time.Minute}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		pending := put(t, p, "k", "x")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := pending.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait returns %v", err)
		}
		flushed(t, p)
		if _, err := pending.Wait(ctx); err != nil { // the outcome is there, although ctx has ended
			t.Error(err)
		}
	})
}

func TestMaxAge(t *testing.T) {
	inBubble(t, 1, Options{MaxAge: time.Second}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		put(t, p, "k", "1")
		flushed(t, p)
		server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{PartialFailure: func(int) string { return "ProvisionedThroughputExceededException" }}
		})
		began := time.Now()
		_, err := put(t, p, "k", "2").Wait(t.Context())
		var failed *Error
		if !errors.Is(err, ErrExpired) || !errors.As(err, &failed) || failed.Attempts == 0 || failed.MaybeStored || failed.Code == "" {
			t.Errorf("%+v", err)
		}
		if took := time.Since(began); took < time.Second || took > 2*time.Second {
			t.Errorf("it expired after %v", took)
		}
		server.Control("PutRecords", nil)
		if _, err := put(t, p, "k", "3").Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
