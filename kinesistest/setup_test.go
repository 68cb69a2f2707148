package kinesistest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/kinesistest"
)

// start returns a server, by default without rate limits, and a client that does not retry. A test
// then receives the answer to each call.
func start(tb testing.TB, cfg ...kinesistest.Config) (*kinesistest.Server, *kinesis.Client) {
	tb.Helper()
	if len(cfg) == 0 {
		cfg = []kinesistest.Config{{NoLimits: true, InMemory: true}}
	}
	s := kinesistest.NewServer(tb, cfg...)
	return s, s.Client(noRetry)
}

func noRetry(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} }

// wantCode fails the test unless err is an error of the service with this code.
func wantCode(tb testing.TB, err error, code string) {
	tb.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) {
		tb.Fatalf("got %v, want %s", err, code)
	}
	if api.ErrorCode() != code {
		tb.Fatalf("got %s: %s, want %s", api.ErrorCode(), api.ErrorMessage(), code)
	}
	if api.ErrorMessage() == "" {
		tb.Fatalf("%s has no message", code)
	}
}

// ok returns the result, or fails the test if there is an error.
func ok[T any](tb testing.TB) func(T, error) T {
	return func(v T, err error) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

type reader struct {
	tb     testing.TB
	ctx    context.Context
	client *kinesis.Client
	stream string
}

func (r reader) iterator(shard string, kind types.ShardIteratorType, more ...func(*kinesis.GetShardIteratorInput)) *string {
	r.tb.Helper()
	in := &kinesis.GetShardIteratorInput{StreamName: &r.stream, ShardId: &shard, ShardIteratorType: kind}
	for _, f := range more {
		f(in)
	}
	return ok[*kinesis.GetShardIteratorOutput](r.tb)(r.client.GetShardIterator(r.ctx, in)).ShardIterator
}

func at(sequence string) func(*kinesis.GetShardIteratorInput) {
	return func(in *kinesis.GetShardIteratorInput) { in.StartingSequenceNumber = &sequence }
}

func when(t time.Time) func(*kinesis.GetShardIteratorInput) {
	return func(in *kinesis.GetShardIteratorInput) { in.Timestamp = &t }
}

func (r reader) page(iterator *string, limit ...int32) *kinesis.GetRecordsOutput {
	r.tb.Helper()
	in := &kinesis.GetRecordsInput{ShardIterator: iterator}
	if len(limit) > 0 {
		in.Limit = &limit[0]
	}
	return ok[*kinesis.GetRecordsOutput](r.tb)(r.client.GetRecords(r.ctx, in))
}

func (r reader) shards(filter *types.ShardFilter) []types.Shard {
	r.tb.Helper()
	in := &kinesis.ListShardsInput{StreamName: &r.stream, ShardFilter: filter}
	return ok[*kinesis.ListShardsOutput](r.tb)(r.client.ListShards(r.ctx, in)).Shards
}

func ids(shards []types.Shard) string {
	var s []string
	for _, sh := range shards {
		s = append(s, number(*sh.ShardId))
	}
	return fmt.Sprint(s)
}

// number returns the number in the ID of a shard.
func number(id string) string {
	var n int
	if _, err := fmt.Sscanf(id, "shardId-%d", &n); err != nil {
		return id
	}
	return fmt.Sprint(n)
}

func shardID(n int) string { return fmt.Sprintf("shardId-%012d", n) }

func texts(records []types.Record) string {
	var s []string
	for _, r := range records {
		s = append(s, string(r.Data))
	}
	return fmt.Sprint(s)
}

// post sends a body like an SDK does. The change functions can modify the request.
func post(tb testing.TB, s *kinesistest.Server, action, contentType string, body []byte, change ...func(*http.Request)) (status int, header http.Header, answer []byte) {
	tb.Helper()
	req := ok[*http.Request](tb)(http.NewRequestWithContext(tb.Context(), http.MethodPost, s.URL()+"/", bytes.NewReader(body)))
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Amz-Target", "Kinesis_20131202."+action)
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=k/20200101/us-east-1/kinesis/aws4_request, SignedHeaders=host, Signature=00")
	req.Header.Set("X-Amz-Date", "20200101T000000Z")
	for _, f := range change {
		f(req)
	}
	res := ok[*http.Response](tb)(s.HTTPClient().Do(req))
	defer res.Body.Close()
	return res.StatusCode, res.Header, ok[[]byte](tb)(io.ReadAll(res.Body))
}

const (
	jsonType = "application/x-amz-json-1.1"
	cborType = "application/x-amz-cbor-1.1"
)
