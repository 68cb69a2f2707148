package consume

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/serve"
	"github.com/weir-go/weir/emfweir"
	"github.com/weir-go/weir/promweir"
)

// metricsFlags set the metrics for Prometheus and CloudWatch.
type metricsFlags struct {
	addr   string
	shards bool
	emf    emfFlags
}

func (f *metricsFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.addr, "metrics", "", "serve /metrics for Prometheus on `ADDR`, such as 9090 for this machine or 0.0.0.0:9090 for all; may be the address of --health")
	cmd.Flags().BoolVar(&f.shards, "metrics-by-shard", true, "report each shard: as a label of lag and state with --metrics, as its own line with --metrics-emf; =false reports the worker's worst shard, and a line per stream")
	f.emf.register(cmd)
}

// check makes the address whole. A flag that has no effect is a mistake.
func (f *metricsFlags) check(cmd *cobra.Command) (err error) {
	if err := f.emf.check(); err != nil {
		return err
	}
	if f.addr == "" {
		if f.emf.to == "" && cmd.Flags().Changed("metrics-by-shard") {
			return cli.Usagef("--metrics-by-shard applies only to --metrics and --metrics-emf: add --metrics ADDR or --metrics-emf stderr")
		}
		return nil
	}
	f.addr, err = serve.Addr("--metrics", f.addr)
	return err
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
