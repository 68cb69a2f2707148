package lambda_test

import (
	"testing"

	"github.com/weir-go/weir/lambda"
)

// failed is the expected result of an answer that fails the whole batch.
const failed = -1

func TestAnswersMeanWhatTheyMeanToLambda(t *testing.T) {
	ids := []string{"10", "11", "12", "12"} // the last two records are in one aggregate
	for _, c := range []struct {
		name, answer string
		want         int
	}{
		{"no answer", ``, 4},
		{"null", `null`, 4},
		{"an empty string", `""`, 4},
		{"an empty object", `{}`, 4},
		{"an object of something else", `{"statusCode":200}`, 4},
		{"an empty list", `{"batchItemFailures":[]}`, 4},
		// Names that are almost right.
		{"a capital", `{"BatchItemFailures":[{"itemIdentifier":"11"}]}`, failed},
		{"one of several", `{"statusCode":200,"batchItemFailure":[{"itemIdentifier":"11"}]}`, failed},
		{"snakes", `{"batch_item_failures":[{"itemIdentifier":"11"}]}`, failed},
		{"swapped letters", `{"batchItemFaliures":["11"]}`, failed},
		{"a text instead of a list", `{"batchitemfailures":"11"}`, failed},
		{"one that is empty", `{"BatchItemFailures":[]}`, 4},
		{"one that is null", `{"BatchItemFailures": null}`, 4},
		{"beside the right one", `{"BatchItemFailures":[1],"batchItemFailures":[{"itemIdentifier":"11"}]}`, 1},
		{"a name like others", `{"failures":["11"],"batchItems":["11"],"itemFailures":[1],"batchResults":[1]}`, 4},
		{"a null list", `{"batchItemFailures":null}`, 4},
		{"one ID", `{"batchItemFailures":[{"itemIdentifier":"11"}]}`, 1},
		{"the first", `{"batchItemFailures":[{"itemIdentifier":"10"}]}`, 0},
		{"the lowest of several IDs", `{"batchItemFailures":[{"itemIdentifier":"12"},{"itemIdentifier":"11"}]}`, 1},
		{"an ID that several records share", `{"batchItemFailures":[{"itemIdentifier":"12"}]}`, 2},
		{"an empty ID", `{"batchItemFailures":[{"itemIdentifier":""}]}`, failed},
		{"an ID that is null", `{"batchItemFailures":[{"itemIdentifier":null}]}`, failed},
		{"an ID that is a number", `{"batchItemFailures":[{"itemIdentifier":11}]}`, failed},
		{"an ID that is not in the batch", `{"batchItemFailures":[{"itemIdentifier":"13"}]}`, failed},
		{"one of several is not in the batch", `{"batchItemFailures":[{"itemIdentifier":"11"},{"itemIdentifier":"13"}]}`, failed},
		{"another name", `{"batchItemFailures":[{"itemId":"11"}]}`, failed},
		{"a name in other letters", `{"batchItemFailures":[{"ItemIdentifier":"11"}]}`, failed},
		{"an item that is null", `{"batchItemFailures":[null]}`, failed},
		{"no list", `{"batchItemFailures":{"itemIdentifier":"11"}}`, failed},
		// Lambda's behaviour for these answers is not known.
		{"a list at the top", `[]`, failed},
		{"a number", `5`, failed},
		{"a text", `"ok"`, failed},
		{"no JSON", `done`, failed},
		{"JSON and more", `{} {}`, failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := lambda.FailedFrom([]byte(c.answer), ids)
			if err != nil {
				got = failed
			}
			if got != c.want {
				t.Errorf("%s: %d, want %d (%v)", c.answer, got, c.want, err)
			}
		})
	}
}

func FuzzFailedFrom(f *testing.F) {
	f.Add([]byte(`{"batchItemFailures":[{"itemIdentifier":"11"}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		ids := []string{"10", "11"}
		n, err := lambda.FailedFrom(answer, ids)
		if n < 0 || n > len(ids) || err != nil && n != 0 {
			t.Fatalf("%d, %v", n, err)
		}
	})
}
