package kinesistest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

// queueClient calls the operations of queues over HTTP, as an SDK does. The Go SDK has no such
// operations yet.
type queueClient struct {
	tb  testing.TB
	s   *kinesistest.Server
	arn string // of the queue
}

// startQueue returns a server with an on-demand stream "s", and a client of its queue "q".
func startQueue(tb testing.TB, cfg kinesistest.Config, q kinesistest.Queue) queueClient {
	tb.Helper()
	cfg.InMemory, cfg.NoLimits = true, true
	s := kinesistest.NewServer(tb, cfg)
	s.CreateOnDemandStream("s")
	q.Stream, q.Name = "s", "q"
	return queueClient{tb, s, s.CreateQueue(q)}
}

// putAll puts records whose keys and data are the given texts.
func (c queueClient) putAll(texts ...string) {
	c.tb.Helper()
	for _, text := range texts {
		c.s.Put("s", text, []byte(text))
	}
}

type queueRecord struct {
	ReceiptHandle, RecordId, PartitionKey              string //nolint:revive // the service's names
	Data                                               []byte
	ApproximateArrivalTimestamp, FirstReceiveTimestamp float64
	ReceiveCount                                       int
}

type queueEntry struct {
	ReceiptHandle            string
	VisibilityTimeoutSeconds *int   `json:",omitempty"`
	ErrorCode, ErrorMessage  string `json:",omitempty"`
}

type queueDescription struct {
	QueueName, QueueARN, QueueStatus string
	QueueCreationTimestamp           float64
	StreamConfigurationList          []struct {
		StreamARN        string
		StartingPosition struct {
			Type      string
			Timestamp float64
		}
	}
	QueueAttributes struct {
		VisibilityTimeoutSeconds int
		DeadLetterConfiguration  struct {
			TargetType      string
			MaxReceiveCount int
		}
	}
	Streams []struct {
		StreamARN               string
		StreamCreationTimestamp float64
	}
}

type queueAnswer struct {
	Type               string `json:"__type"`
	Message            string
	QueueDescription   queueDescription
	QueueSummaries     []queueDescription
	NextToken          string
	QueueRecords       []queueRecord
	Successful, Failed []queueEntry
}

// call makes a call. fields are the fields of the request after QueueARN, as JSON without braces.
func (c queueClient) call(action, fields string) queueAnswer {
	c.tb.Helper()
	if c.arn != "" {
		fields = strings.TrimSuffix(fmt.Sprintf(`"QueueARN":%q,%s`, c.arn, fields), ",")
	}
	status, _, body := post(c.tb, c.s, action, jsonType, []byte("{"+fields+"}"))
	var a queueAnswer
	if len(body) > 0 {
		if err := json.Unmarshal(body, &a); err != nil {
			c.tb.Fatalf("%s: %s: %v", action, body, err)
		}
	}
	if (status == 200) != (a.Type == "") {
		c.tb.Fatalf("%s: status %d with %s", action, status, body)
	}
	return a
}

// must makes a call that succeeds.
func (c queueClient) must(action, fields string) queueAnswer {
	c.tb.Helper()
	a := c.call(action, fields)
	if a.Type != "" {
		c.tb.Fatalf("%s %s: %s: %s", action, fields, a.Type, a.Message)
	}
	return a
}

// refused makes a call that fails with this code.
func (c queueClient) refused(action, fields, code string) {
	c.tb.Helper()
	if a := c.call(action, fields); a.Type != code || a.Message == "" {
		c.tb.Errorf("%s %s: got %q %q, want %s", action, fields, a.Type, a.Message, code)
	}
}

// receive receives records after a wait of at most a second.
func (c queueClient) receive(more ...string) []queueRecord {
	c.tb.Helper()
	return c.must("ReceiveQueueRecords", strings.Join(append([]string{`"WaitTimeSeconds":1`}, more...), ",")).QueueRecords
}

func (c queueClient) receiveDead(more ...string) []queueRecord {
	c.tb.Helper()
	return c.must("ReceiveDeadLetterQueueRecords", strings.Join(append([]string{`"WaitTimeSeconds":1`}, more...), ",")).QueueRecords
}

// one receives exactly one record.
func (c queueClient) one(more ...string) queueRecord {
	c.tb.Helper()
	got := c.receive(more...)
	if len(got) != 1 {
		c.tb.Fatalf("received %d records, want one", len(got))
	}
	return got[0]
}

// entries makes a call with receipt handles. timeout is the visibility timeout in seconds.
func (c queueClient) entries(action string, timeout int, records ...queueRecord) (failed []queueEntry) {
	c.tb.Helper()
	var list []queueEntry
	for _, r := range records {
		e := queueEntry{ReceiptHandle: r.ReceiptHandle}
		if strings.HasPrefix(action, "Update") {
			e.VisibilityTimeoutSeconds = &timeout
		}
		list = append(list, e)
	}
	a := c.must(action, `"Entries":`+string(ok[[]byte](c.tb)(json.Marshal(list))))
	if len(a.Successful)+len(a.Failed) != len(records) {
		c.tb.Fatalf("%s of %d records: %d succeeded, %d failed", action, len(records), len(a.Successful), len(a.Failed))
	}
	return a.Failed
}

// entryCode returns the error code of a call with one receipt handle, or "".
func (c queueClient) entryCode(action string, timeout int, r queueRecord) string {
	c.tb.Helper()
	if failed := c.entries(action, timeout, r); len(failed) > 0 {
		if failed[0].ErrorMessage == "" || failed[0].ReceiptHandle != r.ReceiptHandle {
			c.tb.Errorf("%s: %+v", action, failed[0])
		}
		return failed[0].ErrorCode
	}
	return ""
}

func (c queueClient) acknowledge(r queueRecord) string {
	c.tb.Helper()
	return c.entryCode("AcknowledgeQueueRecords", 0, r)
}

// data returns the sorted data of records.
func data(records []queueRecord) string {
	var all []string
	for _, r := range records {
		all = append(all, string(r.Data))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (c queueClient) wantState(want kinesistest.QueueState) {
	c.tb.Helper()
	if got := c.s.QueueState("q"); got != want {
		c.tb.Errorf("the queue has\n     %+v\nwant %+v", got, want)
	}
}

func oldestQueue(visibility time.Duration, maxReceives int) kinesistest.Queue {
	return kinesistest.Queue{FromOldest: true, Visibility: visibility, MaxReceiveCount: maxReceives}
}
