package sqsletters_test

import (
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/sqsletters"
)

// Records that fail three times become messages of a queue.
func ExampleNew() {
	options := func(client *sqs.Client) (weir.Options, error) {
		queue, err := sqsletters.New(client, "https://sqs.eu-west-1.amazonaws.com/111122223333/orders-dead")
		if err != nil {
			return weir.Options{}, err
		}
		return weir.Options{OnFailure: weir.FailurePolicy{Destination: queue, MaxAttempts: 3}}, nil
	}
	_ = options
}

// The messages have the form of Lambda's destinations for failed batches.
func ExampleNewLambda() {
	options := func(client *sqs.Client, form deadletter.Lambda) (weir.Options, error) {
		queue, err := sqsletters.NewLambda(client, "https://sqs.eu-west-1.amazonaws.com/111122223333/orders-dead", form)
		if err != nil {
			return weir.Options{}, err
		}
		return weir.Options{OnFailure: weir.FailurePolicy{Destination: queue, MaxAttempts: 3}}, nil
	}
	_ = options
}
