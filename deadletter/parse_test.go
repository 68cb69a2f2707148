package deadletter_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-go/weir/deadletter"
)

func TestWhatIsNoLetter(t *testing.T) {
	message, err := lambda.Message(failed(deadletter.Attempts, 1))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                            "JSON",
		"<html>":                      "invalid character",
		"null":                        `it has no "weir_letter"`,
		`{"version":"1.0"}`:           `it has no "weir_letter"`,
		`[]`:                          "cannot unmarshal array",
		`{"weir_letter":2,"id":"a"}`:  "it has form 2; this weir reads up to 1",
		`{"weir_letter":-1,"id":"a"}`: "it has form -1",
		`{"weir_letter":1}`:           "it has no id",
		string(message):               "it is in Lambda's form",
	} {
		if l, err := deadletter.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || l.ID != "" {
			t.Errorf("%s: %+v, %v", text, l, err)
		}
	}
}

// A dead letter that can be parsed is the same after it is written and parsed again.
func FuzzParse(f *testing.F) {
	for _, l := range failed(deadletter.Killed, 1, 2) {
		l.Version = deadletter.Version
		text, err := json.Marshal(l)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"weir_letter":1,"id":"a","KinesisBatchInfo":{},"arrived":"2026-11-23T01:02:03+01:00","data":null}`))
	f.Add([]byte(`{"weir_letter":1e0,"ID":"\ud800","attempts":-1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		one, err := deadletter.Parse(text)
		if err != nil {
			if !reflect.ValueOf(one).IsZero() {
				t.Errorf("%+v beside %v", one, err)
			}
			return
		}
		again, err := json.Marshal(one)
		if err != nil {
			return // a year that JSON cannot represent
		}
		two, err := deadletter.Parse(again)
		if err != nil || !reflect.DeepEqual(one.Data, two.Data) && len(one.Data)+len(two.Data) > 0 || one.ID != two.ID || one.Version != two.Version || !one.Arrived.Equal(two.Arrived) {
			t.Errorf("%+v\nbecame\n%+v, %v", one, two, err)
		}
	})
}
