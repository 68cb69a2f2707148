package sqsletters

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/weir-go/weir/deadletter"
)

// For any message in a queue, the result is either a dead letter or an error.
func FuzzMessage(f *testing.F) {
	for _, l := range []deadletter.Letter{letter(1, "key"), {}} {
		text, err := json.Marshal(l)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("m", string(text))
	}
	f.Add("", `{"weir_letter":1,"id":"a","KinesisBatchInfo":{}}`)
	f.Fuzz(func(t *testing.T, id, body string) {
		i, err := parse(types.Message{MessageId: &id, Body: &body})
		if (err == nil) != (i.ID != "") || (err == nil) != (i.State == deadletter.Kept) {
			t.Errorf("%+v, %v", i, err)
		}
	})
}

// For any attributes of a queue, no number is negative.
func FuzzAttributes(f *testing.F) {
	f.Add("3", "262144", `{"deadLetterTargetArn":"x","maxReceiveCount":"5"}`)
	f.Add("-1", "", `{"maxReceiveCount":-5}`)
	f.Fuzz(func(t *testing.T, messages, size, redrive string) {
		a := aboutOf(map[string]string{
			"ApproximateNumberOfMessages": messages, "ApproximateNumberOfMessagesNotVisible": messages, "MaximumMessageSize": size, "RedrivePolicy": redrive,
		})
		if min(a.Messages, a.InFlight, a.MaxBytes, a.MaxReceives) < 0 {
			t.Errorf("%+v", a)
		}
	})
}
