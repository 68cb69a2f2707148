package consume

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/emfweir"
	"github.com/weir-go/weir/promweir"
)

// metricsFlags set the metrics for Prometheus and CloudWatch.
type metricsFlags struct {
	addr   string
	shards bool
	emf    emfFlags
}

// metrics has a worker's outputs of metrics; those that are off are nil.
type metrics struct {
	of  *promweir.Metrics
	emf *emfweir.Metrics
	to  emfFlags
}

// observe has metrics observe a consumer that will be made with options.
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

// watch makes them report the shards of a consumer.
func (m metrics) watch(c *weir.Consumer) {
	if m.of != nil {
		m.of.Watch(c)
	}
	if m.emf != nil {
		m.emf.Watch(c)
	}
}

// write writes lines for CloudWatch until stop is called.
func (m metrics) write(ctx context.Context, t cli.Terminal) (stop func() error, err error) {
	if m.emf == nil {
		return func() error { return nil }, nil
	}
	return m.to.write(ctx, t, m.emf)
}

func (m metrics) handler() http.Handler {
	return promweir.Handler(m.of, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}
