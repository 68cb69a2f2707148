package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/kinesistest"
)

// iteratorInputs returns the inputs that weir uses.
func iteratorInputs() map[string]*kinesis.GetShardIteratorInput {
	const arn = "arn:aws:kinesis:eu-west-3:123456789012:stream/s"
	return map[string]*kinesis.GetShardIteratorInput{
		"the oldest":     {ShardIteratorType: types.ShardIteratorTypeTrimHorizon, StreamName: aws.String("s"), ShardId: aws.String("shardId-1")},
		"the tip":        {ShardIteratorType: types.ShardIteratorTypeLatest, StreamARN: aws.String(arn), ShardId: aws.String("shardId-1")},
		"a strange one":  {ShardIteratorType: types.ShardIteratorTypeLatest, StreamName: aws.String(`s"é`), ShardId: aws.String("shardId\\1")},
		"a record":       {ShardIteratorType: types.ShardIteratorTypeAtSequenceNumber, StreamARN: aws.String(arn), ShardId: aws.String("x"), StartingSequenceNumber: aws.String("496")},
		"a time":         {ShardIteratorType: types.ShardIteratorTypeAtTimestamp, StreamName: aws.String("s"), ShardId: aws.String("x"), Timestamp: aws.Time(time.UnixMilli(1700000000123))},
		"an old time":    {ShardIteratorType: types.ShardIteratorTypeAtTimestamp, StreamName: aws.String("s"), ShardId: aws.String("x"), Timestamp: aws.Time(time.UnixMilli(-1500))},
		"a whole second": {ShardIteratorType: types.ShardIteratorTypeAtTimestamp, StreamName: aws.String("s"), ShardId: aws.String("x"), Timestamp: aws.Time(time.Unix(7_258_118_400, 0))},
	}
}

// The request equals the SDK's request, including the signature. If the client is not plain, the
// SDK makes the request.
func TestIteratorsAreAskedForAsTheSDKDoes(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, _ seen) {
		write(w, 200, codec.JSONType, `{"More":[1],"ShardIterator":"it/+=="}`)
	})
	for name, in := range iteratorInputs() {
		for _, token := range []string{"", "a session token"} {
			var bodies [2]any
			for i, opts := range []func(*kinesis.Options){func(*kinesis.Options) {}, traced} {
				client := fakeClient(server.URL+"/some/path", opts, func(o *kinesis.Options) { o.Credentials = staticCredentials(token) })
				it, err := newCaller(t, client, Options{}).Iterator(t.Context(), in, nil, nil)
				if err != nil || it != "it/+==" {
					t.Fatalf("%s: %q, %v", name, it, err)
				}
				all := server.take()
				if len(all) != 1 {
					t.Fatalf("%s: %d requests", name, len(all))
				}
				r := all[0]
				if r.URL.Path != "/some/path" || r.Header.Get("X-Amz-Target") != iteratorTarget || r.Header.Get("Content-Type") != codec.JSONType {
					t.Errorf("%s: %s %v", name, r.URL, r.Header)
				}
				if ofSDK := r.Header.Get("Amz-Sdk-Invocation-Id") != ""; ofSDK != (i == 1) {
					t.Errorf("%s: asked by the SDK: %t", name, ofSDK)
				}
				if cred, _ := client.Options().Credentials.Retrieve(t.Context()); i == 0 && r.Header.Get("Authorization") != sdkSigns(t, r.Request, r.body, "eu-west-3", cred) {
					t.Errorf("%s: signed %s", name, r.Header.Get("Authorization"))
				}
				if err := json.Unmarshal(r.body, &bodies[i]); err != nil {
					t.Fatalf("%s: %q: %v", name, r.body, err)
				}
			}
			if !reflect.DeepEqual(bodies[0], bodies[1]) {
				t.Errorf("%s: asked for %v, the SDK for %v", name, bodies[0], bodies[1])
			}
		}
	}
}

// The SDK calls GetShardIterator at the endpoint that the Caller has resolved for GetRecords.
func TestIteratorsHaveTheEndpointOfRecords(t *testing.T) {
	const arn = "arn:aws:kinesis:eu-west-3:123456789012:stream/s"
	for _, of := range []string{"", arn} {
		for _, set := range []func(*kinesis.Options){
			func(*kinesis.Options) {},
			func(o *kinesis.Options) {
				o.EndpointOptions.UseFIPSEndpoint, o.Region = aws.FIPSEndpointStateEnabled, "us-east-1"
			},
			func(o *kinesis.Options) { o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateEnabled },
			func(o *kinesis.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					return aws.Credentials{AccessKeyID: "A", SecretAccessKey: "s", AccountID: "999999999999"}, nil
				})
			},
		} {
			client := kinesis.New(kinesis.Options{Region: "eu-west-3", Credentials: staticCredentials("")}, set)
			caller := newCaller(t, client, Options{})
			cred, _ := caller.credentials.Retrieve(t.Context())
			ep, err := caller.endpointFor(t.Context(), &cred, of)
			if err != nil {
				t.Fatal(err)
			}
			var seen capture
			in := &kinesis.GetShardIteratorInput{ShardIteratorType: types.ShardIteratorTypeLatest, ShardId: aws.String("x")}
			if in.StreamARN = aws.String(of); of == "" {
				in.StreamARN, in.StreamName = nil, aws.String("s")
			}
			_, err = client.GetShardIterator(t.Context(), in, func(o *kinesis.Options) { o.HTTPClient, o.Retryer = &seen, aws.NopRetryer{} })
			if seen.request == nil {
				t.Fatal(err)
			}
			if got := seen.request.URL.String(); got != ep.url.String() {
				t.Errorf("%q: %s, the SDK asks %s", of, ep.url, got)
			}
		}
	}
}

func TestErrorsOfIteratorsAreThoseOfTheSDK(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	stream(t, server.Client())
	in := &kinesis.GetShardIteratorInput{ShardIteratorType: types.ShardIteratorTypeTrimHorizon, StreamName: aws.String("s"), ShardId: aws.String("shardId-000000000000")}
	plain := kinesis.New(server.Client().Options(), func(o *kinesis.Options) {
		o.HTTPClient, o.Protocol = &http.Client{Transport: server.Transport()}, server.Client().Options().Protocol
	})
	own, sdk := newCaller(t, plain, Options{}), newCaller(t, server.Client(), Options{Path: PlainSDK})
	if !own.Splits() {
		t.Fatal("the caller makes no calls of its own")
	}
	for _, code := range []string{
		"ProvisionedThroughputExceededException", "ResourceNotFoundException", "InvalidArgumentException", "AccessDeniedException", "InternalFailure", "SomethingNew",
	} {
		server.Control("GetShardIterator", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Err: &kinesistest.Error{Code: code, Message: "because"}}
		})
		describe := func(c *Caller) string {
			_, err := c.Iterator(t.Context(), in, nil, nil)
			var (
				api      smithy.APIError
				op       *smithy.OperationError
				response *awshttp.ResponseError
			)
			if !errors.As(err, &api) || !errors.As(err, &op) || !errors.As(err, &response) || response.RequestID == "" {
				t.Fatalf("%s: %v", code, err)
			}
			if of := response.Response.Request.Header.Get("X-Amz-Target"); of != iteratorTarget {
				t.Errorf("the error says that it is about %s", of)
			}
			return fmt.Sprint(api.ErrorCode(), api.ErrorMessage(), op.Service(), op.Operation(), response.HTTPStatusCode(), fmt.Sprintf("%T", api))
		}
		if got, want := describe(own), describe(sdk); got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
	}
	for _, fault := range []kinesistest.Fault{{CutAfter: 20}, {Cut: true}, {LoseAnswer: true}} {
		server.Control("GetShardIterator", func(*kinesistest.Call) kinesistest.Fault { return fault })
		if it, err := own.Iterator(t.Context(), in, nil, nil); err == nil || isAPIError(err) {
			t.Errorf("%+v: %q, %v", fault, it, err)
		}
	}
	server.Control("GetShardIterator", nil)
	var line Line
	it, err := own.Iterator(t.Context(), in, &line, nil)
	if err != nil {
		t.Fatal(err)
	}
	var p codec.Page
	if err := own.GetRecords(t.Context(), Request{Iterator: it, Line: &line}, &p); err != nil || len(p.Records) == 0 {
		t.Errorf("%d records, %v", len(p.Records), err)
	}
	line.Park()
}

func TestIteratorsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		contentType, body string
		none, malformed   bool
	}{
		"no iterator":        {codec.JSONType, `{}`, true, false},
		"null":               {codec.JSONType, `{"ShardIterator":null}`, true, false},
		"empty":              {codec.JSONType, `{"ShardIterator":""}`, true, false},
		"a number":           {codec.JSONType, `{"ShardIterator":1}`, false, true},
		"half":               {codec.JSONType, `{"ShardIterator":"x"`, false, true},
		"more":               {codec.JSONType, `{"ShardIterator":"x"}}`, false, true},
		"nothing":            {codec.JSONType, ``, false, true},
		"too long":           {codec.JSONType, `{"ShardIterator":"` + strings.Repeat("x", codec.MaxIterator+1) + `"}`, false, true},
		"of any length":      {codec.JSONType, strings.Repeat(" ", 3*codec.MaxIterator) + `{"ShardIterator":"x"}`, false, true},
		"something else":     {"text/html", `<html>`, false, false},
		"in CBOR after all":  {codec.CBORType, "\xa1\x6dShardIterator\x61x", false, false},
		"with an odd length": {codec.CBORType, "\xa1\x6dShardIterator\x62x", false, true},
	} {
		server := newFake(t, func(w http.ResponseWriter, _ seen) { write(w, 200, c.contentType, c.body) })
		it, err := newCaller(t, fakeClient(server.URL), Options{}).Iterator(t.Context(), iteratorInputs()["the oldest"], nil, nil)
		if name == "in CBOR after all" {
			if err != nil || it != "x" {
				t.Errorf("%s: %q, %v", name, it, err)
			}
			continue
		}
		var malformed *codec.MalformedError
		if err == nil || it != "" || errors.Is(err, ErrNoIterator) != c.none || errors.As(err, &malformed) != c.malformed {
			t.Errorf("%s: %q, %v", name, it, err)
		}
	}
}

// A hanging call ends after its timeout, or with its context.
func TestIteratorsThatDoNotCome(t *testing.T) {
	for _, path := range []Path{OwnCall, PlainSDK} {
		synctest.Test(t, func(t *testing.T) {
			network := newPipes()
			transport := &http.Transport{DialContext: network.dial}
			served := make(chan struct{})
			server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			})}
			go func() {
				defer close(served)
				_ = server.Serve(network)
			}()
			client := fakeClient("http://pipes", func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: transport} })
			c := newCaller(t, client, Options{Path: path, Timeout: 7 * time.Second})
			began := time.Now()
			in := iteratorInputs()["the oldest"]
			if _, err := c.Iterator(t.Context(), in, nil, nil); time.Since(began) != 7*time.Second || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v after %v", path, err, time.Since(began))
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			began = time.Now()
			var line Line
			if _, err := c.Iterator(ctx, in, &line, nil); time.Since(began) != time.Second || err == nil {
				t.Errorf("%s: %v after %v", path, err, time.Since(began))
			}
			line.Park()
			c.Close()
			transport.CloseIdleConnections()
			_ = server.Close()
			<-served
		})
	}
}

func TestIteratorsWithoutCredentials(t *testing.T) {
	client := fakeClient("http://x", func(o *kinesis.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("none today") })
	})
	_, err := newCaller(t, client, Options{}).Iterator(t.Context(), iteratorInputs()["the oldest"], nil, nil)
	var op *smithy.OperationError
	if !errors.As(err, &op) || op.Operation() != iteratorOperation || !strings.Contains(err.Error(), "none today") {
		t.Error(err)
	}
}

// Before a call goes over net/http, the line's connection is released.
func TestIteratorsOfTheSDKParkTheLine(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, r seen) {
		write(w, 200, r.Header.Get("Content-Type"), map[string]string{codec.CBORType: "\xa0", codec.JSONType: `{"ShardIterator":"x"}`}[r.Header.Get("Content-Type")])
	})
	c := newCaller(t, fakeClient(server.URL), Options{})
	var line Line
	var p codec.Page
	if err := c.GetRecords(t.Context(), Request{Iterator: "it", Line: &line}, &p); err != nil || reflect.ValueOf(line).IsZero() {
		t.Fatalf("no connection is kept: %v", err)
	}
	traced := httptrace.WithClientTrace(t.Context(), new(httptrace.ClientTrace))
	if it, err := c.Iterator(traced, iteratorInputs()["the oldest"], &line, nil); err != nil || it != "x" || !reflect.ValueOf(line).IsZero() {
		t.Errorf("%q, %v with a line that is not parked", it, err)
	}
}

func TestIteratorsCorrectTheClock(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, r seen) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		if at, err := time.Parse(timeForm, r.Header.Get("X-Amz-Date")); err != nil || time.Since(at) < 50*time.Minute {
			write(w, 403, codec.JSONType, `{"__type":"InvalidSignatureException","message":"too late"}`)
			return
		}
		write(w, 200, codec.JSONType, `{"ShardIterator":"x"}`)
	})
	c := newCaller(t, fakeClient(server.URL), Options{})
	for _, good := range []bool{false, true} {
		if _, err := c.Iterator(t.Context(), iteratorInputs()["the oldest"], nil, nil); (err == nil) != good {
			t.Errorf("good: %t, %v", good, err)
		}
	}
}
