package lambda_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/lambda"
)

var source = lambda.Source{Region: "eu-west-1", StreamARN: "arn:s", RoleARN: "arn:r"}

func TestAnEventHasLambdasForm(t *testing.T) {
	got := lambda.AppendEvent(nil, source, []weir.Record{{Data: []byte("a\xff"), PartitionKey: "k\"ü", SequenceNumber: "49"}})
	const want = `{"Records":[{"kinesis":{"kinesisSchemaVersion":"1.0","partitionKey":"k\"ü","sequenceNumber":"49","data":"Yf8=",` +
		`"approximateArrivalTimestamp":0.000},"eventSource":"aws:kinesis","eventVersion":"1.0","eventID":":49+0","eventName":"aws:kinesis:record",` +
		`"invokeIdentityArn":"arn:r","awsRegion":"eu-west-1","eventSourceARN":"arn:s"}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestABatchThatDoesNotFitIsSeveralEvents(t *testing.T) {
	big := make([]byte, 3<<20) // 4 MiB in base64
	var sizes []int
	h := lambda.Handler{
		Source: func(string) lambda.Source { return source },
		Invoke: func(_ context.Context, _ *weir.Batch, event []byte) ([]byte, error) {
			var e struct{ Records []json.RawMessage }
			if err := json.Unmarshal(event, &e); err != nil || len(event) > lambda.MaxBytes {
				t.Errorf("%d bytes, %v", len(event), err)
			}
			sizes = append(sizes, len(e.Records))
			return nil, nil
		},
	}
	b := &weir.Batch{Records: []weir.Record{
		{Data: []byte("x"), SequenceNumber: "1"}, {Data: big, SequenceNumber: "2"}, {Data: big, SequenceNumber: "3"}, {Data: []byte("y"), SequenceNumber: "4"},
	}}
	if err := h.Handle(t.Context(), b); err != nil || len(sizes) != 2 || sizes[0] != 2 || sizes[1] != 2 {
		t.Errorf("%v, %v", sizes, err)
	}
	b.Records = append(b.Records, weir.Record{Data: make([]byte, 5<<20), SequenceNumber: "5"})
	err := h.Handle(t.Context(), b)
	if r, named := weir.FailedRecord(err); !named || r.SequenceNumber != "5" || !strings.Contains(err.Error(), "6 MiB") {
		t.Errorf("%v", err)
	}
}

// If the function fails at one event, it has not received the records of later events. Those
// records must not be dead-lettered.
func TestTheRecordAtFaultIsFoundInABatchOfSeveralEvents(t *testing.T) {
	big := make([]byte, 3<<20)
	h := lambda.Handler{
		Source: func(string) lambda.Source { return source },
		Invoke: func(_ context.Context, _ *weir.Batch, event []byte) ([]byte, error) {
			if strings.Contains(string(event), `"sequenceNumber":"2"`) {
				return nil, &lambda.FunctionError{Type: "E", Message: "no"}
			}
			return nil, nil
		},
	}
	b := &weir.Batch{Records: []weir.Record{{SequenceNumber: "1"}, {SequenceNumber: "2", Data: big}, {SequenceNumber: "3", Data: big}}}
	if r, named := weir.FailedRecord(h.Handle(t.Context(), b)); !named || r.SequenceNumber != "2" {
		t.Errorf("failed at %q", r.SequenceNumber)
	}
}
