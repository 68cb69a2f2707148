package lambda_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/lambda"
	"github.com/weir-go/weir/queue"
)

// The code of a Lambda function handles records outside of Lambda. Its answer names the records
// that failed.
func ExampleAppendEvent() {
	records := []weir.Record{
		{SequenceNumber: "17", PartitionKey: "customer-7", Data: []byte("two teas")},
		{SequenceNumber: "18", PartitionKey: "customer-8", Data: []byte("a moon")},
	}
	event := lambda.AppendEvent(nil, lambda.Source{Region: "eu-west-1"}, records)
	fmt.Println(len(event) > 0)

	// The function handles the event and returns this answer.
	answer := []byte(`{"batchItemFailures": [{"itemIdentifier": "18"}]}`)
	first, err := lambda.FailedFrom(answer, []string{"17", "18"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("continue at %s\n", records[first].Data)
	// Output:
	// true
	// continue at a moon
}

// A process with Lambda's runtime client connects to the address in AWS_LAMBDA_RUNTIME_API.
func ExampleNewRuntime() {
	r, err := lambda.NewRuntime("arn:aws:lambda:eu-west-1:111122223333:function:orders")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	fmt.Println(r.Addr() != "") // the value of AWS_LAMBDA_RUNTIME_API

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = r.Invoke(ctx, []byte(`{"Records": []}`), time.Now().Add(time.Second))
	fmt.Println(err != nil) // no process has connected
	// Output:
	// true
	// true
}

// The code of a Lambda function handles the records of a queue.
func ExampleQueueHandler() {
	h := lambda.QueueHandler{Report: true, Invoke: func(_ context.Context, _ []queue.Record, event []byte) ([]byte, error) {
		// A program calls the function here, for example with Runtime.Invoke.
		return []byte(`{"batchItemFailures": [{"itemIdentifier": "r2"}]}`), nil
	}}
	records := []queue.Record{{ID: "r1", Data: []byte("two teas")}, {ID: "r2", Data: []byte("a moon")}}
	err := h.Handle(context.Background(), records)
	for _, r := range queue.FailedRecords(err, records) {
		fmt.Printf("%s is handled again\n", r.Data)
	}
	// Output: a moon is handled again
}
