package deadletter

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Lambda converts dead letters to the messages that AWS Lambda sends to a failure destination when
// it drops a batch. It is for programs that already read such messages. A message contains less
// than a dead letter: no error and no worker. Without Payload it contains no record either, but
// only the range to read from the stream before the records expire.
type Lambda struct {
	// FunctionARN is the value of functionArn, such as the ARN of the function that the application
	// replaces. It is required.
	FunctionARN string
	// StreamARN is the ARN of the stream. It is required. For dead letters of another stream, its
	// last part is replaced by the name of that stream. Dead letters of a queue name the queue's
	// ARN instead, and the record ID (with "+2" for record 2 of an aggregate) in place of the
	// sequence number.
	StreamARN string
	// Payload adds the records, as Lambda does for a bucket. They are a string with the JSON of a
	// function's event, without the calling role. Lambda omits them for queues and topics, whose
	// messages have less room.
	Payload bool
}

// Check returns an error for invalid fields. Call it at the start, before a record depends on it.
func (l *Lambda) Check() error {
	var errs []error
	if l.FunctionARN == "" {
		errs = append(errs, errors.New("weir: Lambda.FunctionARN is empty: it is the value of functionArn"))
	}
	if _, _, ok := l.stream(""); !ok {
		errs = append(errs, fmt.Errorf("weir: Lambda.StreamARN %q is not the ARN of a stream, like arn:aws:kinesis:eu-west-1:111122223333:stream/orders", l.StreamARN))
	}
	return errors.Join(errs...)
}

// stream returns the ARN and the region of the stream with the given name. name may be the ARN of a
// queue.
func (l *Lambda) stream(name string) (arn, region string, ok bool) {
	if parts := strings.SplitN(name, ":", 6); len(parts) == 6 && parts[0] == "arn" {
		return name, parts[3], true
	}
	parts := strings.SplitN(l.StreamARN, ":", 6)
	if len(parts) < 6 || parts[0] != "arn" || parts[2] != "kinesis" || parts[3] == "" || !strings.HasPrefix(parts[5], "stream/") {
		return "", "", false
	}
	return strings.Join(parts[:5], ":") + ":stream/" + name, parts[3], true
}

// lambdaMessage contains the members of Lambda's message, in its order.
type lambdaMessage struct {
	Request   lambdaRequest   `json:"requestContext"`
	Response  *lambdaResponse `json:"responseContext,omitempty"`
	Version   string          `json:"version"`
	Timestamp string          `json:"timestamp"`
	Batch     lambdaBatch     `json:"KinesisBatchInfo"`
	Payload   string          `json:"payload,omitempty"`
}

type lambdaRequest struct {
	ID          string `json:"requestId"`
	FunctionARN string `json:"functionArn"`
	Condition   string `json:"condition"`
	Invokes     int    `json:"approximateInvokeCount"`
}

type lambdaResponse struct {
	StatusCode int    `json:"statusCode"`
	Executed   string `json:"executedVersion"`
	Error      string `json:"functionError"`
}

type lambdaBatch struct {
	Shard        string `json:"shardId"`
	Start        string `json:"startSequenceNumber"`
	End          string `json:"endSequenceNumber"`
	FirstArrived string `json:"approximateArrivalOfFirstRecord,omitempty"`
	LastArrived  string `json:"approximateArrivalOfLastRecord,omitempty"`
	Size         int    `json:"batchSize"`
	StreamARN    string `json:"streamArn"`
}

type lambdaEvent struct {
	Records []lambdaRecord `json:"Records"`
}

type lambdaRecord struct {
	Kinesis  lambdaKinesis `json:"kinesis"`
	Source   string        `json:"eventSource"`
	Version  string        `json:"eventVersion"`
	ID       string        `json:"eventID"`
	Name     string        `json:"eventName"`
	Identity string        `json:"invokeIdentityArn"`
	Region   string        `json:"awsRegion"`
	ARN      string        `json:"eventSourceARN"`
}

type lambdaKinesis struct {
	SchemaVersion  string `json:"kinesisSchemaVersion"`
	PartitionKey   string `json:"partitionKey"`
	SequenceNumber string `json:"sequenceNumber"`
	Data           []byte `json:"data"`
	// Arrived is in seconds with three decimals.
	Arrived json.RawMessage `json:"approximateArrivalTimestamp,omitempty"`
}

// LambdaMessage is a message in Lambda's form.
type LambdaMessage struct {
	ID string // the requestId
	// Mapping is a UUID that identifies the function and the stream, like the UUID of an event
	// source mapping.
	Mapping string
	Letters []Letter // the dead letters in this message
	Text    []byte
}

// Message returns one message about all of the given dead letters. There must be at least one dead
// letter. All must be of one shard and in order. The same dead letters always have the same
// message, including its requestId. As for Lambda, the records of one aggregate have one sequence
// number and count as one in batchSize. The payload contains each of them.
//
// The condition in the message is RecordAgeExceeded for dead letters with reason [Age], and then
// there is no responseContext. For all others it is RetryAttemptsExhausted. This includes
// [Rejected] dead letters, for which Lambda has no condition.
func (l *Lambda) Message(letters []Letter) ([]byte, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if len(letters) == 0 {
		return nil, errors.New("weir: a message in Lambda's form needs at least one dead letter")
	}
	m, err := l.message(letters)
	return m.Text, err
}

// Messages returns the messages about dead letters, in order. Consecutive dead letters of a shard
// are in one message, as in [Lambda.Message]. With Payload, the event of a message is at most 6
// MiB, which is the limit for a function. Only an event with a single record may be larger.
func (l *Lambda) Messages(letters []Letter) (all []LambdaMessage, err error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	for len(letters) > 0 {
		n := l.together(letters)
		m, err := l.message(letters[:n:n])
		if err != nil {
			return nil, err
		}
		all, letters = append(all, m), letters[n:]
	}
	return all, nil
}

const (
	mostLambdaEvent  = 6 << 20
	mostLambdaMember = 1 << 10 // of a record in an event, without its key and data
)

// together returns the number of dead letters, from the first, that belong to the same message.
func (l *Lambda) together(letters []Letter) (n int) {
	event := 0
	for n < len(letters) && letters[n].Stream == letters[0].Stream && letters[n].Shard == letters[0].Shard {
		at := &letters[n]
		event += base64.StdEncoding.EncodedLen(len(at.Data)) + 6*len(at.PartitionKey) + mostLambdaMember
		if l.Payload && n > 0 && event > mostLambdaEvent {
			break
		}
		n++
	}
	return n
}

func (l *Lambda) message(letters []Letter) (LambdaMessage, error) {
	first, last := &letters[0], &letters[len(letters)-1]
	arn, region, _ := l.stream(first.Stream)
	of := LambdaMessage{
		ID: lambdaID(first.ID, last.ID, fmt.Sprint(last.GivenUp.UnixMilli())), Mapping: lambdaID(l.FunctionARN, arn), Letters: letters,
	}
	m := lambdaMessage{
		Request: lambdaRequest{
			ID: of.ID, FunctionARN: l.FunctionARN, Condition: "RetryAttemptsExhausted", Invokes: max(1, last.Attempts),
		},
		Response:  &lambdaResponse{200, "$LATEST", "Unhandled"},
		Version:   "1.0",
		Timestamp: lambdaTime(last.GivenUp),
		Batch: lambdaBatch{
			Shard: first.Shard, Start: numberOf(first), End: numberOf(last),
			FirstArrived: lambdaTime(first.Arrived), LastArrived: lambdaTime(last.Arrived), StreamARN: arn,
		},
	}
	if first.Reason == Age {
		m.Request.Condition, m.Response = "RecordAgeExceeded", nil
	}
	var event lambdaEvent
	for i := range letters {
		at := &letters[i]
		if at.Stream != first.Stream || at.Shard != first.Shard {
			return of, fmt.Errorf("weir: a message in Lambda's form is about one shard: dead letters %s and %s", first.ID, at.ID)
		}
		number := numberOf(at)
		if i == 0 || number != numberOf(&letters[i-1]) {
			m.Batch.Size++
		}
		if l.Payload {
			event.Records = append(event.Records, lambdaRecord{
				Kinesis: lambdaKinesis{"1.0", at.PartitionKey, number, append([]byte{}, at.Data...), lambdaSeconds(at.Arrived)},
				Source:  "aws:kinesis", Version: "1.0", ID: at.Shard + ":" + number, Name: "aws:kinesis:record", Region: region, ARN: arn,
			})
		}
	}
	if l.Payload {
		payload, err := lambdaJSON(event)
		if err != nil {
			return of, err
		}
		m.Payload = string(payload)
	}
	text, err := lambdaJSON(m)
	of.Text = text
	return of, err
}

// numberOf returns the sequence number of a dead letter, or the key of a queue's record.
func numberOf(l *Letter) string {
	if _, ok := l.Queue(); ok {
		return l.Position
	}
	return l.SequenceNumber
}

// lambdaJSON encodes v without escaping <, > and &, like Lambda.
func lambdaJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		return nil, fmt.Errorf("weir: a dead letter in Lambda's form: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// lambdaTime formats a time with three decimals. It returns "" for the zero time.
func lambdaTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func lambdaSeconds(t time.Time) json.RawMessage {
	if t.IsZero() {
		return nil
	}
	return fmt.Appendf(nil, "%d.%03d", t.Unix(), t.Nanosecond()/int(time.Millisecond))
}

// lambdaID returns a UUID (version 8) that is derived from the parts.
func lambdaID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
