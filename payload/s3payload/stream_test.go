package s3payload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/filter"
	"github.com/weir-go/weir/internal/proof/fakes3"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/payload"
	"github.com/weir-go/weir/payload/s3payload"
	"github.com/weir-go/weir/producer"
	"github.com/weir-go/weir/store/memstore"
)

// codec returns a codec with a low threshold.
func codec(t *testing.T, bucket *fakes3.Server, fields ...string) *s3payload.Codec {
	t.Helper()
	client := s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://s3.test"), UsePathStyle: true, HTTPClient: bucket, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
	})
	c, err := s3payload.New(client, "b", s3payload.Options{Threshold: 1 << 10, Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bubble runs f in virtual time, with a stream "s".
func bubble(t *testing.T, f func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true, NoLimits: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", 1)
		f(t, srv, fakes3.New())
	})
}

// record returns record i: each third one is large.
func record(i int) []byte {
	text := "x"
	if i%3 == 0 {
		text = strings.Repeat("x", 2<<10)
	}
	return fmt.Appendf(nil, `{"kind":%q,"number":%d,"text":%q}`, []string{"order", "offer"}[i%2], i, text)
}

// put puts n records with one key.
func put(t *testing.T, srv *kinesistest.Server, codec payload.Codec, n int) {
	t.Helper()
	p, err := producer.New(srv.Client(), producer.Options{Stream: "s", Encode: codec.Encode, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := p.Put(t.Context(), producer.Record{PartitionKey: "k", Data: record(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// handle runs a worker until handler has handled n records.
func handle(t *testing.T, srv *kinesistest.Server, o weir.Options, n int, handler func(context.Context, weir.Record) error) {
	t.Helper()
	o.App, o.Streams, o.Logger = "app", []string{"s"}, slog.New(slog.DiscardHandler)
	ctx, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	c, err := weir.New(srv.Client(), memstore.New(), o)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(ctx, weir.RecordFunc(func(ctx context.Context, r weir.Record) error {
		err := handler(ctx, r)
		if err == nil {
			if n--; n == 0 {
				stop()
			}
		}
		return err
	}))
	if err != nil || n > 0 {
		t.Fatalf("%d records are left: %v", n, err)
	}
}

// The records of a key keep their order, whatever their size and the time of the uploads. S3 often
// fails while the consumer reads. The handler then fails until S3 answers, and no record is lost.
func TestOrderAndOutages(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		bucket.Control(func(call fakes3.Call) fakes3.Fault {
			time.Sleep(time.Duration(call.N%7) * 100 * time.Millisecond)
			return fakes3.None
		})
		c := payload.Chain(payload.Gzip{}, codec(t, bucket))
		put(t, srv, codec(t, bucket), 30)
		if got := len(bucket.Keys()); got != 10 {
			t.Errorf("%d objects for 10 large records", got)
		}
		bucket.Control(func(call fakes3.Call) fakes3.Fault {
			if call.Method == "GET" && call.N%3 > 0 {
				return fakes3.Refuse
			}
			return fakes3.None
		})
		var failures, got int
		handle(t, srv, weir.Options{}, 30, func(ctx context.Context, r weir.Record) error {
			data, err := payload.Decode(ctx, r.Data, c)
			if err != nil {
				failures++
				return err
			}
			if !bytes.Equal(data, record(got)) || r.PartitionKey != "k" {
				t.Errorf("record %d is %.40s", got, data)
			}
			got++
			return nil
		})
		if failures != 20 {
			t.Errorf("%d failures, want 20", failures)
		}
	})
}

// A handler can dead-letter a record whose object is missing. The dead letter contains the claim
// check, so the record can be handled when the object is back.
func TestMissingObjectsBecomeDeadLetters(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		c := codec(t, bucket)
		put(t, srv, c, 4) // the records 0 and 3 are large
		lost := bucket.Keys()
		var content [][]byte
		for _, key := range lost {
			content = append(content, bucket.Get(key))
			bucket.Delete(key)
		}
		var letters []deadletter.Letter
		o := weir.Options{OnFailure: weir.FailurePolicy{
			Destination: deadletter.Func(func(_ context.Context, all []deadletter.Letter) error {
				letters = append(letters, all...)
				return nil
			}),
		}}
		handle(t, srv, o, 2, func(ctx context.Context, r weir.Record) error {
			_, err := payload.Decode(ctx, r.Data, c)
			if errors.Is(err, s3payload.ErrMissing) {
				return weir.Reject(err)
			}
			return err
		})
		if len(letters) != 2 || !strings.Contains(letters[0].Error, "the object is missing") {
			t.Fatalf("dead letters: %+v", letters)
		}
		for i, key := range lost {
			bucket.Put(key, content[i])
		}
		for i, l := range letters {
			if got, err := payload.Decode(t.Context(), l.Data, c); err != nil || !bytes.Equal(got, record(3*i)) {
				t.Errorf("%s: %.40s, %v", l.Data, got, err)
			}
		}
	})
}

// A filter matches the fields that claim checks contain, without a call to S3.
func TestFiltersMatchTheFieldsOfClaimChecks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		c := codec(t, bucket, "kind")
		put(t, srv, c, 12)
		o := weir.Options{Filter: weir.Filter{By: filter.MustCompile(`{"data":{"kind":["order"]}}`)}}
		var got []string
		handle(t, srv, o, 6, func(ctx context.Context, r weir.Record) error {
			data, err := payload.Decode(ctx, r.Data, c)
			got = append(got, string(data))
			return err
		})
		var want []string
		for i := range 6 {
			want = append(want, string(record(2*i)))
		}
		if !slices.Equal(got, want) || bucket.Calls("GET") != 2 { // the records 0 and 6
			t.Errorf("%d downloads, %.50q", bucket.Calls("GET"), got)
		}
	})
}

// A failed upload is the error of Put. The record is not in the stream, and the next ones are.
func TestFailedUploadsAreErrorsOfPut(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		bucket.Control(func(call fakes3.Call) fakes3.Fault {
			return map[bool]fakes3.Fault{true: fakes3.Deny}[call.Method == "PUT" && call.N == 1]
		})
		c := codec(t, bucket)
		p, err := producer.New(srv.Client(), producer.Options{Stream: "s", Encode: c.Encode, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			_, err := p.Put(t.Context(), producer.Record{PartitionKey: "k", Data: record(i)})
			if failed := err != nil && strings.Contains(err.Error(), "AccessDenied"); failed != (i == 0) {
				t.Errorf("record %d: %v", i, err)
			}
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		var got [][]byte
		handle(t, srv, weir.Options{}, 3, func(ctx context.Context, r weir.Record) error {
			data, err := payload.Decode(ctx, r.Data, c)
			got = append(got, data)
			return err
		})
		for i, data := range got {
			if !bytes.Equal(data, record(i+1)) {
				t.Errorf("record %d is %.40s", i, data)
			}
		}
	})
}
