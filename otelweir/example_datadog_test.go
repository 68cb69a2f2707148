package otelweir_test

import (
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/otelweir"
)

// A producer with Datadog's tracer adds the trace to JSON data.
func ExampleDatadog() {
	carrier := otelweir.Datadog(weir.Record{Data: []byte(`{"order": "two teas", "_datadog": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}`)})
	fmt.Println(carrier.Get("traceparent"))
	// Output: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
}
