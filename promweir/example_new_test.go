package promweir_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/promweir"
	"github.com/weir-go/weir/queue"
	"github.com/weir-go/weir/store/memstore"
)

// The metrics observe the consumer through its options, so they are created first.
func ExampleNew() {
	srv, err := kinesistest.Start(kinesistest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	options := weir.Options{Streams: []string{"orders"}, App: "billing"}
	metrics := promweir.New(&options, promweir.Config{ShardLabel: true})
	consumer, err := weir.New(srv.Client(), memstore.New(), options)
	if err != nil {
		log.Fatal(err)
	}
	metrics.Watch(consumer)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promweir.Handler(metrics))

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil))
	fmt.Println(answer.Code)
	// Output: 200
}

// One HTTP server serves the metrics and the health checks of a consumer of a queue.
func ExampleNewQueue() {
	srv, err := kinesistest.Start(kinesistest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	cfg := aws.Config{Region: srv.Region(), Credentials: srv.Client().Options().Credentials} // a program uses config.LoadDefaultConfig
	options := queue.Options{Queue: "orders", App: "billing"}
	metrics := promweir.NewQueue(&options)
	consumer, err := queue.New(cfg, options)
	if err != nil {
		log.Fatal(err)
	}
	metrics.Watch(consumer)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promweir.Handler(metrics))
	mux.Handle("/", consumer.HealthHandler()) // /livez and /readyz

	for _, path := range []string{"/metrics", "/livez", "/readyz"} {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		fmt.Println(path, answer.Code)
	}
	// Output:
	// /metrics 200
	// /livez 200
	// /readyz 503
}
