package sqsletters

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// fake is a queue with the behaviour that weir uses. Received messages are hidden until they are
// made visible again.
type fake struct {
	mu       sync.Mutex
	messages []*stored
	receipts int
	// fails returns the error code for a call, or "" if the call succeeds.
	fails  func(action string) string
	refuse func(body string) (code string, senderFault bool) // rejects a message
	// lost reports whether the answer to a completed call is lost.
	lost     func(action string) bool
	redrive  string
	sends    [][]string // bodies of each request
	groups   []string
	unsorted bool // the same message is received twice
}

type stored struct {
	id, body, receipt string
	hidden            bool
	receives          int
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	action := r.Header.Get("X-Amz-Target")
	action = action[strings.LastIndexByte(action, '.')+1:]
	var in struct {
		ReceiptHandle       string
		MaxNumberOfMessages int
		Entries             []struct {
			Id, MessageBody, ReceiptHandle, MessageGroupId, MessageDeduplicationId string
			VisibilityTimeout                                                      int
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if f.fails != nil {
		if code := f.fails(action); code != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"__type":"com.amazonaws.sqs#%s","message":"as asked"}`, code)
			return
		}
	}
	type object = map[string]any
	answer := object{}
	switch action {
	case "GetQueueAttributes":
		answer["Attributes"] = object{"ApproximateNumberOfMessages": fmt.Sprint(len(f.messages)), "MaximumMessageSize": "262144", "RedrivePolicy": f.redrive}
	case "SendMessageBatch":
		if len(in.Entries) == 0 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"com.amazonaws.sqs#EmptyBatchRequest","message":"none"}`)
			return
		}
		var good, bad []object
		var bodies []string
		for _, e := range in.Entries {
			bodies = append(bodies, e.MessageBody)
			f.groups = append(f.groups, e.MessageGroupId+" "+e.MessageDeduplicationId)
			code, fault := "", false
			if f.refuse != nil {
				code, fault = f.refuse(e.MessageBody)
			}
			if code != "" {
				bad = append(bad, object{"Id": e.Id, "Code": code, "Message": "as asked", "SenderFault": fault})
				continue
			}
			f.messages = append(f.messages, &stored{id: fmt.Sprint("m", len(f.messages)), body: e.MessageBody})
			good = append(good, object{"Id": e.Id, "MessageId": "m", "MD5OfMessageBody": ""})
		}
		f.sends = append(f.sends, bodies)
		answer["Successful"], answer["Failed"] = good, bad
	case "ReceiveMessage":
		var given []object
		for _, m := range f.messages {
			if !m.hidden && len(given) < in.MaxNumberOfMessages {
				m.hidden = !f.unsorted || m.receives > 0
				m.receives++
				f.receipts++
				m.receipt = fmt.Sprint("r", f.receipts)
				given = append(given, object{"MessageId": m.id, "Body": m.body, "ReceiptHandle": m.receipt, "Attributes": object{"ApproximateReceiveCount": fmt.Sprint(m.receives)}})
			}
		}
		answer["Messages"] = given
	case "DeleteMessage":
		for i, m := range f.messages {
			if m.receipt == in.ReceiptHandle {
				f.messages = append(f.messages[:i:i], f.messages[i+1:]...)
				break
			}
		}
	case "ChangeMessageVisibilityBatch":
		for _, e := range in.Entries {
			for _, m := range f.messages {
				if m.receipt == e.ReceiptHandle {
					m.hidden = e.VisibilityTimeout > 0
				}
			}
		}
	}
	if f.lost != nil && f.lost(action) {
		panic(http.ErrAbortHandler)
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

// visible returns the number of messages that can be received.
func (f *fake) visible() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.messages {
		if !m.hidden {
			n++
		}
	}
	return n
}

// wholeBody sends each request in one piece. The SDK closes a body as soon as there is an answer.
// That may be before net/http has finished with a streamed body. net/http then treats the write as
// failed and closes the connection in the middle of the answer.
type wholeBody struct{ *http.Transport }

func (t wholeBody) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	r = r.WithContext(r.Context()) // a copy
	r.Body = io.NopCloser(bytes.NewReader(body))
	return t.Transport.RoundTrip(r)
}

// queue returns a queue with the given name on a fake server.
func queue(t *testing.T, f *fake, name string) *Queue {
	t.Helper()
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	transport := wholeBody{&http.Transport{DisableKeepAlives: true}}
	client := sqs.New(sqs.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(web.URL), HTTPClient: &http.Client{Transport: transport, Timeout: 10 * time.Second},
		RetryMaxAttempts: 1, DisableMessageChecksumValidation: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "x", SecretAccessKey: "x"}, nil
		}),
	})
	q, err := New(client, web.URL+"/000000000000/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return q
}
