package queue

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// roundTrip answers requests without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) Do(r *http.Request) (*http.Response, error) { return f(r) }

func keys() aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", AccountID: "123456789012"}, nil
	})
}

func clientOf(t *testing.T, answer roundTrip) *Client {
	t.Helper()
	c, err := NewClient(aws.Config{Region: "eu-west-1", Credentials: keys(), HTTPClient: answer})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answer(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}
}

const testARN = "arn:aws:kinesis:eu-west-1:123456789012:queue/q-1"

func TestRequestsAndAnswers(t *testing.T) {
	t.Parallel()
	minute := time.Minute
	at := time.Unix(1767225600, 0)
	for _, c := range []struct {
		name         string
		make         func(context.Context, *Client) (any, error)
		host, target string
		body, answer string
		want         string // the output as JSON, or a part of it
	}{
		{
			"CreateQueue", func(ctx context.Context, c *Client) (any, error) {
				return c.CreateQueue(ctx, CreateInput{Name: "orders", StreamARN: "arn:s", Start: Start{"AT_TIMESTAMP", at}, Attributes: Attributes{Visibility: &minute, DeadLetters: "BUILT_IN", MaxReceiveCount: 20}, Tags: map[string]string{"a": "b"}})
			}, "123456789012.control-kinesis-queues.eu-west-1.amazonaws.com", "CreateQueue",
			`{"QueueAttributes":{"VisibilityTimeoutSeconds":60,"DeadLetterConfiguration":{"TargetType":"BUILT_IN","MaxReceiveCount":20}},"QueueName":"orders","StreamConfigurationList":[{"StreamARN":"arn:s","StartingPosition":{"Type":"AT_TIMESTAMP","Timestamp":1767225600}}],"Tags":{"a":"b"}}`,
			`{"QueueDescription":{"QueueName":"orders","QueueARN":"arn:q","QueueStatus":"CREATING","QueueCreationTimestamp":1767225600.5,"QueueAttributes":{"DeadLetterConfiguration":{"TargetType":"BUILT_IN","MaxReceiveCount":20}}}}`,
			`"MaxReceiveCount":20`,
		},
		{
			"UpdateQueue", func(ctx context.Context, c *Client) (any, error) {
				return c.UpdateQueue(ctx, testARN, Attributes{MaxReceiveCount: 7, DeadLetters: "BUILT_IN"})
			}, "q-1.control-kinesis-queues.eu-west-1.amazonaws.com", "UpdateQueue",
			`{"QueueARN":"` + testARN + `","QueueAttributes":{"DeadLetterConfiguration":{"TargetType":"BUILT_IN","MaxReceiveCount":7}}}`,
			`{"QueueDescription":{"QueueStatus":"UPDATING"}}`, `"Status":"UPDATING"`,
		},
		{
			"DeleteQueue", func(ctx context.Context, c *Client) (any, error) { return nil, c.DeleteQueue(ctx, testARN) },
			"q-1.control-kinesis-queues.eu-west-1.amazonaws.com", "DeleteQueue", `{"QueueARN":"` + testARN + `"}`, ``, `null`,
		},
		{
			"ListQueues", func(ctx context.Context, c *Client) (any, error) {
				return c.ListQueues(ctx, ListQueuesInput{MaxResults: 5, NextToken: "t", StreamARN: "arn:s", Created: &at})
			}, "123456789012.control-kinesis-queues.eu-west-1.amazonaws.com", "ListQueues",
			`{"MaxResults":5,"NextToken":"t","StreamFilter":[{"StreamARN":"arn:s","StreamCreationTimestamp":1767225600}]}`,
			`{"QueueSummaries":[{"QueueName":"orders","QueueARN":"arn:q","QueueStatus":"ACTIVE","Streams":[{"StreamARN":"arn:s"}]}],"NextToken":"u"}`,
			`"StreamARNs":["arn:s"]`,
		},
		{
			"a receive", func(ctx context.Context, c *Client) (any, error) {
				o, err := c.Receive(ctx, ReceiveInput{QueueARN: testARN, Limit: 3, Wait: 20 * time.Second, Hold: 30 * time.Second})
				return o.Records, err
			}, "q-1.data-kinesis-queues.eu-west-1.amazonaws.com", "ReceiveQueueRecords",
			`{"Limit":3,"QueueARN":"` + testARN + `","VisibilityTimeoutSeconds":30,"WaitTimeSeconds":20}`,
			`{"Extra":[1,{"QueueRecords":2}],"QueueRecords":[{"ReceiptHandle":"h","RecordId":"r","Data":"ZGF0YQ==","ReceiveCount":2},{"ReceiptHandle":"i","RecordId":"s","PartitionKey":"k","Data":""}],"More":null}`,
			`[{"ReceiptHandle":"h","RecordID":"r","PartitionKey":"","Data":"ZGF0YQ==","Arrived":"0001-01-01T00:00:00Z","FirstReceived":"0001-01-01T00:00:00Z","ReceiveCount":2},{"ReceiptHandle":"i"`,
		},
		{
			"a receive of dead letters without records", func(ctx context.Context, c *Client) (any, error) {
				o, err := c.ReceiveDeadLetters(ctx, ReceiveInput{QueueARN: testARN})
				return o.Records, err
			}, "q-1.data-kinesis-queues.eu-west-1.amazonaws.com", "ReceiveDeadLetterQueueRecords", `{"QueueARN":"` + testARN + `"}`, `{"QueueRecords":[]}`, `null`,
		},
		{
			"Acknowledge", func(ctx context.Context, c *Client) (any, error) {
				return c.Acknowledge(ctx, testARN, []string{"h", "i"})
			},
			"q-1.data-kinesis-queues.eu-west-1.amazonaws.com", "AcknowledgeQueueRecords",
			`{"Entries":[{"ReceiptHandle":"h"},{"ReceiptHandle":"i"}],"QueueARN":"` + testARN + `"}`,
			`{"Successful":[{"ReceiptHandle":"h"}],"Failed":[{"ReceiptHandle":"i","ErrorCode":"ThrottlingException","ErrorMessage":"slow"}]}`,
			`{"Failed":[{"ReceiptHandle":"i","Code":"ThrottlingException","Message":"slow"}]}`,
		},
		{
			"SetVisibility", func(ctx context.Context, c *Client) (any, error) {
				return c.SetVisibility(ctx, testARN, []Visibility{{"h", 0}, {"i", time.Minute}})
			}, "q-1.data-kinesis-queues.eu-west-1.amazonaws.com", "UpdateQueueRecordsVisibility",
			`{"Entries":[{"ReceiptHandle":"h","VisibilityTimeoutSeconds":0},{"ReceiptHandle":"i","VisibilityTimeoutSeconds":60}],"QueueARN":"` + testARN + `"}`, `{}`, `{"Failed":null}`,
		},
		{
			"RestoreDeadLetters", func(ctx context.Context, c *Client) (any, error) {
				return c.RestoreDeadLetters(ctx, testARN, []string{"h"})
			}, "q-1.data-kinesis-queues.eu-west-1.amazonaws.com", "RestoreDeadLetterQueueRecords", `{"Entries":[{"ReceiptHandle":"h"}],"QueueARN":"` + testARN + `"}`, `{}`, `{"Failed":null}`,
		},
	} {
		client := clientOf(t, func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			if r.URL.Host != c.host || r.Header.Get("X-Amz-Target") != "Kinesis_20131202."+c.target || string(body) != c.body {
				t.Errorf("%s: %s %s\n%s\nwant %s", c.name, r.URL.Host, r.Header.Get("X-Amz-Target"), body, c.body)
			}
			const signed = "Credential=AKID/"
			if a := r.Header.Get("Authorization"); !strings.Contains(a, signed) || !strings.Contains(a, "/eu-west-1/kinesis/aws4_request, SignedHeaders=content-length;content-type;host;x-amz-date;x-amz-target") {
				t.Errorf("%s: signed with %q", c.name, a)
			}
			return answer(200, c.answer), nil
		})
		out, err := c.make(t.Context(), client)
		if got, _ := json.Marshal(out); err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}

func TestUnreadableAnswers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `[]`, `{"QueueRecords":[{"ReceiptHandle":"h","RecordId":"r","Data":"!"}]}`, `{"QueueRecords":[{"RecordId":"r"}]}`,
		`{"QueueRecords":{}}`, `{"QueueRecords":[`, `{"QueueRecords":[]`, `{"Other":`,
	} {
		calls := 0
		c := clientOf(t, func(*http.Request) (*http.Response, error) { calls++; return answer(200, body), nil })
		if o, err := c.Receive(t.Context(), ReceiveInput{QueueARN: testARN}); err == nil || len(o.Records) != 0 || calls != 1 {
			t.Errorf("%q: %v, %v after %d calls", body, o, err, calls)
		}
	}
}

func TestKindsOfErrorsAndRetries(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		header string
		kind   kind
		calls  int
	}{
		{"throttled", 400, `{"__type":"com.amazonaws.kinesis#ThrottlingException","message":"slow"}`, "", throttled, 4},
		{"a limit", 400, `{"__type":"LimitExceededException","Message":"slow"}`, "", throttled, 4},
		{"a failure of the service", 500, `{"__type":"InternalFailureException"}`, "", transient, 4},
		{"a gateway without JSON", 502, `<html>`, "", transient, 4},
		{"too many requests", 429, ``, "", throttled, 4},
		{"missing", 400, `{"__type":"ResourceNotFoundException"}`, "", missing, 1},
		{"denied", 400, `{"__type":"AccessDeniedException"}`, "", denied, 1},
		{"a forbidden request without a code", 403, ``, "", denied, 1},
		{"invalid", 400, `{"__type":"ValidationException"}`, "", invalid, 1},
		{"a code in the header", 400, `{}`, "InvalidArgumentException:http://x", invalid, 1},
		{"expired", 400, `{"__type":"ExpiredTokenException"}`, "", stale, 4},
		{"KMS", 400, `{"__type":"KMSDisabledException"}`, "", denied, 1},
		{"KMS throttling", 400, `{"__type":"KMSThrottlingException"}`, "", throttled, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			client := clientOf(t, func(*http.Request) (*http.Response, error) {
				calls++
				return answer(c.status, c.body, "X-Amzn-ErrorType", c.header, "X-Amzn-RequestId", "id"), nil
			})
			_, err := client.DescribeQueue(t.Context(), testARN)
			var e *Error
			if !errors.As(err, &e) || kindOf(err) != c.kind || calls != c.calls || e.Status != c.status || e.RequestID != "id" {
				t.Errorf("%s: kind %d of %v after %d calls", c.name, kindOf(err), err, calls)
			}
			calls = 0
			if _, err := client.once().DescribeQueue(t.Context(), testARN); err == nil || calls != 1 {
				t.Errorf("%s: %v after %d calls", c.name, err, calls)
			}
		})
	}
}

func TestASilentServiceTimesOut(t *testing.T) {
	for _, c := range []struct {
		wait, want time.Duration
	}{{20 * time.Second, 30 * time.Second}, {0, 19 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			client := clientOf(t, func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}).once()
			began := time.Now()
			_, err := client.Receive(t.Context(), ReceiveInput{QueueARN: testARN, Wait: c.wait})
			if kindOf(err) != transient || time.Since(began) != c.want {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := client.Receive(ctx, ReceiveInput{QueueARN: testARN}); kindOf(err) != canceled {
				t.Errorf("canceled: %v", err)
			}
		})
	}
}

func TestAWrongClockIsCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there := time.Now().Add(time.Hour)
		var dates []string
		client := clientOf(t, func(r *http.Request) (*http.Response, error) {
			date := r.Header.Get("X-Amz-Date")
			dates = append(dates, date)
			if at, _ := time.Parse("20060102T150405Z", date); there.Sub(at) > 5*time.Minute {
				return answer(400, `{"__type":"InvalidSignatureException"}`, "Date", there.UTC().Format(http.TimeFormat)), nil
			}
			return answer(200, `{}`), nil
		})
		if err := client.DeleteQueue(t.Context(), testARN); err != nil || len(dates) != 2 {
			t.Errorf("%v after %q", err, dates)
		}
	})
}

func TestAQueueIsFoundByItsName(t *testing.T) {
	t.Parallel()
	client := clientOf(t, func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		switch string(body) {
		case `{}`:
			return answer(200, `{"QueueSummaries":[{"QueueName":"orders","QueueARN":"old","QueueStatus":"DELETING"},{"QueueName":"gone","QueueStatus":"DELETING"}],"NextToken":"2"}`), nil
		case `{"NextToken":"2"}`:
			return answer(200, `{"QueueSummaries":[],"NextToken":"3"}`), nil
		}
		return answer(200, `{"QueueSummaries":[{"QueueName":"orders","QueueARN":"new","QueueStatus":"ACTIVE"}]}`), nil
	})
	if arn, err := client.Find(t.Context(), "orders"); arn != "new" || err != nil {
		t.Errorf("%q, %v", arn, err)
	}
	for name, want := range map[string]string{"gone": "is being deleted", "other": `no queue "other"`} {
		if _, err := client.Find(t.Context(), name); !errors.Is(err, ErrQueueNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAClientNeedsARegionAndCredentials(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]aws.Config{
		"AWS_REGION":     {Credentials: keys()},
		"no credentials": {Region: "eu-west-1"},
		"must be a URL":  {Region: "eu-west-1", Credentials: keys(), BaseEndpoint: aws.String("nowhere")},
	} {
		if _, err := NewClient(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
