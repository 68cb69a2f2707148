package otelweir

import (
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// optIn is the environment variable with which OpenTelemetry lets users choose newer conventions.
const optIn = "OTEL_SEMCONV_STABILITY_OPT_IN"

// The schemas of the conventions. The default is the newest one of OpenTelemetry's Go packages.
// Version 1.45 replaced messaging.system by messaging.system.name.
const (
	defaultSchema = "https://opentelemetry.io/schemas/1.43.0"
	newerSchema   = "https://opentelemetry.io/schemas/1.45.0"
)

// conventions are the messaging conventions that are followed.
type conventions struct {
	schema string
	system []attribute.KeyValue // names the messaging system
}

// conventionsOf returns the conventions for the value of OTEL_SEMCONV_STABILITY_OPT_IN, which is a
// list with commas. The element messaging selects the newer conventions, and messaging/dup both.
func conventionsOf(choice string) conventions {
	older, newer := systemKey.String(kinesis), systemNameKey.String(kinesis)
	chosen := conventions{defaultSchema, []attribute.KeyValue{older}}
	for of := range strings.SplitSeq(choice, ",") {
		switch strings.TrimSpace(of) {
		case "messaging/dup":
			return conventions{newerSchema, []attribute.KeyValue{older, newer}}
		case "messaging":
			chosen = conventions{newerSchema, []attribute.KeyValue{newer}}
		}
	}
	return chosen
}

func currentConventions() conventions { return conventionsOf(os.Getenv(optIn)) }
