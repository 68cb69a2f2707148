package s3payload_test

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/payload"
	"github.com/weir-go/weir/payload/s3payload"
	"github.com/weir-go/weir/producer"
)

// largePayloads returns a codec that compresses, and stores what is then still large in S3.
func largePayloads(client *s3.Client) (payload.Codec, error) {
	large, err := s3payload.New(client, "my-bucket", s3payload.Options{Prefix: "orders/"})
	if err != nil {
		return nil, err
	}
	return payload.Chain(payload.Gzip{}, large), nil
}

// puttingLarge returns the options of a producer with the codec.
func puttingLarge(codec payload.Codec) producer.Options {
	return producer.Options{Stream: "orders", Encode: codec.Encode}
}

// handlingLarge returns a handler that gets the data. A record whose object does not exist becomes
// a dead letter, and other failures of S3 are retried.
func handlingLarge(codec payload.Codec, next func(data []byte) error) weir.Handler {
	return weir.RecordFunc(func(ctx context.Context, r weir.Record) error {
		data, err := payload.Decode(ctx, r.Data, codec)
		if errors.Is(err, s3payload.ErrMissing) {
			return weir.Reject(err)
		}
		if err != nil {
			return err
		}
		return next(data)
	})
}

// Large payloads go to S3, and the handler gets them from there.
func ExampleNew() {
	_, _, _ = largePayloads, puttingLarge, handlingLarge
}
