package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// seconds is a point in time as the service writes it: seconds since 1970 with a fraction.
type seconds time.Time

// UnmarshalJSON reads a number.
func (s *seconds) UnmarshalJSON(text []byte) error {
	var n float64
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	if n != 0 {
		*s = seconds(time.UnixMilli(int64(n*1000 + 0.5)))
	}
	return nil
}

// MarshalJSON writes a number.
func (s seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Time(s).UnixMilli()) / 1000)
}

// fields are the members of a request.
type fields map[string]any

// readJSON returns a function that decodes a whole answer into out.
func readJSON(out any) func(*http.Response) error {
	return func(res *http.Response) error { return json.NewDecoder(res.Body).Decode(out) }
}

type attributesJSON struct {
	VisibilityTimeoutSeconds *int            `json:",omitempty"`
	DeadLetterConfiguration  *deadLetterJSON `json:",omitempty"`
}

type deadLetterJSON struct {
	TargetType      string `json:",omitempty"`
	MaxReceiveCount int    `json:",omitempty"`
}

func (a *Attributes) encode() attributesJSON {
	var j attributesJSON
	if a.Visibility != nil {
		n := int(*a.Visibility / time.Second)
		j.VisibilityTimeoutSeconds = &n
	}
	if a.DeadLetters != "" || a.MaxReceiveCount != 0 {
		j.DeadLetterConfiguration = &deadLetterJSON{a.DeadLetters, a.MaxReceiveCount}
	}
	return j
}

func (j *attributesJSON) decode() (a Attributes) {
	if j.VisibilityTimeoutSeconds != nil {
		d := time.Duration(*j.VisibilityTimeoutSeconds) * time.Second
		a.Visibility = &d
	}
	if d := j.DeadLetterConfiguration; d != nil {
		a.DeadLetters, a.MaxReceiveCount = d.TargetType, d.MaxReceiveCount
	}
	return a
}

type startJSON struct {
	Type      string
	Timestamp *seconds `json:",omitempty"`
}

type streamJSON struct {
	StreamARN        string
	StartingPosition *startJSON `json:",omitempty"`
}

type describedJSON struct {
	QueueDescription struct {
		QueueName, QueueARN, QueueStatus string
		QueueCreationTimestamp           seconds
		StreamConfigurationList          []streamJSON
		QueueAttributes                  attributesJSON
	}
}

func (j *describedJSON) decode() Description {
	q := &j.QueueDescription
	d := Description{Name: q.QueueName, ARN: q.QueueARN, Status: q.QueueStatus, Created: time.Time(q.QueueCreationTimestamp), Attributes: q.QueueAttributes.decode()}
	for _, s := range q.StreamConfigurationList {
		c := StreamConfiguration{StreamARN: s.StreamARN}
		if p := s.StartingPosition; p != nil {
			c.Start.Type = p.Type
			if p.Timestamp != nil {
				c.Start.At = time.Time(*p.Timestamp)
			}
		}
		d.Streams = append(d.Streams, c)
	}
	return d
}

// CreateInput describes a new queue.
type CreateInput struct {
	Name       string // 1 to 128 of the characters a-z, A-Z, 0-9, "_", "." and "-"
	StreamARN  string // of an on-demand stream
	Start      Start
	Attributes Attributes
	Tags       map[string]string
}

// CreateQueue creates a queue. The queue delivers records once its status is [Active].
func (c *Client) CreateQueue(ctx context.Context, in CreateInput) (Description, error) {
	stream := streamJSON{StreamARN: in.StreamARN}
	if in.Start.Type != "" {
		stream.StartingPosition = &startJSON{Type: in.Start.Type}
		if !in.Start.At.IsZero() {
			at := seconds(in.Start.At)
			stream.StartingPosition.Timestamp = &at
		}
	}
	f := fields{"QueueName": in.Name, "StreamConfigurationList": []streamJSON{stream}}
	if in.Attributes != (Attributes{}) {
		f["QueueAttributes"] = in.Attributes.encode()
	}
	if len(in.Tags) > 0 {
		f["Tags"] = in.Tags
	}
	return c.described(ctx, "CreateQueue", "", f)
}

// DescribeQueue returns the state and the attributes of a queue.
func (c *Client) DescribeQueue(ctx context.Context, arn string) (Description, error) {
	return c.described(ctx, "DescribeQueue", arn, fields{"QueueARN": arn})
}

// UpdateQueue changes the attributes of a queue that are set. Records that are hidden keep their
// visibility timeouts.
func (c *Client) UpdateQueue(ctx context.Context, arn string, a Attributes) (Description, error) {
	return c.described(ctx, "UpdateQueue", arn, fields{"QueueARN": arn, "QueueAttributes": a.encode()})
}

// DeleteQueue deletes a queue with its dead letters. The records stay in the stream.
func (c *Client) DeleteQueue(ctx context.Context, arn string) error {
	return c.do(ctx, &call{operation: "DeleteQueue", plane: controlPlane, arn: arn, timeout: callTimeout, input: fields{"QueueARN": arn}})
}

func (c *Client) described(ctx context.Context, operation, arn string, input fields) (Description, error) {
	var out describedJSON
	err := c.do(ctx, &call{operation: operation, plane: controlPlane, arn: arn, timeout: callTimeout, input: input, read: readJSON(&out)}) //nolint:bodyclose // do closes it
	return out.decode(), err
}

// ListQueues returns a page of the queues of the account and region.
func (c *Client) ListQueues(ctx context.Context, in ListQueuesInput) (ListQueuesOutput, error) {
	f := fields{}
	if in.MaxResults > 0 {
		f["MaxResults"] = in.MaxResults
	}
	if in.NextToken != "" {
		f["NextToken"] = in.NextToken
	}
	if in.StreamARN != "" {
		filter := fields{"StreamARN": in.StreamARN}
		if in.Created != nil {
			filter["StreamCreationTimestamp"] = seconds(*in.Created)
		}
		f["StreamFilter"] = []fields{filter}
	}
	var out struct {
		QueueSummaries []struct {
			QueueName, QueueARN, QueueStatus string
			QueueCreationTimestamp           seconds
			Streams                          []struct{ StreamARN string }
		}
		NextToken string
	}
	err := c.do(ctx, &call{operation: "ListQueues", plane: controlPlane, timeout: callTimeout, input: f, read: readJSON(&out)}) //nolint:bodyclose // do closes it
	page := ListQueuesOutput{NextToken: out.NextToken}
	for _, q := range out.QueueSummaries {
		s := Summary{Name: q.QueueName, ARN: q.QueueARN, Status: q.QueueStatus, Created: time.Time(q.QueueCreationTimestamp)}
		for _, of := range q.Streams {
			s.StreamARNs = append(s.StreamARNs, of.StreamARN)
		}
		page.Queues = append(page.Queues, s)
	}
	return page, err
}

// Find returns the ARN of the queue with a name. It lists all queues of the account and region, or
// until it finds the queue. A queue that is being deleted does not count. The error wraps
// [ErrQueueNotFound] if there is none.
func (c *Client) Find(ctx context.Context, name string) (arn string, err error) {
	return find(ctx, c, name)
}

func find(ctx context.Context, api API, name string) (string, error) {
	var in ListQueuesInput
	deleting := false
	for {
		page, err := api.ListQueues(ctx, in)
		if err != nil {
			return "", err
		}
		for _, q := range page.Queues {
			if q.Name == name && q.Status != Deleting {
				return q.ARN, nil
			}
			deleting = deleting || q.Name == name
		}
		switch {
		case page.NextToken == "" && deleting:
			return "", fmt.Errorf("%w: %s is being deleted", ErrQueueNotFound, name)
		case page.NextToken == "":
			return "", fmt.Errorf("%w: the account and region have no queue %q; create it, or check the region", ErrQueueNotFound, name)
		case page.NextToken == in.NextToken:
			return "", errors.New("weir: ListQueues returned the same page twice")
		}
		in.NextToken = page.NextToken
	}
}

// Receive waits for records and hides them from other consumers.
func (c *Client) Receive(ctx context.Context, in ReceiveInput) (ReceiveOutput, error) {
	return c.receive(ctx, "ReceiveQueueRecords", in)
}

// ReceiveDeadLetters is like Receive, for the dead letters of the queue.
func (c *Client) ReceiveDeadLetters(ctx context.Context, in ReceiveInput) (ReceiveOutput, error) {
	return c.receive(ctx, "ReceiveDeadLetterQueueRecords", in)
}

func (c *Client) receive(ctx context.Context, operation string, in ReceiveInput) (out ReceiveOutput, err error) {
	f := fields{"QueueARN": in.QueueARN}
	if in.Limit > 0 {
		f["Limit"] = in.Limit
	}
	if in.Wait > 0 {
		f["WaitTimeSeconds"] = int(in.Wait / time.Second)
	}
	if in.Hold > 0 {
		f["VisibilityTimeoutSeconds"] = int(in.Hold / time.Second)
	}
	receive := &call{
		operation: operation, plane: dataPlane, arn: in.QueueARN, timeout: max(in.Wait, 9*time.Second) + receiveMargin, input: f, keep: true,
		read: func(res *http.Response) error {
			if in.Admit != nil && res.ContentLength > 0 {
				if err := in.Admit(ctx, res.ContentLength); err != nil {
					return err
				}
			}
			out.Records, err = readDeliveries(res.Body)
			return err
		},
	}
	err = c.do(ctx, receive)
	out.Answered = receive.began
	return out, err
}

type deliveryJSON struct {
	ReceiptHandle, RecordID, PartitionKey              string
	Data                                               []byte
	ApproximateArrivalTimestamp, FirstReceiveTimestamp seconds
	ReceiveCount                                       int
}

// readDeliveries reads an answer record by record, so that only one record at a time exists in both
// encoded and decoded form.
func readDeliveries(body io.Reader) (all []Delivery, err error) {
	d := json.NewDecoder(body)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, unreadable("an object", t, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, unreadable("a member", name, err)
		}
		if name != "QueueRecords" {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return nil, unreadable("a value", nil, err)
			}
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') && t != nil {
			return nil, unreadable("a list", t, err)
		} else if t == nil {
			continue
		}
		for d.More() {
			var j deliveryJSON
			if err := d.Decode(&j); err != nil {
				return nil, unreadable("a record", nil, err)
			}
			if j.ReceiptHandle == "" || j.RecordID == "" {
				return nil, errors.New("the answer has a record without a receipt handle or record ID")
			}
			all = append(all, Delivery{
				ReceiptHandle: j.ReceiptHandle, RecordID: j.RecordID, PartitionKey: j.PartitionKey, Data: j.Data, ReceiveCount: j.ReceiveCount,
				Arrived: time.Time(j.ApproximateArrivalTimestamp), FirstReceived: time.Time(j.FirstReceiveTimestamp),
			})
		}
		if t, err := d.Token(); err != nil {
			return nil, unreadable("the end of the list", t, err)
		}
	}
	if t, err := d.Token(); err != nil {
		return nil, unreadable("the end", t, err)
	}
	return all, nil
}

func unreadable(what string, got json.Token, err error) error {
	if err != nil {
		return fmt.Errorf("the answer is not readable at %s: %w", what, err)
	}
	return fmt.Errorf("the answer has %v instead of %s", got, what)
}

// Acknowledge removes records from the queue, 1 to 10 at a time.
func (c *Client) Acknowledge(ctx context.Context, arn string, handles []string) (BatchOutput, error) {
	return c.batch(ctx, "AcknowledgeQueueRecords", arn, handleEntries(handles))
}

// AcknowledgeDeadLetters removes dead letters from the queue, 1 to 10 at a time. The handles must
// be those of [Client.ReceiveDeadLetters].
func (c *Client) AcknowledgeDeadLetters(ctx context.Context, arn string, handles []string) (BatchOutput, error) {
	return c.batch(ctx, "AcknowledgeDeadLetterQueueRecords", arn, handleEntries(handles))
}

// RestoreDeadLetters makes dead letters ordinary records of the queue again, 1 to 10 at a time, and
// resets their receive counts. The handles must be those of [Client.ReceiveDeadLetters].
func (c *Client) RestoreDeadLetters(ctx context.Context, arn string, handles []string) (BatchOutput, error) {
	return c.batch(ctx, "RestoreDeadLetterQueueRecords", arn, handleEntries(handles))
}

// SetVisibility changes how long records stay hidden, for 1 to 10 records. A Hold of 0 makes a
// record visible at once.
func (c *Client) SetVisibility(ctx context.Context, arn string, entries []Visibility) (BatchOutput, error) {
	return c.batch(ctx, "UpdateQueueRecordsVisibility", arn, visibilityEntries(entries))
}

// SetDeadLetterVisibility is like SetVisibility, for the dead letters of the queue.
func (c *Client) SetDeadLetterVisibility(ctx context.Context, arn string, entries []Visibility) (BatchOutput, error) {
	return c.batch(ctx, "UpdateDeadLetterQueueRecordsVisibility", arn, visibilityEntries(entries))
}

type entryJSON struct {
	ReceiptHandle            string
	VisibilityTimeoutSeconds *int `json:",omitempty"`
}

func handleEntries(handles []string) []entryJSON {
	entries := make([]entryJSON, len(handles))
	for i, h := range handles {
		entries[i].ReceiptHandle = h
	}
	return entries
}

func visibilityEntries(all []Visibility) []entryJSON {
	entries := make([]entryJSON, len(all))
	for i, v := range all {
		n := int(v.Hold / time.Second)
		entries[i] = entryJSON{v.ReceiptHandle, &n}
	}
	return entries
}

func (c *Client) batch(ctx context.Context, operation, arn string, entries []entryJSON) (BatchOutput, error) {
	var out struct {
		Failed []struct{ ReceiptHandle, ErrorCode, ErrorMessage string }
	}
	err := c.do(ctx, &call{
		operation: operation, plane: dataPlane, arn: arn, timeout: callTimeout, input: fields{"QueueARN": arn, "Entries": entries}, read: readJSON(&out), //nolint:bodyclose // do closes it
	})
	var b BatchOutput
	for _, f := range out.Failed {
		b.Failed = append(b.Failed, FailedEntry{f.ReceiptHandle, f.ErrorCode, f.ErrorMessage})
	}
	return b, err
}

var _ API = (*Client)(nil)
