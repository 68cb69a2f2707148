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

// Lambda writes letters in the form in which AWS Lambda's event source tells a destination for
// failures of the batch that it dropped, for programs that read that form already. It says less
// than a letter: no error, no worker, and without Payload no record but only the range to read
// again from the stream, before it expires there.
type Lambda struct {
	// FunctionARN is what stands as functionArn, such as the ARN of the function that the
	// application takes the place of. Required.
	FunctionARN string
	// StreamARN is the ARN of the stream. Of letters of another stream the last part is that one's
	// name. Required.
	StreamARN string
	// Payload adds the records, as Lambda does for a bucket: a string with the JSON of the event
	// that a function gets, without the role that called it. Queues and topics get none from
	// Lambda, and their messages have less room.
	Payload bool
}

// Check returns what is wrong with the fields, so that it is found out before a record is at stake.
func (l *Lambda) Check() error {
	var errs []error
	if l.FunctionARN == "" {
		errs = append(errs, errors.New("weir: Lambda.FunctionARN is empty: say what stands as functionArn"))
	}
	if _, _, ok := l.stream(""); !ok {
		errs = append(errs, fmt.Errorf("weir: Lambda.StreamARN %q is no ARN of a stream, like arn:aws:kinesis:eu-west-1:111122223333:stream/orders", l.StreamARN))
	}
	return errors.Join(errs...)
}

// stream is the ARN of the stream of that name, and its region.
func (l *Lambda) stream(name string) (arn, region string, ok bool) {
	parts := strings.SplitN(l.StreamARN, ":", 6)
	if len(parts) < 6 || parts[0] != "arn" || parts[2] != "kinesis" || parts[3] == "" || !strings.HasPrefix(parts[5], "stream/") {
		return "", "", false
	}
	return strings.Join(parts[:5], ":") + ":stream/" + name, parts[3], true
}

// lambdaMessage has the members of Lambda's message in its order.
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
	SchemaVersion  string          `json:"kinesisSchemaVersion"`
	PartitionKey   string          `json:"partitionKey"`
	SequenceNumber string          `json:"sequenceNumber"`
	Data           []byte          `json:"data"`
	Arrived        json.RawMessage `json:"approximateArrivalTimestamp,omitempty"` // seconds with three digits behind the point
}

// LambdaMessage is a message of Lambda's form.
type LambdaMessage struct {
	ID string // its requestId
	// Mapping is a UUID that stands for the function and the stream, as that of an event source
	// mapping does.
	Mapping string
	Letters []Letter // what it is about, a part of the letters that were given
	Text    []byte
}

// Message is the message about letters that were put together: one or more of one shard, in order.
// The same letters have the same message, also its requestId. Records of one aggregate count as one
// in batchSize, as they do for Lambda, and have one sequence number; the payload has each of them.
//
// The condition is RecordAgeExceeded for letters that were given up for their [Age], and then
// there is no responseContext; it is RetryAttemptsExhausted for all others, also those that were
// [Rejected], for which Lambda has no word.
func (l *Lambda) Message(letters []Letter) ([]byte, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if len(letters) == 0 {
		return nil, errors.New("weir: a message of Lambda's form is about one letter at least")
	}
	m, err := l.message(letters)
	return m.Text, err
}

// Messages are the messages about letters, in order: a message for those of one shard that stand
// one behind the other, as [Lambda.Message] has it. With Payload its event is no larger than one
// that a function may get, 6 MiB, unless it has only one record.
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
	mostLambdaMember = 1 << 10 // of a record in an event, all but its key and data
)

// together is how many of the letters, from the first on, one message is about.
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
			Shard: first.Shard, Start: first.SequenceNumber, End: last.SequenceNumber,
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
			return of, fmt.Errorf("weir: a message of Lambda's form is about one shard: letters %s and %s", first.ID, at.ID)
		}
		if i == 0 || at.SequenceNumber != letters[i-1].SequenceNumber {
			m.Batch.Size++
		}
		if l.Payload {
			event.Records = append(event.Records, lambdaRecord{
				Kinesis: lambdaKinesis{"1.0", at.PartitionKey, at.SequenceNumber, append([]byte{}, at.Data...), lambdaSeconds(at.Arrived)},
				Source:  "aws:kinesis", Version: "1.0", ID: at.Shard + ":" + at.SequenceNumber, Name: "aws:kinesis:record", Region: region, ARN: arn,
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

// lambdaJSON leaves <, > and & as they are, as Lambda does.
func lambdaJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		return nil, fmt.Errorf("weir: a letter in Lambda's form: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// lambdaTime always has three digits behind the point; it is empty for no time.
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

// lambdaID is a UUID (of version 8) that the same parts have again.
func lambdaID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
