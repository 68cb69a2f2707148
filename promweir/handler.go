package promweir

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-go/weir/internal/hostcheck"
)

// Handler serves the metrics of collectors in the formats that Prometheus reads. Besides [Metrics],
// it accepts other collectors, for example those of client_golang about the process. It accepts
// only GET and HEAD. On a loopback connection, a Host header with a name other than localhost is
// refused with status 403, as with [weir.Consumer.HealthHandler]. Handler panics if two collectors
// have the same metric, or if a collector is passed twice.
func Handler(all ...prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(all...)
	serve := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case !hostcheck.Allows(req):
			http.Error(w, "over a loopback address, metrics are served only to requests for localhost and IP addresses", http.StatusForbidden)
		case req.Method != http.MethodGet && req.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		default:
			serve.ServeHTTP(w, req)
		}
	})
}
