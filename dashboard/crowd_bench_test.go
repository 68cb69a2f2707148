//go:build unix

package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// slowStore takes as long to read 2,000 leases as DynamoDB takes.
type slowStore struct{ *memstore.Store }

func (s slowStore) View(ctx context.Context, app, known string) (lease.View, error) {
	time.Sleep(500 * time.Millisecond)
	return s.Store.View(ctx, app, known)
}

const (
	crowdShards  = 2000
	crowdClients = 9
	crowdPoll    = 2 * time.Second
	crowdLags    = 5 * time.Second // for one query of all lags
	crowdTime    = 30 * time.Second
)

// crowdStore returns a store with 2,000 shards, 20 workers and three hours of history.
func crowdStore(b *testing.B) *memstore.Store {
	b.Helper()
	ctx, store := b.Context(), memstore.New()
	var create, assign []lease.Action
	for i := range crowdShards {
		const part = ^uint64(0) / crowdShards
		r := shard.HashRange{Start: shard.HashKey{Hi: uint64(i) * part}, End: shard.HashKey{Hi: uint64(i+1)*part - 1, Lo: ^uint64(0)}}
		if i == crowdShards-1 {
			r.End = shard.MaxHashKey
		}
		key := lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)}
		create = append(create, lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: key, Range: r, Epoch: 1, Position: shard.Oldest}})
		assign = append(assign, lease.Action{Kind: lease.Assign, Key: key, Epoch: 1, Session: fmt.Sprint("s", i%20)})
	}
	if _, err := store.Apply(ctx, "billing", create); err != nil {
		b.Fatal(err)
	}
	for i := range 20 {
		crowdBeat(b, store, i, true)
	}
	if _, err := store.Apply(ctx, "billing", assign); err != nil {
		b.Fatal(err)
	}
	writers := make([]*history.Writer, 20)
	for i := range writers {
		writers[i] = history.NewWriter(100_000, fmt.Sprint("worker-", i))
	}
	now := time.Now().Unix() / 60
	for minute := now - 179; minute < now; minute++ {
		for w := range writers {
			var samples []history.Sample
			for i := w; i < crowdShards; i += 20 {
				samples = append(samples, history.Sample{Key: create[i].Lease.Key, Minute: minute, Lag: time.Duration(i%7) * 5 * time.Second, Age: time.Minute, Busy: i % 100})
			}
			since, data := writers[w].Add(minute, samples)
			if err := store.PutHistory(ctx, "billing", lease.HistoryChunk{Session: fmt.Sprint("s", w), Since: since, Data: data}); err != nil {
				b.Fatal(err)
			}
		}
	}
	return store
}

func crowdBeat(b *testing.B, store lease.Store, i int, first bool) {
	b.Helper()
	if _, err := store.Heartbeat(b.Context(), "billing", lease.Report{Session: fmt.Sprint("s", i), Name: fmt.Sprint("worker-", i), First: first}); err != nil {
		b.Error(err)
	}
}

// fetched is the duration until the first byte and until the end of an answer.
type fetched struct {
	first, whole time.Duration
	bytes        int64
	tag          string
}

func fetchPage(b *testing.B, url, tag string) (f fetched) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Error(err)
		return f
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Accept-Encoding", "gzip")
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Error(err)
		return f
	}
	defer resp.Body.Close()
	var one [1]byte
	n, _ := io.ReadFull(resp.Body, one[:])
	f.first = time.Since(began)
	rest, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		b.Error(err)
	}
	f.whole, f.bytes, f.tag = time.Since(began), rest+int64(n), resp.Header.Get("ETag")
	return f
}

// crowdFetch fetches a page with all clients at a time, and returns the medians.
func crowdFetch(b *testing.B, url string) (first, whole time.Duration) {
	var all [crowdClients]fetched
	var clients sync.WaitGroup
	for i := range all {
		clients.Go(func() { all[i] = fetchPage(b, url, "") })
	}
	clients.Wait()
	slices.SortFunc(all[:], func(x, y fetched) int { return int(x.first - y.first) })
	first = all[crowdClients/2].first
	slices.SortFunc(all[:], func(x, y fetched) int { return int(x.whole - y.whole) })
	return first, all[crowdClients/2].whole
}

// BenchmarkNineClientsAndTwoThousandShards prints the time until the first byte and until the
// complete page, cold and warm, and what nine clients cost that poll the page.
func BenchmarkNineClientsAndTwoThousandShards(b *testing.B) {
	store := crowdStore(b)
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = crowdClients
	for b.Loop() {
		page := dashboard.Handler(slowStore{store}, dashboard.Options{
			Lags: func(_ context.Context, leases []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
				time.Sleep(crowdLags)
				all := map[lease.Key]dashboard.Lag{}
				for i, l := range leases {
					all[l.Key] = dashboard.Lag{Behind: time.Duration(i%7) * 5 * time.Second}
				}
				return all, nil
			},
		})
		server := httptest.NewServer(page)
		url := server.URL + "/app?app=billing"
		first, whole := crowdFetch(b, url)
		b.ReportMetric(float64(first.Milliseconds()), "ms-first-cold")
		b.ReportMetric(float64(whole.Milliseconds()), "ms-whole-cold")
		first, whole = crowdFetch(b, url)
		b.ReportMetric(float64(first.Milliseconds()), "ms-first-warm")
		b.ReportMetric(float64(whole.Milliseconds()), "ms-whole-warm")

		var sent atomic.Int64
		var clients sync.WaitGroup
		cpu, end := cpuTime(b), time.Now().Add(crowdTime)
		clients.Go(func() {
			for time.Now().Before(end) {
				for i := range 20 {
					crowdBeat(b, store, i, false)
				}
				time.Sleep(time.Second)
			}
		})
		for range crowdClients {
			clients.Go(func() {
				tag := ""
				for time.Now().Before(end) {
					f := fetchPage(b, url+"&part=1", tag)
					tag = f.tag
					sent.Add(f.bytes)
					time.Sleep(crowdPoll)
				}
			})
		}
		clients.Wait()
		minutes := crowdTime.Minutes()
		b.ReportMetric(float64(sent.Load())/1000/minutes, "KB/min")
		b.ReportMetric(float64((cpuTime(b)-cpu).Milliseconds())/minutes, "cpu-ms/min")
		server.Close()
	}
}

// cpuTime returns the processor time of this process.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
