package wire

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go/metrics"
	"github.com/aws/smithy-go/tracing"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// Plain reports whether calls on the path [OwnCall] can replace the SDK's stack for a client with
// these options. If not, reason names what these calls would lack. A client is plain if
//
//   - it has no middleware (APIOptions), no interceptors, no tracer, no meter, and logs nothing;
//   - its retryer, signer, endpoint resolver and authentication are the SDK's (all regions, FIPS,
//     dual-stack, base endpoints and account-based endpoints are supported, because the SDK
//     resolves the endpoint);
//   - it has credentials, which are used through the SDK's provider;
//   - its HTTP client is the SDK's or an *http.Client, with any transport;
//   - its protocol is the one that the SDK selected.
//
// Retries do not matter, because records are always read without the SDK's retries.
func Plain(o kinesis.Options) (reason string, ok bool) {
	reason = notPlain(&o)
	return reason, reason == ""
}

func notPlain(o *kinesis.Options) string {
	if len(o.APIOptions) > 0 {
		return "it adds middleware (APIOptions)"
	}
	i := &o.Interceptors
	if len(i.BeforeExecution)+len(i.BeforeSerialization)+len(i.AfterSerialization)+len(i.BeforeRetryLoop)+len(i.BeforeAttempt)+
		len(i.BeforeSigning)+len(i.AfterSigning)+len(i.BeforeTransmit)+len(i.AfterTransmit)+len(i.BeforeDeserialization)+
		len(i.AfterDeserialization)+len(i.AfterAttempt)+len(i.AfterExecution) > 0 {
		return "it has interceptors"
	}
	switch o.TracerProvider.(type) {
	case nil, *tracing.NopTracerProvider, tracing.NopTracerProvider:
	default:
		return "it has a tracer"
	}
	switch o.MeterProvider.(type) {
	case nil, metrics.NopMeterProvider, *metrics.NopMeterProvider:
	default:
		return "it has a meter"
	}
	if o.ClientLogMode != 0 {
		return "it logs calls (ClientLogMode)"
	}
	if o.EndpointResolver != nil { //nolint:staticcheck // deprecated, but old programs set it
		return "it has an endpoint resolver of the old kind"
	}
	if r := o.EndpointResolverV2; r != nil && reflect.TypeOf(r) != reflect.TypeOf(kinesis.NewDefaultEndpointResolverV2()) {
		return fmt.Sprintf("it sets an endpoint resolver (%T)", r)
	}
	if o.Retryer != nil && !ofSDK(o.Retryer) {
		return fmt.Sprintf("it sets its own retryer (%T)", o.Retryer)
	}
	if _, ok := o.HTTPSignerV4.(*v4.Signer); !ok && o.HTTPSignerV4 != nil {
		return fmt.Sprintf("it sets its own signer (%T)", o.HTTPSignerV4)
	}
	if o.AuthSchemeResolver != nil && !ofSDK(o.AuthSchemeResolver) {
		return fmt.Sprintf("it chooses its authentication itself (%T)", o.AuthSchemeResolver)
	}
	for _, scheme := range o.AuthSchemes {
		if !ofSDK(scheme) || scheme.SchemeID() != "aws.auth#sigv4" {
			return fmt.Sprintf("it authenticates with %s", scheme.SchemeID())
		}
	}
	if o.Credentials == nil || aws.IsCredentialsProvider(o.Credentials, (*aws.AnonymousCredentials)(nil)) {
		return "it has no credentials"
	}
	switch o.HTTPClient.(type) {
	case *awshttp.BuildableClient, *http.Client:
	default:
		of := any(o.HTTPClient)
		if guard, ok := of.(interface{ Unwrap() any }); ok {
			of = guard.Unwrap()
		}
		return fmt.Sprintf("it sets its own HTTP client (%T)", of)
	}
	if _, ok := o.Protocol.(*awsjson.Protocol); !ok {
		return fmt.Sprintf("it sets its own protocol (%T)", o.Protocol)
	}
	return ""
}

// ofSDK reports whether v has a type of the SDK. Most of these types cannot be named outside the
// SDK.
func ofSDK(v any) bool {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return strings.HasPrefix(t.PkgPath(), "github.com/aws/aws-sdk-go-v2/") || strings.HasPrefix(t.PkgPath(), "github.com/aws/smithy-go/")
}
