package s3letters_test

import (
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/sink/s3sink/s3letters"
)

// Records that fail three times become objects in a bucket.
func ExampleNew() {
	options := func(client *s3.Client) (weir.Options, error) {
		bucket, err := s3letters.New(client, "my-bucket", "dead")
		if err != nil {
			return weir.Options{}, err
		}
		return weir.Options{OnFailure: weir.FailurePolicy{Destination: bucket, MaxAttempts: 3}}, nil
	}
	_ = options
}

// The objects have the form of Lambda's destinations for failed batches.
func ExampleNewLambda() {
	options := func(client *s3.Client, form deadletter.Lambda) (weir.Options, error) {
		bucket, err := s3letters.NewLambda(client, "my-bucket", "dead", form)
		if err != nil {
			return weir.Options{}, err
		}
		return weir.Options{OnFailure: weir.FailurePolicy{Destination: bucket, MaxAttempts: 3}}, nil
	}
	_ = options
}
