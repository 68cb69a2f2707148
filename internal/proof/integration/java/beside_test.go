package java_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/producer"
)

// besideCase is a load that each kind of producer puts on a shard of its own.
type besideCase struct {
	name            string
	producers, keys int // keys of each producer
	warm, measured  time.Duration
}

// account is the AWS account of the servers that KPLs use.
const account = "123456789012"

const recordSize = 1000

// loader puts records until ctx ends.
type loader func(ctx context.Context, t *testing.T, srv *kinesistest.Server, stream string, c besideCase)

// beside has the kinds of producers, in the order of the table.
var beside = []struct {
	name string
	load loader
}{{"weir", loadWeir}, {"KPL", loadKPL}, {"SDK loop", loadSDK}}

// weir's producer, KPLs and loops of the SDK use the limits of a shard with a round trip of 20 ms,
// one after the other. The test prints how they do it, and checks weir. It does not check how equal
// the shares are, because equal shares need ten minutes; TestProducersShareAShard does.
func TestProducersBesideEachOther(t *testing.T) {
	longform.Only(t)
	var table strings.Builder
	for _, c := range []besideCase{
		{"one producer with 1 key", 1, 1, 15 * time.Second, 20 * time.Second},
		{"one producer with 10,000 keys", 1, 10_000, 15 * time.Second, 20 * time.Second},
		{"eight producers with 100 keys", 8, 100, 30 * time.Second, 120 * time.Second},
	} {
		for _, kind := range beside {
			t.Run(c.name+"/"+kind.name, func(t *testing.T) {
				m := puts(t, kind.load, c)
				fmt.Fprintf(&table, "\n%-30s %-8s %6.1f %8.2f %8.0f %8d",
					c.name, kind.name, 100*m.used, 100*m.refused, 100*m.off, m.inversions)
				if kind.name == "weir" && (m.used < 0.95 || m.inversions > 0 || m.refused > 0.02) {
					t.Errorf("%+v", m)
				}
			})
		}
	}
	t.Log("percent of 1 MiB/s; of the stream records refused; of the mean that one producer differs; records out of order" + table.String())
}

// puts runs a load on a shard.
func puts(t *testing.T, load loader, c besideCase) measurement {
	srv := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, TLS: true, Account: account})
	srv.CreateStream("s", 1)
	var entries atomic.Int64
	srv.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
		entries.Add(int64(c.Records))
		return kinesistest.Fault{Delay: 20 * time.Millisecond}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var loads sync.WaitGroup
	loads.Go(func() { load(ctx, t, srv, "s", c) })
	for len(srv.Records("s")) == 0 && t.Context().Err() == nil {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(c.warm)
	from, before := time.Now(), entries.Load()
	time.Sleep(c.measured)
	until, after := time.Now(), entries.Load()
	cancel()
	loads.Wait()
	m := measure(t, srv, "s", from, until, c)
	m.refused = max(0, 1-float64(m.stored)/float64(after-before))
	return m
}

// measurement describes a stream during a time.
type measurement struct {
	used       float64 // part of 1 MiB/s, in bytes of the stream's records
	refused    float64 // part of the entries
	off        float64 // largest distance of a producer from the mean
	stored     int     // stream records
	inversions int     // records that follow a newer record of their key, in the whole stream
}

// measure reads the records of a stream that arrived between two times.
func measure(t *testing.T, srv *kinesistest.Server, stream string, from, until time.Time, c besideCase) (m measurement) {
	t.Helper()
	of := make([]float64, c.producers)
	last := map[string]int{}
	var bytes int
	var agg aggregate.Aggregate
	take := func(key, data string, in bool) {
		f := strings.Fields(data)
		number, err := strconv.Atoi(f[1])
		if err != nil {
			t.Fatal(err)
		}
		if before, any := last[key]; any && number < before {
			m.inversions++
		}
		last[key] = max(last[key], number)
		if in {
			who, _ := strconv.Atoi(f[0])
			of[who]++
		}
	}
	for _, r := range srv.Records(stream) {
		in := r.Arrival.After(from) && r.Arrival.Before(until)
		if in {
			m.stored++
			bytes += len(r.Data) + len(r.PartitionKey)
		}
		if is, _ := agg.Parse(r.Data); !is {
			take(r.PartitionKey, string(r.Data), in)
			continue
		}
		for u := range agg.All() {
			take(u.PartitionKey(), string(u.Data()), in)
		}
	}
	m.used = float64(bytes) / until.Sub(from).Seconds() / (1 << 20)
	total := 0.0
	for _, n := range of {
		total += n
	}
	mean := total / float64(c.producers)
	m.off = max(slices.Max(of)/mean-1, 1-slices.Min(of)/mean)
	return m
}

// recordOf returns record i of a producer.
func recordOf(who, i, keys int) (key string, data []byte) {
	data = bytes.Repeat([]byte(" "), recordSize)
	copy(data, fmt.Sprint(who, " ", i))
	return fmt.Sprintf("%d-%d", who, i%keys), data
}

func loadWeir(ctx context.Context, t *testing.T, srv *kinesistest.Server, stream string, c besideCase) {
	var all sync.WaitGroup
	for who := range c.producers {
		p, err := producer.New(srv.Client(), producer.Options{Stream: stream, MaxRecords: 3000, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Error(err)
			return
		}
		all.Go(func() {
			for i := 0; err == nil; i++ {
				key, data := recordOf(who, i, c.keys)
				_, err = p.Put(ctx, producer.Record{PartitionKey: key, Data: data})
			}
			_ = p.Close(ctx) // the remaining records do not count
		})
	}
	all.Wait()
}

// loadSDK puts 500 records per request. It sends refused records again with the next request, after
// a pause.
func loadSDK(ctx context.Context, t *testing.T, srv *kinesistest.Server, stream string, c besideCase) {
	var all sync.WaitGroup
	for who := range c.producers {
		client := srv.Client()
		all.Go(func() {
			var again []types.PutRecordsRequestEntry
			for i := 0; ctx.Err() == nil; {
				in := &kinesis.PutRecordsInput{StreamName: &stream, Records: again}
				for ; len(in.Records) < 500; i++ {
					key, data := recordOf(who, i, c.keys)
					in.Records = append(in.Records, types.PutRecordsRequestEntry{PartitionKey: &key, Data: data})
				}
				out, err := client.PutRecords(ctx, in)
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				again = nil
				for j, r := range out.Records {
					if r.ErrorCode != nil {
						again = append(again, in.Records[j])
					}
				}
				if aws.ToInt32(out.FailedRecordCount) > 0 {
					time.Sleep(50*time.Millisecond + rand.N(100*time.Millisecond))
				}
			}
		})
	}
	all.Wait()
}

func loadKPL(ctx context.Context, t *testing.T, srv *kinesistest.Server, stream string, c besideCase) {
	_, port, err := net.SplitHostPort(srv.Addr())
	if err != nil {
		t.Error(err)
		return
	}
	cmd := servers.Java(t, srv.CACertPEM(), "KplLoad", port, sts(t, account), stream,
		strconv.Itoa(c.producers), strconv.Itoa(c.keys), strconv.Itoa(recordSize), t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Error(err)
		return
	}
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	<-ctx.Done()
	_ = in.Close() // ends the process
	if err := cmd.Wait(); err != nil {
		t.Errorf("the KPL: %v, %.2000s", err, problems.String())
	}
	if lost := strings.Count(out.String(), "L"); lost > 0 {
		t.Logf("the KPL gave up %d records", lost)
	}
}
