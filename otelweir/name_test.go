package otelweir

import (
	_ "github.com/prometheus/otlptranslator"
	_ "github.com/weir-go/weir/kinesistest"
	_ "github.com/weir-go/weir/store/memstore"
	_ "github.com/weir-go/weir/weirtest"
	_ "go.opentelemetry.io/otel/sdk/metric"
	_ "go.opentelemetry.io/otel/sdk/metric/metricdata"
	_ "go.opentelemetry.io/otel/sdk/trace"
	_ "go.opentelemetry.io/otel/sdk/trace/tracetest"
)
