package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lambda"
	"github.com/weir-go/weir/queue"
)

const queueARN = "arn:aws:kinesis:eu-west-1:111122223333:queue/q-1"

func queued(ids ...string) (all []queue.Record) {
	for _, id := range ids {
		all = append(all, queue.Record{Queue: queueARN, ID: id, PartitionKey: "k", Data: []byte(id), Arrived: time.UnixMilli(1795392063400)})
	}
	return all
}

func TestTheEventOfAQueue(t *testing.T) {
	records := queued("r1", "r1")
	records[1].Sub, records[1].PartitionKey = 2, ""
	var got string
	h := lambda.QueueHandler{RoleARN: "arn:role", Invoke: func(_ context.Context, _ []queue.Record, event []byte) ([]byte, error) {
		got = string(event)
		return nil, nil
	}}
	if err := h.Handle(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	const rest = `"eventName":"aws:kinesis:record","invokeIdentityArn":"arn:role","awsRegion":"eu-west-1","eventSourceARN":"` + queueARN + `"}`
	const want = `{"Records":[{"kinesis":{"kinesisSchemaVersion":"1.0","partitionKey":"k","sequenceNumber":"r1","data":"cjE=","approximateArrivalTimestamp":1795392063.400},` +
		`"eventSource":"aws:kinesis","eventVersion":"1.0","eventID":"queue:r1",` + rest +
		`,{"kinesis":{"kinesisSchemaVersion":"1.0","partitionKey":"","sequenceNumber":"r1+2","data":"cjE=","approximateArrivalTimestamp":1795392063.400},` +
		`"eventSource":"aws:kinesis","eventVersion":"1.0","eventID":"queue:r1+2",` + rest + `]}`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// failing returns the IDs of the records that an error of Handle names.
func failing(err error, records []queue.Record) (ids []string) {
	for _, r := range queue.FailedRecords(err, records) {
		ids = append(ids, r.Key())
	}
	return ids
}

func TestAnswersOfAQueuesFunction(t *testing.T) {
	oops := errors.New("oops")
	for _, c := range []struct {
		name, answer string
		err          error
		report       bool
		failed       []string
		whole        bool
	}{
		{"success", ``, nil, true, nil, false},
		{"two items", `{"batchItemFailures":[{"itemIdentifier":"r3"},{"itemIdentifier":"r1"}]}`, nil, true, []string{"r1", "r3"}, false},
		{"not asked", `{"batchItemFailures":[{"itemIdentifier":"r3"}]}`, nil, false, nil, false},
		{"an unknown item", `{"batchItemFailures":[{"itemIdentifier":"r9"}]}`, nil, true, nil, true},
		{"an error", ``, oops, true, nil, true},
	} {
		records := queued("r1", "r2", "r3")
		h := lambda.QueueHandler{Report: c.report, Invoke: func(context.Context, []queue.Record, []byte) ([]byte, error) { return []byte(c.answer), c.err }}
		err := h.Handle(t.Context(), records)
		if got := failing(err, records); !slices.Equal(got, c.failed) || (err != nil) != (c.whole || c.failed != nil) {
			t.Errorf("%s: %v names %q", c.name, err, got)
		}
	}
}

// Records that do not fit into one event get several. If one of these fails, its records are passed
// one by one.
func TestLargeRecordsOfAQueue(t *testing.T) {
	records := queued("r1", "r2", "r3", "r4", "r5")
	for i := range records {
		records[i].Data = []byte(strings.Repeat("x", 2<<20))
	}
	records[1].Data = []byte(strings.Repeat("x", 5<<20)) // fits into no event
	records[4].Arrived = time.Now().Add(-time.Hour)
	records[0].Arrived, records[1].Arrived, records[2].Arrived, records[3].Arrived = time.Now(), time.Now(), time.Now(), time.Time{}
	var calls []string
	h := lambda.QueueHandler{MaxAge: time.Minute, Invoke: func(_ context.Context, some []queue.Record, event []byte) ([]byte, error) {
		var ids []string
		for _, r := range some {
			ids = append(ids, r.ID)
		}
		calls = append(calls, strings.Join(ids, "+"))
		if len(event) > lambda.MaxBytes {
			t.Errorf("%d bytes", len(event))
		}
		if slices.Contains(ids, "r3") {
			return nil, errors.New("oops")
		}
		return nil, nil
	}}
	err := h.Handle(t.Context(), records)
	if got := fmt.Sprint(calls); got != "[r1+r3 r1 r3 r4]" {
		t.Errorf("calls %s", got)
	}
	if got := failing(err, records); !slices.Equal(got, []string{"r2", "r3", "r5"}) || !weir.IsRejected(err) || !strings.Contains(err.Error(), "6 MiB") {
		t.Errorf("%v names %q", err, got)
	}
}

// A function gets the records of a queue. Those that it names are handled again, until one is a
// dead letter. The others are acknowledged.
func TestAFunctionOnAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateOnDemandStream("s")
		srv.CreateQueue(kinesistest.Queue{Stream: "s", Name: "orders"})
		for i := range 30 {
			srv.Put("s", fmt.Sprint(i), fmt.Append(nil, i))
		}
		var letters []deadletter.Letter
		c, err := queue.New(srv.AWSConfig(), queue.Options{
			Queue: "orders", Concurrency: 1, Logger: slog.New(slog.DiscardHandler),
			OnFailure: queue.FailurePolicy{MaxAttempts: 3, OutageGrace: -1, Destination: deadletter.Func(func(_ context.Context, l []deadletter.Letter) error {
				letters = append(letters, l...)
				return nil
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		got := map[string]int{}
		err = c.Run(ctx, queue.BatchFunc(lambda.QueueHandler{Report: true, Invoke: func(_ context.Context, _ []queue.Record, event []byte) ([]byte, error) {
			var e struct {
				Records []struct {
					Kinesis struct {
						SequenceNumber string
						Data           []byte
					}
				}
			}
			if err := json.Unmarshal(event, &e); err != nil {
				t.Error(err)
			}
			var items []string
			for _, r := range e.Records {
				text := string(r.Kinesis.Data)
				if got[text]++; text == "13" || text == "7" && got[text] == 1 {
					items = append(items, fmt.Sprintf(`{"itemIdentifier":%q}`, r.Kinesis.SequenceNumber))
				}
			}
			return []byte(`{"batchItemFailures":[` + strings.Join(items, ",") + `]}`), nil
		}}.Handle))
		n := c.Counts()
		if err != nil || len(got) != 30 || got["13"] != 3 || got["7"] != 2 || got["5"] != 1 || len(letters) != 1 || n.Acknowledged != 30 {
			t.Errorf("%v, %v, %d letters, %+v", err, got, len(letters), n)
		}
	})
}
