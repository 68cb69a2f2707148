// Package promweir exports metrics of a consumer to Prometheus.
//
//	metrics := promweir.New(&options, promweir.Config{}) // adds to options.OnEvent
//	consumer, err := weir.New(client, store, options)
//	...
//	metrics.Watch(consumer)
//	http.Handle("/metrics", promweir.Handler(metrics))
//
// Counters and histograms are updated by the events of package event. Gauges come from
// [weir.Consumer.Health] at each scrape. Each worker exports only the shards that it holds. The
// sums over all workers are therefore those of the application. Labels never contain records or
// partition keys.
package promweir
