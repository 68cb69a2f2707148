package consume

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/emfweir"
	"github.com/weir-go/weir/promweir"
)

// metricsFlags contains the flags for metrics for Prometheus and CloudWatch.
type metricsFlags struct {
	addr   string
	shards bool
	emf    emfFlags
}

// metrics contains the metrics of a worker. A field is nil if its output is off.
type metrics struct {
	of  *promweir.Metrics
	emf *emfweir.Metrics
	to  emfFlags
}

// observe adds metrics to the options of a consumer. Call it before the consumer is created.
func (f *metricsFlags) observe(options *weir.Options) (metrics, error) {
	m := metrics{to: f.emf}
	if f.addr != "" {
		m.of = promweir.New(options, promweir.Config{ShardLabel: f.shards, Version: cli.Version})
	}
	var err error
	if f.emf.to != "" {
		m.emf, err = f.emf.observe(options, f.shards)
	}
	return m, err
}

// watch adds the shards of a consumer to the metrics.
func (m metrics) watch(c *weir.Consumer) {
	if m.of != nil {
		m.of.Watch(c)
	}
	if m.emf != nil {
		m.emf.Watch(c)
	}
}

// write writes metrics for CloudWatch until stop is called.
func (m metrics) write(ctx context.Context, t cli.Terminal) (stop func() error, err error) {
	if m.emf == nil {
		return func() error { return nil }, nil
	}
	return m.to.write(ctx, t, m.emf)
}

// scrapes returns a handler that serves metrics and those of the process.
func scrapes(of prometheus.Collector) http.Handler {
	return promweir.Handler(of, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}
