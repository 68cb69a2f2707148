package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/kinesistest"
)

// traced adds a middleware to a client, so that the client is not [Plain].
func traced(o *kinesis.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("traced", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			return next.HandleInitialize(ctx, in)
		}), middleware.After)
	})
}

// stream creates a stream of one shard with records of up to 300 KB. It returns an iterator at the
// beginning of the shard.
func stream(tb testing.TB, client *kinesis.Client) (iterator string, data [][]byte) {
	tb.Helper()
	ctx := tb.Context()
	if _, err := client.CreateStream(ctx, &kinesis.CreateStreamInput{StreamName: aws.String("s"), ShardCount: aws.Int32(1)}); err != nil {
		tb.Fatal(err)
	}
	in := &kinesis.PutRecordsInput{StreamName: aws.String("s")}
	for i := range 60 {
		data = append(data, bytes.Repeat([]byte{byte(i), 0xff}, i*i*i%3000))
	}
	data = append(data, bytes.Repeat([]byte("large"), 60_000), []byte{})
	for i, d := range data {
		in.Records = append(in.Records, types.PutRecordsRequestEntry{Data: d, PartitionKey: aws.String(fmt.Sprintf("key-%d-é", i))})
	}
	out, err := client.PutRecords(ctx, in)
	if err != nil || *out.FailedRecordCount > 0 {
		tb.Fatal(err, out)
	}
	return iterate(tb, client), data
}

func iterate(tb testing.TB, client *kinesis.Client) string {
	tb.Helper()
	it, err := client.GetShardIterator(tb.Context(), &kinesis.GetShardIteratorInput{
		StreamName: aws.String("s"), ShardId: aws.String("shardId-000000000000"), ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return *it.ShardIterator
}

func newCaller(tb testing.TB, client *kinesis.Client, opts Options) *Caller {
	tb.Helper()
	c, err := NewCaller(client, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// Every path and format reads the same records. This is tested with servers that write definite and
// indefinite lengths.
func TestEveryPathReadsTheSameRecords(t *testing.T) {
	for _, open := range []bool{false, true} {
		for _, tls := range []bool{false, true} {
			server := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true, IndefiniteCBOR: open, TLS: tls})
			client := server.Client()
			iterator, data := stream(t, client)
			var want codec.Page
			if err := newCaller(t, client, Options{Path: PlainSDK}).GetRecords(t.Context(), Request{Iterator: iterator}, &want); err != nil {
				t.Fatal(err)
			}
			if len(want.Records) != len(data) {
				t.Fatalf("%d records, want %d", len(want.Records), len(data))
			}
			for _, path := range []Path{OwnCall, UnderSDK} {
				for _, format := range []codec.Format{codec.Auto, codec.CBOR, codec.JSON} {
					for _, reuse := range []bool{false, true} {
						t.Run(fmt.Sprintf("open %v, TLS %v, %s, %s, reuse %v", open, tls, path, format, reuse), func(t *testing.T) {
							c := newCaller(t, client, Options{Path: path, Format: format, Reuse: reuse})
							if p, reason := c.Path(); p != path {
								t.Fatalf("the path is %s because %s", p, reason)
							}
							var got codec.Page
							for range 3 {
								if err := c.GetRecords(t.Context(), Request{Iterator: iterator, Limit: 1000, StreamARN: server.StreamARN("s")}, &got); err != nil {
									t.Fatal(err)
								}
								// Iterators differ between calls.
								want.Next, got.Next = "", strings.Repeat(got.Next, 0)
								if d := answers.Differ(&got, &want, answers.EqualTime); d != "" {
									t.Fatal(d)
								}
								if got.RequestID == "" {
									t.Error("no request ID")
								}
							}
							got.Release()
							if got.RequestID != "" || got.Records != nil {
								t.Errorf("released, the page is %+v", got)
							}
						})
					}
				}
			}
		}
	}
}

func TestReadingAShardToItsEnd(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	client := server.Client()
	iterator, data := stream(t, client)
	if _, err := client.SplitShard(t.Context(), &kinesis.SplitShardInput{
		StreamName: aws.String("s"), ShardToSplit: aws.String("shardId-000000000000"), NewStartingHashKey: aws.String("1000"),
	}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []Path{OwnCall, UnderSDK, PlainSDK} {
		c := newCaller(t, client, Options{Path: path})
		var p codec.Page
		n := 0
		for next := iterator; next != ""; next = p.Next {
			if err := c.GetRecords(t.Context(), Request{Iterator: next, Limit: 7}, &p); err != nil {
				t.Fatal(err)
			}
			for _, r := range p.Records {
				if !bytes.Equal(r.Data, data[n]) || r.Key != fmt.Sprintf("key-%d-é", n) || time.Since(time.UnixMilli(r.Arrival)) > time.Minute {
					t.Fatalf("%s: record %d is %+v", path, n, r)
				}
				n++
			}
		}
		if n != len(data) || len(p.Children) != 2 || p.Children[0].ParentShards[0] != "shardId-000000000000" {
			t.Errorf("%s: %d of %d records, children %+v", path, n, len(data), p.Children)
		}
	}
}

// On every path, errors.As finds the same types in an error.
func TestErrorsAreThoseOfTheSDK(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	plain := server.Client()
	client := server.Client(traced)
	iterator, _ := stream(t, plain)
	for _, code := range []string{
		"ProvisionedThroughputExceededException", "ExpiredIteratorException", "ResourceNotFoundException", "KMSThrottlingException",
		"AccessDeniedException", "InternalFailure", "ServiceUnavailable", "ThrottlingException", "SomethingNew",
	} {
		server.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Err: &kinesistest.Error{Code: code, Message: "because"}}
		})
		describe := func(c *Caller, f codec.Format) string {
			var p codec.Page
			err := c.GetRecords(t.Context(), Request{Iterator: iterator}, &p)
			var (
				api        smithy.APIError
				op         *smithy.OperationError
				response   *awshttp.ResponseError
				throughput *types.ProvisionedThroughputExceededException
				expired    *types.ExpiredIteratorException
				generic    *smithy.GenericAPIError
			)
			if !errors.As(err, &api) || !errors.As(err, &op) || !errors.As(err, &response) || response.RequestID == "" {
				t.Fatalf("%s in %s: %v", code, f, err)
			}
			return fmt.Sprint(api.ErrorCode(), api.ErrorMessage(), api.ErrorFault(), op.Service(), op.Operation(), response.HTTPStatusCode(),
				errors.As(err, &throughput), errors.As(err, &expired), errors.As(err, &generic), fmt.Sprintf("%T", api))
		}
		want := describe(newCaller(t, client, Options{Path: PlainSDK}), codec.JSON)
		for _, format := range []codec.Format{codec.CBOR, codec.JSON} {
			for _, of := range []*kinesis.Client{plain, client} {
				c := newCaller(t, of, Options{Format: format})
				if got := describe(c, format); got != want {
					path, _ := c.Path()
					t.Errorf("%s, %s, %s: %s, want %s", code, path, format, got, want)
				}
			}
		}
	}
}

func TestACallThatIsCutOffIsAnError(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	client := server.Client()
	iterator, _ := stream(t, client)
	for _, fault := range []kinesistest.Fault{{CutAfter: 1000}, {CutAfter: -1}, {Cut: true}, {LoseAnswer: true}} {
		server.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault { return fault })
		for _, path := range []Path{OwnCall, UnderSDK} {
			for _, reuse := range []bool{true, false} {
				var p codec.Page
				err := newCaller(t, client, Options{Path: path, Reuse: reuse}).GetRecords(t.Context(), Request{Iterator: iterator}, &p)
				if err == nil || isAPIError(err) || len(p.Records) > 0 {
					t.Errorf("%s: %v with %d records", path, err, len(p.Records))
				}
				if outcomeOf(err, &p) != unrelated {
					t.Errorf("%s: %v is taken for a matter of the format", path, err)
				}
			}
		}
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true, TLS: true})
	client := server.Client()
	iterator, data := stream(t, client)
	for _, path := range []Path{OwnCall, UnderSDK} {
		c := newCaller(t, client, Options{Path: path, Reuse: true, MaxConns: 4})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				var p codec.Page
				for range 10 {
					if err := c.GetRecords(t.Context(), Request{Iterator: iterator}, &p); err != nil {
						t.Error(err)
						return
					}
					for i, r := range p.Records {
						if !bytes.Equal(r.Data, data[i]) {
							t.Errorf("record %d is wrong", i)
						}
					}
					p.Release()
				}
			})
		}
		wg.Wait()
	}
}

// Poison reveals a record that is used after its page was released.
func TestReleasedPagesArePoisoned(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	client := server.Client()
	iterator, data := stream(t, client)
	c := newCaller(t, client, Options{Reuse: true, Poison: true})
	var p codec.Page
	for range 5 {
		if err := c.GetRecords(t.Context(), Request{Iterator: iterator}, &p); err != nil {
			t.Fatal(err)
		}
		kept := p.Records[20]
		if !bytes.Equal(kept.Data, data[20]) {
			t.Fatal("wrong before the release")
		}
		p.Release()
		if kept.Key[0] != codec.Poisoned || !bytes.Equal(kept.Data, bytes.Repeat([]byte{codec.Poisoned}, len(data[20]))) {
			t.Fatalf("kept %q", kept.Key)
		}
		p.Release()
	}
}

// A user's middleware sees each call and the whole answer without its records.
func TestMiddlewareOfTheUserStays(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	iterator, data := stream(t, server.Client())
	var seen []*kinesis.GetRecordsOutput
	client := server.Client(func(o *kinesis.Options) {
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
			return s.Initialize.Add(middleware.InitializeMiddlewareFunc("spy", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				out, md, err := next.HandleInitialize(ctx, in)
				if result, ok := out.Result.(*kinesis.GetRecordsOutput); ok {
					seen = append(seen, result)
				}
				return out, md, err
			}), middleware.Before)
		})
	})
	c := newCaller(t, client, Options{})
	if path, reason := c.Path(); path != UnderSDK || !strings.Contains(reason, "APIOptions") {
		t.Fatalf("%s because %s", path, reason)
	}
	var p codec.Page
	if err := c.GetRecords(t.Context(), Request{Iterator: iterator}, &p); err != nil || len(p.Records) != len(data) {
		t.Fatal(err, len(p.Records))
	}
	if len(seen) != 1 || *seen[0].NextShardIterator != p.Next || *seen[0].MillisBehindLatest != 0 {
		t.Errorf("the middleware saw %+v", seen)
	}
}

// A middleware may change the request, and may answer the request itself.
func TestMiddlewareOfTheUserMayInterfere(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	iterator, _ := stream(t, server.Client())
	answer := false
	client := server.Client(func(o *kinesis.Options) {
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
			return s.Initialize.Add(middleware.InitializeMiddlewareFunc("meddle", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				if answer {
					return middleware.InitializeOutput{Result: &kinesis.GetRecordsOutput{
						Records: []types.Record{{Data: []byte("made up"), SequenceNumber: aws.String("1")}}, MillisBehindLatest: aws.Int64(5),
					}}, middleware.Metadata{}, nil
				}
				if input, ok := in.Parameters.(*kinesis.GetRecordsInput); ok {
					input.Limit = aws.Int32(2)
					input.DryRun = aws.Bool(false)
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.Before)
		})
	})
	for _, f := range []codec.Format{codec.CBOR, codec.JSON} {
		c := newCaller(t, client, Options{Format: f})
		var p codec.Page
		if err := c.GetRecords(t.Context(), Request{Iterator: iterator}, &p); err != nil || len(p.Records) != 2 {
			t.Fatal(err, len(p.Records))
		}
		answer = true
		if err := c.GetRecords(t.Context(), Request{Iterator: iterator}, &p); err != nil || len(p.Records) != 1 || string(p.Records[0].Data) != "made up" {
			t.Fatal(err, p.Records)
		}
		answer = false
	}
}

func TestWhatIsAskedFor(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true, TLS: true})
	client := server.Client()
	iterator, _ := stream(t, client)
	var mu sync.Mutex
	var calls []kinesistest.Call
	server.Control("GetRecords", func(c *kinesistest.Call) kinesistest.Fault {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, *c)
		return kinesistest.Fault{}
	})
	// This client uses the server's transport without a wrapper. The Caller can then configure the
	// transport for HTTP/1.1.
	own := kinesis.New(client.Options(), func(o *kinesis.Options) {
		o.HTTPClient = &http.Client{Transport: server.Transport()}
		o.Protocol = client.Options().Protocol
	})
	var p codec.Page
	if err := newCaller(t, own, Options{}).GetRecords(t.Context(), Request{Iterator: iterator}, &p); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(calls) != 1 || calls[0].Proto != "HTTP/1.1" || calls[0].Format != "cbor" {
		t.Errorf("%+v", calls)
	}
}
