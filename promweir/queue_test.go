package promweir_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/promweir"
	"github.com/weir-go/weir/queue"
)

func TestMetricsOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateOnDemandStream("s")
		srv.CreateQueue(kinesistest.Queue{Stream: "s", Name: "orders", MaxReceiveCount: 50})
		for i := range 20 {
			srv.Put("s", fmt.Sprint(i), fmt.Append(nil, i))
		}
		o := queue.Options{
			Queue: "orders", App: "billing", Logger: slog.New(slog.DiscardHandler),
			OnFailure: queue.FailurePolicy{Destination: deadletter.Func(func(context.Context, []deadletter.Letter) error { return nil })},
		}
		own := 0
		o.Events.Handled = func(context.Context, queue.Handled) { own++ }
		m := promweir.NewQueue(&o)
		c, err := queue.New(srv.AWSConfig(), o)
		if err != nil {
			t.Fatal(err)
		}
		m.Watch(c)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- c.Run(ctx, queue.RecordFunc(func(_ context.Context, r queue.Record) error {
				if string(r.Data) == "7" {
					return weir.Reject(errors.New("no"))
				}
				return nil
			}))
		}()
		time.Sleep(90 * time.Second)
		const labels = `{app="billing",queue="orders"} `
		want := ""
		for _, line := range []string{
			"# HELP weir_queue_acknowledged_records_total Deliveries that were acknowledged.", "# TYPE weir_queue_acknowledged_records_total counter",
			"weir_queue_acknowledged_records_total" + labels + "20",
			"# HELP weir_queue_handled_records_total Records handled. Those of an aggregate count one by one.", "# TYPE weir_queue_handled_records_total counter",
			"weir_queue_handled_records_total" + labels + "19",
			"# HELP weir_queue_ready Whether the consumer receives records: 1 or 0.", "# TYPE weir_queue_ready gauge", "weir_queue_ready" + labels + "1",
			"# HELP weir_queue_set_aside_records_total Records that were dead-lettered, or left to the dead letters of the queue.", "# TYPE weir_queue_set_aside_records_total counter",
			"weir_queue_set_aside_records_total" + labels + "1",
		} {
			want += line + "\n"
		}
		names := []string{"weir_queue_acknowledged_records_total", "weir_queue_handled_records_total", "weir_queue_ready", "weir_queue_set_aside_records_total"}
		if err := testutil.CollectAndCompare(m, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(m)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile("../docs/guide/metrics.md")
		if err != nil {
			t.Fatal(err)
		}
		listed := regexp.MustCompile("`(weir_queue_[a-z_]+)`").FindAllStringSubmatch(string(page), -1)
		known := map[string]bool{}
		for _, f := range families {
			known[f.GetName()] = true
			if !strings.Contains(string(page), "`"+f.GetName()+"`") {
				t.Errorf("docs/guide/metrics.md does not list %s", f.GetName())
			}
			if f.GetName() == "weir_queue_handler_duration_seconds" && f.GetMetric()[0].GetHistogram().GetSampleCount() != 20 {
				t.Errorf("%v", f)
			}
		}
		for _, name := range listed {
			if !known[name[1]] {
				t.Errorf("docs/guide/metrics.md lists %s, which does not exist", name[1])
			}
		}
		if problems, err := testutil.CollectAndLint(m); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
		cancel()
		if err := <-ended; err != nil || own == 0 {
			t.Errorf("%v, %d events of the options", err, own)
		}
		if err := testutil.CollectAndCompare(m, strings.NewReader(strings.Replace(want[strings.Index(want, "# HELP weir_queue_ready"):strings.Index(want, "# HELP weir_queue_set")], labels+"1", labels+"0", 1)), "weir_queue_ready"); err != nil {
			t.Error(err)
		}
	})
}
