package lambda_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/lambda"
)

// BenchmarkBatch handles batches of 100 records of 1 KiB with a function that answers immediately.
// It compares a function behind the Runtime API with a function in the same process.
func BenchmarkBatch(b *testing.B) {
	batch := &weir.Batch{Stream: "s", Shard: "shard"}
	for i := range 100 {
		batch.Records = append(batch.Records, weir.Record{Data: bytes.Repeat([]byte("x"), 1<<10), PartitionKey: "k", SequenceNumber: fmt.Sprint(i)})
	}
	of := func(string) lambda.Source { return source }
	run := func(b *testing.B, h lambda.Handler) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			if err := h.Handle(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("in the process", func(b *testing.B) {
		run(b, lambda.Handler{Source: of, Report: true, Invoke: func(context.Context, *weir.Batch, []byte) ([]byte, error) { return nil, nil }})
	})
	b.Run("over the runtime API", func(b *testing.B) {
		r, err := lambda.NewRuntime("arn:f")
		if err != nil {
			b.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { // ends when the API is closed
			defer close(ended)
			answering("http://" + r.Addr() + "/2018-06-01/runtime/invocation/")
		}()
		<-r.Ready()
		run(b, lambda.Handler{Source: of, Report: true, Invoke: func(ctx context.Context, _ *weir.Batch, event []byte) ([]byte, error) {
			return r.Invoke(ctx, event, time.Now().Add(time.Minute))
		}})
		r.Close()
		<-ended
	})
}

// answering runs a function that answers every event with an empty answer, until the API is closed.
func answering(base string) {
	for {
		res, err := http.Get(base + "next")
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		res, err = http.Post(base+res.Header.Get("Lambda-Runtime-Aws-Request-Id")+"/response", "application/json", strings.NewReader("{}"))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}
