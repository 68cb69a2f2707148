package main

import (
	"context"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

// The program acknowledges the records of the queue, and ends when its context ends.
func TestTheFirstQueue(t *testing.T) {
	srv := kinesistest.NewServer(t)
	srv.CreateOnDemandStream("shop")
	srv.CreateQueue(kinesistest.Queue{Stream: "shop", Name: "orders"})
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_KINESIS": srv.URL(), "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x",
	} {
		t.Setenv(name, value)
	}
	srv.Put("shop", "7", []byte("tea"))
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	srv.Control("AcknowledgeQueueRecords", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{After: stop} })
	if err := run(ctx); err != nil || srv.QueueState("orders").Acknowledged != 1 {
		t.Errorf("%v, %+v", err, srv.QueueState("orders"))
	}
}
