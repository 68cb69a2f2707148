package consume

import "fmt"

// reports returns the flags for logs, health checks and metrics of the worker. They are a part of
// table.
func (o *options) reports() []row {
	m := &o.metrics
	return []row{
		{
			name: "verbose", short: "v", to: &o.verbose,
			text: "log each lease, also if many change at once",
		},
		{
			name: "log", to: &o.log,
			text: "format of the log on standard error: text or json, one event per line",
			complete: words{
				"text\tname=value, for people and grep",
				"json\tan object a line, from the first word on",
			},
		},
		{
			name: "health", to: &o.health,
			text: "serve /livez and /readyz over HTTP on `ADDR`, such as 8080 for this machine " +
				"or 0.0.0.0:8080 for all",
			then: listensOn("--health", &o.health),
		},
		{
			name: "metrics", to: &m.addr,
			text: "serve /metrics for Prometheus on `ADDR`, such as 9090 for this machine or " +
				"0.0.0.0:9090 for all; may be the address of --health",
			then: listensOn("--metrics", &m.addr),
		},
		{
			name: "metrics-by-shard", to: &m.shards,
			text: "report each shard: as a label of lag and state with --metrics, as its own " +
				"line with --metrics-emf; =false reports the worker's worst shard, and one " +
				"line per stream",
			rules: []rule{
				{m.addr != "" || m.emf.to != "", "FLAG applies only to --metrics and " +
					"--metrics-emf: add --metrics ADDR or --metrics-emf stderr"},
			},
		},
		{
			name: "metrics-emf", to: &m.emf.to,
			text: "write metrics for CloudWatch Logs, one line per minute and shard, with the " +
				"KCL's names: `WHERE` is stderr, or file:PATH for the CloudWatch agent",
			complete: words{
				"stderr\tfor log drivers of containers that send it to CloudWatch Logs",
				"file:\ta file that is appended to",
			},
			rules: []rule{
				{m.emf.valid(), fmt.Sprintf("FLAG %q: want stderr, or file:PATH", m.emf.to)},
			},
		},
		{
			name: "metrics-namespace", to: &m.emf.namespace,
			text: "with --metrics-emf: the CloudWatch namespace `NAME` (default: --app)",
			rules: []rule{
				{m.emf.to != "", "FLAG applies only to --metrics-emf: add --metrics-emf stderr"},
			},
		},
	}
}
