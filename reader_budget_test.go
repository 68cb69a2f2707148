package weir_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
)

// receiving returns a client of srv, and the number of bytes that the client has received.
func receiving(t *testing.T, srv *kinesistest.Server) (*kinesis.Client, *atomic.Int64) {
	t.Helper()
	received := new(atomic.Int64)
	transport := srv.Transport()
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		return receivingConn{c, received}, err
	}
	t.Cleanup(transport.CloseIdleConnections)
	return srv.Client(func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: transport} }), received
}

type receivingConn struct {
	net.Conn
	n *atomic.Int64
}

func (c receivingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// behind puts large records of the given number and size, and some small ones, into each shard of
// "s".
func behind(srv *kinesistest.Server, records, size int) {
	open := srv.OpenShards("s")
	keys := map[string]string{}
	for i := 0; len(keys) < len(open); i++ {
		key := fmt.Sprint("k", i)
		id, _ := srv.Put("s", key, nil)
		keys[id] = key
	}
	data := bytes.Repeat([]byte{'x'}, size)
	for _, key := range keys {
		for range records {
			srv.Put("s", key, data)
		}
	}
}

func reader(t *testing.T, client *kinesis.Client, opts weir.ReaderOptions) *weir.Reader {
	t.Helper()
	opts.Stream, opts.Logger = "s", quiet
	r, err := weir.NewReader(client, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The Reader reads no more than the memory allows, although many shards are behind and the loop is
// slow. It still yields all records.
func TestReaderKeepsToItsMemory(t *testing.T) {
	const (
		shards = 32
		size   = 1000
		most   = 16 << 20
		slack  = shards * 128 << 10 // data in connections that no budget has room for
	)
	bubbleWith(t, kinesistest.Config{NoLimits: true}, shards, func(t *testing.T, srv *kinesistest.Server) {
		behind(srv, 3000, size)
		all := len(srv.Records("s"))
		client, received := receiving(t, srv)
		batches, bytes := weir.Counted(t.Context(), reader(t, client, weir.ReaderOptions{UntilTip: true, MaxMemory: most}))
		records, highest := 0, 0
		for b, err := range batches {
			if err != nil {
				t.Fatal(err)
			}
			records += len(b.Records)
			if records == len(b.Records) { // the first
				time.Sleep(5 * time.Minute)
				if n := received.Load(); n > most+slack {
					t.Errorf("%d bytes were received while the first batch was handled", n)
				}
				if n := bytes(); n < most/4 {
					t.Errorf("only %d bytes are read ahead", n)
				}
			}
			highest = max(highest, bytes())
		}
		if records != all {
			t.Errorf("%d of %d records", records, all)
		}
		if highest > most {
			t.Errorf("%d bytes were in memory", highest)
		}
		if n := bytes(); n != 0 {
			t.Errorf("%d bytes are in memory in the end", n)
		}
	})
}

// A record that is larger than a shard's guaranteed share must wait for memory. The wait must not
// block the loop, because the loop frees memory.
func TestReaderReadsRecordsLargerThanAShare(t *testing.T) {
	const shards, each = 48, 3 // of 16 MiB each is sure of 170 KiB
	bubbleWith(t, kinesistest.Config{NoLimits: true}, shards, func(t *testing.T, srv *kinesistest.Server) {
		behind(srv, each, 1<<20-10)
		all := len(srv.Records("s"))
		batches, bytes := weir.Counted(t.Context(), reader(t, srv.Client(), weir.ReaderOptions{UntilTip: true, MaxMemory: 16 << 20}))
		records := 0
		for b, err := range batches {
			if err != nil {
				t.Fatal(err)
			}
			records += len(b.Records)
			if n := bytes(); n > 16<<20+1<<20+1<<19 { // and one record more, with what is around it
				t.Errorf("%d bytes are in memory", n)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if records != all {
			t.Errorf("%d of %d records", records, all)
		}
	})
}

// The Reader yields from shards that are behind in turn, however many records each shard has.
func TestReaderTakesShardsInTurn(t *testing.T) {
	const shards = 4
	bubbleWith(t, kinesistest.Config{NoLimits: true}, shards, func(t *testing.T, srv *kinesistest.Server) {
		behind(srv, 6000, 1000)
		var order []string
		for b, err := range reader(t, srv.Client(), weir.ReaderOptions{}).Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second) // in which every shard reads on
			if order = append(order, b.Shard); len(order) == 6*shards {
				break
			}
		}
		for i := shards; i+shards <= len(order); i += shards {
			if turn := slices.Compact(slices.Sorted(slices.Values(order[i : i+shards]))); len(turn) != shards {
				t.Errorf("batches %d to %d are of %d shards, want %d: %q", i, i+shards, len(turn), shards, order)
				break
			}
		}
	})
}

// reads returns the number of goroutines that read shards. It does not count goroutines of the
// server, or goroutines that are about to end.
func reads() (n int) {
	synctest.Wait()
	stacks := make([]byte, 64<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "weir/internal/polling.") || strings.Contains(stack, "weir/internal/follow.") {
			n++
		}
	}
	return n
}

// A polled shard without new records has no goroutine. Records that arrive later are still yielded.
func TestReaderHasNoGoroutineForAnIdleShard(t *testing.T) {
	const shards = 1000
	bubble(t, shards, func(t *testing.T, srv *kinesistest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for rec, err := range reader(t, srv.Client(), weir.ReaderOptions{Polling: weir.Polling{IdleInterval: 10 * time.Second}}).Records(ctx) {
				if err == nil {
					got = append(got, string(rec.Data))
				}
			}
		}()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := reads(); n > 100 || n < 2 {
			t.Errorf("%d goroutines read %d shards", n, shards)
		}
		for i := range 5 {
			srv.Put("s", fmt.Sprint(i), []byte{byte('0' + i)})
			time.Sleep(12 * time.Second)
		}
		cancel()
		<-ended
		if !slices.Equal(got, []string{"0", "1", "2", "3", "4"}) {
			t.Errorf("got %q", got)
		}
		if n := reads(); n != 0 {
			t.Errorf("%d goroutines are left", n)
		}
	})
}

// If the loop over the batches is left or panics in the middle of a read, the Reader keeps no
// memory and no goroutine, and makes no further calls.
func TestReaderThatIsLeftLeavesNothing(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		for name, end := range map[string]func(){"left": func() {}, "panics": func() { panic("in the loop") }} {
			t.Run(reading.String()+", "+name, func(t *testing.T) {
				bubbleWith(t, kinesistest.Config{NoLimits: true}, 16, func(t *testing.T, srv *kinesistest.Server) {
					behind(srv, 2000, 1000)
					opts := weir.ReaderOptions{MaxMemory: 16 << 20, FanOut: weir.FanOut{Mode: reading}}
					if reading == weir.FanOutRegister {
						opts.FanOut = weir.FanOut{Mode: weir.FanOutTemporary, Name: "me"}
					}
					batches, bytes := weir.Counted(t.Context(), reader(t, srv.Client(), opts))
					func() {
						defer func() { _ = recover() }()
						n := 0
						for _, err := range batches {
							if err != nil {
								t.Fatal(err)
							}
							if n++; n == 3 {
								time.Sleep(5 * time.Second)
								end()
								break
							}
						}
					}()
					if n := bytes(); n != 0 {
						t.Errorf("%d bytes are in memory", n)
					}
					before := srv.Requests("GetRecords") + srv.Requests("SubscribeToShard")
					if n := reads(); n != 0 {
						t.Errorf("%d goroutines are left", n)
					}
					time.Sleep(time.Minute)
					if n := srv.Requests("GetRecords") + srv.Requests("SubscribeToShard") - before; n != 0 {
						t.Errorf("%d more reads", n)
					}
				})
			})
		}
	}
}
