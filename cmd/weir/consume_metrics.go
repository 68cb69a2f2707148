package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/promweir"
)

// metricsFlags say where a worker tells Prometheus what it does.
type metricsFlags struct {
	addr   string
	shards bool
}

func (f *metricsFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.addr, "metrics", "", "answer scrapes of Prometheus at /metrics on `ADDR`, such as 9090 for this machine or 0.0.0.0:9090 for all; may be that of --health")
	cmd.Flags().BoolVar(&f.shards, "metrics-by-shard", true, "with --metrics: gauges of lag and state have the shard as a label; =false tells the worst shard of the worker")
}

// check makes the address whole. A flag that has no effect is a mistake.
func (f *metricsFlags) check(cmd *cobra.Command) (err error) {
	if f.addr == "" {
		if cmd.Flags().Changed("metrics-by-shard") {
			return usagef("--metrics-by-shard says how --metrics tells: say --metrics ADDR, too")
		}
		return nil
	}
	f.addr, err = servingAddr("--metrics", f.addr)
	return err
}

// metrics are what a worker tells Prometheus; nil when nobody asks for them.
type metrics struct{ of *promweir.Metrics }

// observe has metrics observe a consumer that will be made with options.
func (f *metricsFlags) observe(options *weir.Options) *metrics {
	if f.addr == "" {
		return nil
	}
	return &metrics{promweir.New(options, promweir.Config{ShardLabel: f.shards, Version: version})}
}

// watch has them tell about the shards of a consumer.
func (m *metrics) watch(c *weir.Consumer) {
	if m != nil {
		m.of.Watch(c)
	}
}

func (m *metrics) handler() http.Handler {
	return promweir.Handler(m.of, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}
