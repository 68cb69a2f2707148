package s3letters_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/fakes3"
	"github.com/weir-go/weir/sink/s3sink/s3letters"
)

var form = deadletter.Lambda{
	FunctionARN: "arn:aws:lambda:eu-west-1:111122223333:function:f", StreamARN: "arn:aws:kinesis:eu-west-1:111122223333:stream/s",
}

func lambda(t *testing.T, bucket *fakes3.Server) *s3letters.Lambda {
	t.Helper()
	l, err := s3letters.NewLambda(clientOf(bucket), "b", "dead", form)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Programs find Lambda's objects by their keys.
func TestObjectsOfLambdasForm(t *testing.T) {
	bucket := fakes3.New()
	l := lambda(t, bucket)
	if err := l.Writable(t.Context()); err != nil {
		t.Fatal(err)
	}
	letters := []deadletter.Letter{letter("1"), letter("2"), letter("3")}
	letters[2].Shard = "shardId-000000000001"
	for range 2 { // putting the same dead letters again writes the same objects
		if err := l.Put(t.Context(), letters); err != nil {
			t.Fatal(err)
		}
	}
	const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	key := regexp.MustCompile(`^dead/aws/lambda/(` + uuid + `)/shardId-00000000000[01]/2026/11/24/2026-11-24T01\.02\.03-` + uuid + `$`)
	keys := slices.DeleteFunc(bucket.Keys(), func(k string) bool { return k == "dead/_weir/letters" })
	mappings := map[string]bool{}
	for _, k := range keys {
		found := key.FindStringSubmatch(k)
		if found == nil {
			t.Fatalf("%q", keys)
		}
		mappings[found[1]] = true
	}
	if len(keys) != 2 || len(mappings) != 1 {
		t.Fatalf("%q", keys)
	}
	var m struct {
		Payload          string
		KinesisBatchInfo struct{ BatchSize int }
	}
	text := bucket.Get(keys[0])
	if err := json.Unmarshal(text, &m); err != nil || !strings.Contains(m.Payload, `"data":"cmVjb3JkIDI="`) || strings.Contains(m.Payload, "cmVjb3JkIDM=") {
		t.Errorf("%s, %v", text, err)
	}
	if all, failed := items(t, box(t, bucket)); len(all)+len(failed) != 0 {
		t.Errorf("a box sees %q, %q", all, failed)
	}
}

func TestObjectsOfLambdasFormInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := fakes3.New()
		bucket.Control(func(fakes3.Call) fakes3.Fault { return fakes3.Deny })
		l := lambda(t, bucket)
		if err := l.Writable(t.Context()); err == nil {
			t.Error("it is writable")
		}
		if err := l.Put(t.Context(), []deadletter.Letter{letter("1")}); err == nil {
			t.Error("it was put")
		}
	})
}

func TestWhatNewLambdaRefuses(t *testing.T) {
	client := s3.New(s3.Options{})
	if _, err := s3letters.NewLambda(client, "b", "", deadletter.Lambda{FunctionARN: "f"}); err == nil || !strings.Contains(err.Error(), "StreamARN") {
		t.Errorf("%v", err)
	}
	if _, err := s3letters.NewLambda(client, "", "", form); err == nil || !strings.Contains(err.Error(), "no bucket is named") {
		t.Errorf("%v", err)
	}
}
