package promweir_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/promweir"
	"github.com/weir-go/weir/store/memstore"
)

// watched runs a consumer with metrics in a bubble, and calls f at the same time.
func watched(t *testing.T, shards int, config promweir.Config, options weir.Options, h weir.HandlerFunc, f func(srv *kinesistest.Server, m *promweir.Metrics, stop func())) {
	t.Helper()
	watchedWith(t, shards, func(*kinesistest.Server) {}, config, options, h, f)
}

// watchedWith is like watched, and calls fill before the worker starts.
func watchedWith(t *testing.T, shards int, fill func(*kinesistest.Server), config promweir.Config, options weir.Options, h weir.HandlerFunc, f func(srv *kinesistest.Server, m *promweir.Metrics, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", shards)
		fill(srv)
		options.App, options.Streams, options.Worker, options.Logger = "a", []string{"s"}, "w1", slog.New(slog.DiscardHandler)
		m := promweir.New(&options, config)
		c, err := weir.New(srv.Client(), memstore.New(), options)
		if err != nil {
			t.Fatal(err)
		}
		m.Watch(c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, h) }()
		ended := false
		stop := func() {
			if ended {
				return
			}
			ended = true
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		defer stop()
		f(srv, m, stop)
	})
}

// scrape returns the samples of a scrape by name and labels.
func scrape(t *testing.T, m *promweir.Metrics) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	promweir.Handler(m).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	all := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
		if err != nil {
			t.Fatal(err)
		}
		all[line[:i]] = v
	}
	return all
}

// expect fails the test for each sample whose value is not the wanted one.
func expect(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if v, some := got[name]; !some || v != want[name] {
			t.Errorf("%s is %v (there: %v), want %v", name, v, some, want[name])
		}
	}
}

func nothing(context.Context, *weir.Batch) error { return nil }

func TestWhatIsHandledIsCounted(t *testing.T) {
	watched(t, 2, promweir.Config{ShardLabel: true, Version: "v1"}, weir.Options{}, nothing, func(srv *kinesistest.Server, m *promweir.Metrics, stop func()) {
		for i := range 100 {
			srv.Put("s", fmt.Sprint(i), []byte("four"))
		}
		time.Sleep(20 * time.Second)
		got := scrape(t, m)
		expect(t, got, map[string]float64{
			`weir_handled_records_total{app="a",stream="s"}`: 100, `weir_handled_bytes_total{app="a",stream="s"}`: 400, `weir_read_records_total{app="a",stream="s"}`: 100,
			`weir_leases{app="a",stream="s"}`: 2, `weir_lease_changes_total{app="a",reason="taken",stream="s"}`: 2, `weir_leader{app="a"}`: 1, `weir_build_info{app="a",version="v1",worker="w1"}`: 1,
			`weir_lag_seconds{app="a",shard="shardId-000000000000",stream="s"}`: 0, `weir_handled_lag_seconds{app="a",shard="shardId-000000000001",stream="s"}`: 0,
			`weir_checkpoint_lag_seconds{app="a",shard="shardId-000000000001",stream="s"}`: 0, `weir_events_dropped_total{app="a"}`: 0,
			`weir_shard_state{app="a",shard="shardId-000000000000",state="ok",stream="s"}`: 1,
			`weir_dead_lettered_records_total{app="a",reason="attempts",stream="s"}`:       0, `weir_handler_failures_total{app="a",stream="s"}`: 0,
		})
		if n := got[`weir_handler_duration_seconds_count{app="a",stream="s"}`]; n < 2 {
			t.Errorf("%v batches", n)
		}
		if age := float64(time.Now().UnixMilli())/1000 - got[`weir_store_up_timestamp_seconds{app="a"}`]; age < 0 || age > 3 {
			t.Errorf("the store answered %v s ago", age)
		}
		stop()
		expect(t, scrape(t, m), map[string]float64{
			`weir_leases{app="a",stream="s"}`: 0, `weir_lease_changes_total{app="a",reason="stopped",stream="s"}`: 2, `weir_leader{app="a"}`: 0, `weir_store_up_timestamp_seconds{app="a"}`: 0,
		})
	})
}

// The series of a shard ends with its lease, no matter how often the stream is resharded.
func TestSeriesOfAShardEndWithItsLease(t *testing.T) {
	watched(t, 1, promweir.Config{ShardLabel: true}, weir.Options{}, nothing, func(srv *kinesistest.Server, m *promweir.Metrics, stop func()) {
		time.Sleep(10 * time.Second)
		for range 3 {
			srv.Split("s", srv.OpenShards("s")[0])
			time.Sleep(2 * time.Minute)
		}
		var shards []string
		for name := range scrape(t, m) {
			if strings.HasPrefix(name, "weir_lag_seconds{") {
				shards = append(shards, name)
			}
		}
		if open := srv.OpenShards("s"); len(shards) != len(open) || len(open) != 4 {
			t.Errorf("series of %v, and %v are open", shards, open)
		}
		expect(t, scrape(t, m), map[string]float64{`weir_lease_changes_total{app="a",reason="finished",stream="s"}`: 3})
	})
}

// The lag of reading is at the end of an answer. The lags are known even if a slow handler delays
// the end of a large answer.
func TestLagsOfASlowHandlerAreKnownDuringTheFirstLargeAnswer(t *testing.T) {
	h := func(ctx context.Context, b *weir.Batch) error {
		<-ctx.Done()
		return ctx.Err()
	}
	fill := func(srv *kinesistest.Server) {
		for i := range 40 {
			srv.Put("s", fmt.Sprint(i), make([]byte, 200_000))
		}
	}
	watchedWith(t, 1, fill, promweir.Config{}, weir.Options{}, h, func(_ *kinesistest.Server, m *promweir.Metrics, _ func()) {
		time.Sleep(10 * time.Minute)
		got := scrape(t, m)
		for _, name := range []string{"weir_lag_seconds", "weir_handled_lag_seconds", "weir_checkpoint_lag_seconds"} {
			if lag, known := got[name+`{app="a",stream="s"}`]; !known || lag < 590 || lag > 610 {
				t.Errorf("%s is %v, and known is %v", name, lag, known)
			}
		}
	})
}

func TestWithoutTheLabelAStreamHasItsWorstShard(t *testing.T) {
	h := func(ctx context.Context, b *weir.Batch) error {
		if string(b.Records[0].Data) == "stuck" {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	watched(t, 4, promweir.Config{}, weir.Options{}, h, func(srv *kinesistest.Server, m *promweir.Metrics, stop func()) {
		time.Sleep(10 * time.Second)
		srv.Put("s", "k", []byte("stuck"))
		time.Sleep(time.Minute)
		got := scrape(t, m)
		if lag := got[`weir_handled_lag_seconds{app="a",stream="s"}`]; lag < 55 || lag > 65 {
			t.Errorf("a record has waited for a minute, and the lag of what is handled is %v s", lag)
		}
		if lag := got[`weir_checkpoint_lag_seconds{app="a",stream="s"}`]; lag < 55 || lag > 65 {
			t.Errorf("the lag of what is saved is %v s", lag)
		}
		for range 6 { // the state is known only after several scrapes
			time.Sleep(30 * time.Second)
			got = scrape(t, m)
		}
		expect(t, got, map[string]float64{`weir_shard_state{app="a",state="stalled",stream="s"}`: 1})
		for name := range got {
			if strings.Contains(name, "shardId-") {
				t.Errorf("%s names a shard", name)
			}
		}
		stop()
	})
}

func TestFailuresAreCounted(t *testing.T) {
	h := func(context.Context, *weir.Batch) error { return errors.New("no") }
	watched(t, 1, promweir.Config{}, weir.Options{Retry: weir.Retry{MaxBackoff: time.Second}}, h, func(srv *kinesistest.Server, m *promweir.Metrics, stop func()) {
		srv.Put("s", "k", []byte("x"))
		time.Sleep(time.Minute)
		got := scrape(t, m)
		if n := got[`weir_handler_failures_total{app="a",stream="s"}`]; n < 30 {
			t.Errorf("%v failures", n)
		}
		expect(t, got, map[string]float64{`weir_handled_records_total{app="a",stream="s"}`: 0})
	})
}

// The program's own function still gets all events.
func TestEventsOfTheProgramAreCalledToo(t *testing.T) {
	var taken, handled, begun int
	options := weir.Options{OnEvent: event.Join(
		event.On(func(context.Context, event.LeaseTaken) { taken++ }),
		event.On(func(context.Context, event.BatchHandled) { handled++ }),
		// The metrics do not use this event.
		event.On(func(context.Context, event.BatchBegins) { begun++ }),
	)}
	watched(t, 1, promweir.Config{}, options, nothing, func(srv *kinesistest.Server, _ *promweir.Metrics, stop func()) {
		srv.Put("s", "k", []byte("x"))
		time.Sleep(10 * time.Second)
		stop()
	})
	if taken != 1 || handled != 1 || begun != 1 {
		t.Errorf("%d, %d and %d calls", taken, handled, begun)
	}
}

func TestOneRegistryTakesConsumersOfSeveralApplications(t *testing.T) {
	registry := prometheus.NewRegistry()
	for _, app := range []string{"a", "b"} {
		if err := registry.Register(promweir.New(&weir.Options{App: app}, promweir.Config{})); err != nil {
			t.Errorf("%s: %v", app, err)
		}
	}
	if err := registry.Register(promweir.New(&weir.Options{App: "a"}, promweir.Config{})); err == nil {
		t.Error("two have the same names and labels")
	}
}

func TestMetricsAreNamedAsPrometheusAdvises(t *testing.T) {
	watched(t, 1, promweir.Config{ShardLabel: true}, weir.Options{}, nothing, func(srv *kinesistest.Server, m *promweir.Metrics, stop func()) {
		srv.Put("s", "k", []byte("x"))
		time.Sleep(10 * time.Second)
		problems, err := testutil.CollectAndLint(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	})
}

func TestTheHandlerIsForReadingAndAnswersToNoNamesOverLoopback(t *testing.T) {
	server := httptest.NewServer(promweir.Handler(promweir.New(&weir.Options{App: "a"}, promweir.Config{})))
	defer server.Close()
	for _, c := range []struct {
		method, host string
		want         int
	}{
		{http.MethodGet, "", http.StatusOK}, {http.MethodHead, "", http.StatusOK}, {http.MethodGet, "localhost:1", http.StatusOK},
		{http.MethodGet, "rebound.example", http.StatusForbidden}, {http.MethodPost, "", http.StatusMethodNotAllowed},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %q: %d, want %d", c.method, c.host, resp.StatusCode, c.want)
		}
	}
}

// weir_build_info contains the worker's name even if Options.Worker is empty.
func TestTheDefaultWorkerIsNamed(t *testing.T) {
	t.Parallel()
	options := weir.Options{App: "a"}
	m := promweir.New(&options, promweir.Config{Version: "v1"})
	if options.Worker == "" {
		t.Error("Options.Worker is empty")
	}
	expect(t, scrape(t, m), map[string]float64{`weir_build_info{app="a",version="v1",worker="` + options.Worker + `"}`: 1})
}
