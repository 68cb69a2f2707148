package wire

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	smithyauth "github.com/aws/smithy-go/auth"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	"github.com/aws/smithy-go/metrics"
	"github.com/aws/smithy-go/tracing"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/rpcv2"

	"github.com/weir-go/weir/internal/wire/codec"
)

func mustParse(tb testing.TB, s string) *url.URL {
	tb.Helper()
	u, err := url.Parse(s)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// These types are examples of types that a user defines.
type (
	ownResolver  struct{ kinesis.EndpointResolverV2 }
	ownRetryer   struct{ aws.NopRetryer }
	ownSigner    struct{ *v4.Signer }
	ownAuth      struct{ kinesis.AuthSchemeResolver }
	ownTracer    struct{ tracing.NopTracerProvider }
	ownMeter     struct{ metrics.NopMeterProvider }
	ownHTTP      struct{ http.Client }
	ownInterrupt struct{}
)

func (ownInterrupt) BeforeTransmit(context.Context, *smithyhttp.InterceptorContext) error { return nil }

func (r ownResolver) ResolveEndpoint(context.Context, kinesis.EndpointParameters) (smithyendpoints.Endpoint, error) {
	return smithyendpoints.Endpoint{}, nil
}

func (ownAuth) ResolveAuthSchemes(context.Context, *kinesis.AuthResolverParameters) ([]*smithyauth.Option, error) {
	return nil, nil
}

func TestPlain(t *testing.T) {
	cases := map[string]struct {
		set  func(*kinesis.Options)
		want string // a part of the reason; "" for a plain client
	}{
		"the default":                  {func(*kinesis.Options) {}, ""},
		"the SDK's HTTP client, built": {func(o *kinesis.Options) { o.HTTPClient = awshttp.NewBuildableClient().WithTimeout(time.Second) }, ""},
		"the default HTTP client":      {func(o *kinesis.Options) { o.HTTPClient = http.DefaultClient }, ""},
		"FIPS":                         {func(o *kinesis.Options) { o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled }, ""},
		"no retries":                   {func(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} }, ""},
		"more retries":                 {func(o *kinesis.Options) { o.RetryMaxAttempts = 9 }, ""},
		"adaptive retries":             {func(o *kinesis.Options) { o.Retryer = retry.NewAdaptiveMode() }, ""},
		"an application's name":        {func(o *kinesis.Options) { o.AppID = "billing" }, ""},
		"middleware":                   {traced, "middleware"},
		"a signing name":               {kinesis.WithSigV4SigningName("kinesis-fips"), "middleware"},
		"an interceptor": {func(o *kinesis.Options) {
			o.Interceptors.BeforeTransmit = append(o.Interceptors.BeforeTransmit, ownInterrupt{})
		}, "interceptors"},
		"a tracer": {func(o *kinesis.Options) { o.TracerProvider = ownTracer{} }, "tracer"},
		"a meter":  {func(o *kinesis.Options) { o.MeterProvider = ownMeter{} }, "meter"},
		"logging":  {func(o *kinesis.Options) { o.ClientLogMode = aws.LogRequest }, "logs"},
		"an old resolver": {func(o *kinesis.Options) {
			o.EndpointResolver = kinesis.EndpointResolverFromURL("http://x") //nolint:staticcheck // old programs do
		}, "old kind"},
		"a resolver":        {func(o *kinesis.Options) { o.EndpointResolverV2 = ownResolver{} }, "ownResolver"},
		"a retryer":         {func(o *kinesis.Options) { o.Retryer = ownRetryer{} }, "ownRetryer"},
		"a signer":          {func(o *kinesis.Options) { o.HTTPSignerV4 = ownSigner{} }, "ownSigner"},
		"authentication":    {func(o *kinesis.Options) { o.AuthSchemeResolver = ownAuth{} }, "ownAuth"},
		"another scheme":    {func(o *kinesis.Options) { o.AuthSchemes = []smithyhttp.AuthScheme{smithyhttp.NewAnonymousScheme()} }, "noAuth"},
		"no credentials":    {func(o *kinesis.Options) { o.Credentials = nil }, "credentials"},
		"anonymous":         {func(o *kinesis.Options) { o.Credentials = aws.AnonymousCredentials{} }, "credentials"},
		"an HTTP client":    {func(o *kinesis.Options) { o.HTTPClient = new(ownHTTP) }, "ownHTTP"},
		"another protocol":  {func(o *kinesis.Options) { o.Protocol = rpcv2.NewCBOR(schemas.Kinesis_20131202) }, "rpcv2"},
		"no HTTP client":    {func(o *kinesis.Options) { o.HTTPClient = nil }, "nil"},
		"no endpoint (yet)": {func(o *kinesis.Options) { o.BaseEndpoint = nil }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := kinesis.New(kinesis.Options{Region: "eu-west-3", Credentials: staticCredentials("")}, c.set)
			reason, ok := Plain(client.Options())
			if ok != (c.want == "") || !strings.Contains(reason, c.want) {
				t.Errorf("plain %v, because %q", ok, reason)
			}
			if client.Options().HTTPClient == nil {
				if _, err := NewCaller(client, Options{}); err == nil {
					t.Error("a client that cannot call is accepted")
				}
				return
			}
			caller := newCaller(t, client, Options{})
			path, why := caller.Path()
			switch {
			case c.want == "" && path != OwnCall, c.want == "rpcv2" && path != PlainSDK, c.want != "" && c.want != "rpcv2" && path != UnderSDK:
				t.Errorf("the path is %s because %s", path, why)
			}
		})
	}
	if _, ok := Plain(kinesis.Options{}); ok {
		t.Error("options that no client was made of are plain")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := NewCaller(nil, Options{}); err == nil {
		t.Error("no client is accepted")
	}
	_, err := NewCaller(fakeClient("http://x"), Options{Path: 9, Format: 9, Timeout: -1, MaxBody: -1, MaxConns: -1})
	for _, field := range []string{"Path", "Format", "Timeout", "MaxBody", "MaxConns"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("nothing about %s: %v", field, err)
		}
	}
	if _, err := NewCaller(fakeClient("http://x"), Options{MaxBody: codec.MostBody + 1}); err == nil {
		t.Error("a body of more than 32 MiB is accepted")
	}
}

// The endpoint is the one that the SDK derives from the region, the account, the ARN and the
// options.
func TestEndpoints(t *testing.T) {
	const arn = "arn:aws:kinesis:eu-west-3:123456789012:stream/s"
	account := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "A", SecretAccessKey: "s", AccountID: "999999999999"}, nil
	})
	cases := map[string]struct {
		set               func(*kinesis.Options)
		arn               string
		url, host, region string
	}{
		"region alone": {func(*kinesis.Options) {}, "", "https://kinesis.eu-west-3.amazonaws.com/", "kinesis.eu-west-3.amazonaws.com", "eu-west-3"},
		"an ARN":       {func(*kinesis.Options) {}, arn, "https://123456789012.data-kinesis.eu-west-3.amazonaws.com/", "123456789012.data-kinesis.eu-west-3.amazonaws.com", "eu-west-3"},
		"an account":   {func(o *kinesis.Options) { o.Credentials = account }, "", "https://999999999999.data-kinesis.eu-west-3.amazonaws.com/", "999999999999.data-kinesis.eu-west-3.amazonaws.com", "eu-west-3"},
		"an account unused": {func(o *kinesis.Options) {
			o.Credentials, o.AccountIDEndpointMode = account, aws.AccountIDEndpointModeDisabled
		}, "", "https://kinesis.eu-west-3.amazonaws.com/", "kinesis.eu-west-3.amazonaws.com", "eu-west-3"},
		"FIPS": {func(o *kinesis.Options) {
			o.Region = "us-gov-west-1"
			o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled
		}, "", "https://kinesis.us-gov-west-1.amazonaws.com/", "kinesis.us-gov-west-1.amazonaws.com", "us-gov-west-1"},
		"base endpoint":       {func(o *kinesis.Options) { o.BaseEndpoint = aws.String("http://localhost:4567") }, arn, "http://localhost:4567/", "localhost:4567", "eu-west-3"},
		"with a default port": {func(o *kinesis.Options) { o.BaseEndpoint = aws.String("https://gateway:443/some where/") }, "", "https://gateway:443/some%20where/", "gateway", "eu-west-3"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := kinesis.New(kinesis.Options{Region: "eu-west-3", Credentials: staticCredentials("a token")}, c.set)
			caller := newCaller(t, client, Options{})
			cred, err := caller.credentials.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ep, err := caller.endpointFor(t.Context(), &cred, c.arn)
			if err != nil {
				t.Fatal(err)
			}
			if ep.reason != "" || ep.url.String() != c.url || ep.host != c.host || ep.signer.region != c.region || ep.signer.service != "kinesis" {
				t.Errorf("%s, host %s, region %s, not usable because %q", ep.url, ep.host, ep.signer.region, ep.reason)
			}
			if !strings.Contains(ep.agent[0], "aws-sdk-go-v2") || !strings.Contains(ep.agent[0], "weir") {
				t.Errorf("it calls itself %s", ep.agent[0])
			}
			again, err := caller.endpointFor(t.Context(), &cred, c.arn)
			if err != nil || again != ep {
				t.Error("it was not remembered")
			}
		})
	}
}

func TestEndpointsThatCannotBeFound(t *testing.T) {
	client := kinesis.New(kinesis.Options{Credentials: staticCredentials("")})
	var p codec.Page
	if err := newCaller(t, client, Options{}).GetRecords(t.Context(), Request{Iterator: "x"}, &p); err == nil || !strings.Contains(err.Error(), "egion") {
		t.Errorf("without a region: %v", err)
	}
}

// Requests with an unknown kind of signature are left to the SDK.
func TestStrangeRequestsStayWithTheSDK(t *testing.T) {
	cred := aws.Credentials{AccessKeyID: "A", SecretAccessKey: "s"}
	request := func() *http.Request {
		u := mustParse(t, "http://localhost/")
		ep := &endpoint{url: u, host: "localhost", path: "/", agent: []string{"x"}}
		ep.signer.region, ep.signer.service = "r", "kinesis"
		r := ep.request(t.Context(), time.Now(), &cred, recordsCBOR, (&Request{}).appendTo(nil, codec.CBOR))
		r.Header.Del("Idempotency-Key")
		return r
	}
	body := (&Request{}).appendTo(nil, codec.CBOR)
	if ep := endpointOf(request(), body, &cred); ep.reason != "" {
		t.Fatal(ep.reason)
	}
	for name, change := range map[string]func(*http.Request){
		"unsigned":          func(r *http.Request) { r.Header.Del("Authorization") },
		"another algorithm": func(r *http.Request) { r.Header.Set("Authorization", "AWS4-ECDSA-P256-SHA256 Credential=x") },
		"half a signature":  func(r *http.Request) { r.Header.Set("Authorization", algorithm+" Credential=a/b/c/d/e") },
		"a short scope": func(r *http.Request) {
			r.Header.Set("Authorization", algorithm+" Credential=a/b, SignedHeaders=host, Signature=1")
		},
		"another signature": func(r *http.Request) { r.Header.Set("Authorization", r.Header.Get("Authorization")+"0") },
		"another time":      func(r *http.Request) { r.Header.Set("X-Amz-Date", "20200101T000000Z") },
		"no time":           func(r *http.Request) { r.Header.Del("X-Amz-Date") },
		"another header":    func(r *http.Request) { r.Header.Set("X-Tenant", "7") },
		"a query":           func(r *http.Request) { r.URL.RawQuery = "a=b" },
		"another method":    func(r *http.Request) { r.Method = "PUT" },
	} {
		r := request()
		change(r)
		if ep := endpointOf(r, body, &cred); ep.reason == "" {
			t.Errorf("%s: accepted", name)
		}
	}
}
