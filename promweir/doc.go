// Package promweir exports metrics of a consumer to Prometheus.
//
//	metrics := promweir.New(&options, promweir.Config{}) // wraps options.Events
//	consumer, err := weir.New(client, store, options)
//	...
//	metrics.Watch(consumer)
//	http.Handle("/metrics", promweir.Handler(metrics))
//
// Counters and histograms come from [weir.Events], gauges from [weir.Consumer.Shards] at each
// scrape. Each worker exports the shards that it holds, so sums over the workers are those of the
// application. A record or a key is never a label.
package promweir
