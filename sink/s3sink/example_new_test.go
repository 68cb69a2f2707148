package s3sink_test

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/sink/s3sink"
)

// The sink writes every record into a bucket exactly once.
func ExampleNew() {
	archive := func(ctx context.Context, consumer *weir.Consumer, client *s3.Client) error {
		sink, err := s3sink.New(client, "my-bucket", s3sink.Options{Prefix: "raw", MaxAge: 5 * time.Minute})
		if err != nil {
			return err
		}
		return consumer.RunPull(ctx, sink.PullHandler())
	}
	_ = archive
}
