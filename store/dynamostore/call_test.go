package dynamostore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-go/weir/lease"
)

// server replaces DynamoDB. It maps an operation and a body to a status and a body.
type server func(ctx context.Context, operation string, body map[string]any) (int, string)

func (s server) Do(r *http.Request) (*http.Response, error) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	status, answer := 400, `{"__type":"ValidationException","message":"`+operation+` is not consistent"}`
	if readsConsistently(operation, body) {
		status, answer = s(r.Context(), operation, body)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Body: io.NopCloser(bytes.NewBufferString(answer)), Request: r,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
	}, nil
}

// readsConsistently checks that reads are consistent. The servers of the integration tests cannot
// detect an inconsistent read, so only these tests can.
func readsConsistently(operation string, body map[string]any) bool {
	switch operation {
	case "GetItem", "Query", "Scan":
		return body["ConsistentRead"] == true
	}
	return true
}

func (s server) store(table string) *Store {
	return New(dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", HTTPClient: s,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "k", SecretAccessKey: "s"}, nil
		}),
	}), Options{Table: table})
}

func refusal(code string) string {
	return `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"the server's own words"}`
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestWhatRetryingMendsIsRetried(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
	}{
		{"throttled", 400, refusal("ThrottlingException")},
		{"out of provisioned throughput", 400, refusal("ProvisionedThroughputExceededException")},
		{"over the account's limit", 400, refusal("RequestLimitExceeded")},
		{"internal error", 500, refusal("InternalServerError")},
		{"unavailable", 503, "<html>no JSON</html>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var tries int
				s := server(func(context.Context, string, map[string]any) (int, string) {
					if tries++; tries <= 4 {
						return c.status, c.body
					}
					return 200, `{}`
				}).store("weir")
				if ok, err := s.Lead(within(t, time.Minute), "app", "a", 0); !ok || err != nil {
					t.Errorf("%t, %v", ok, err)
				}
				if tries != 5 {
					t.Errorf("%d tries", tries)
				}
			})
		})
	}
}

func TestRetriesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(func(context.Context, string, map[string]any) (int, string) {
			return 400, refusal("ThrottlingException")
		}).store("weir")
		began := time.Now()
		_, err := s.Lead(within(t, 3*time.Second), "app", "a", 0)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "ThrottlingException") {
			t.Error(err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %s", took)
		}
		began = time.Now()
		if _, err = s.Lead(context.Background(), "app", "a", 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(began); took != withoutDeadline {
			t.Errorf("without a deadline it took %s", took)
		}
	})
}

func TestAConnectionThatHangsLeavesTimeForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries int
		s := server(func(ctx context.Context, _ string, _ map[string]any) (int, string) {
			if tries++; tries <= 2 {
				<-ctx.Done()
			}
			return 200, `{}`
		}).store("weir")
		if ok, err := s.Lead(within(t, 2500*time.Millisecond), "app", "a", 0); !ok || err != nil || tries != 3 {
			t.Errorf("%t, %v after %d tries", ok, err, tries)
		}
	})
}

func TestARefusalIsNotRetried(t *testing.T) {
	var tries int
	s := server(func(context.Context, string, map[string]any) (int, string) {
		tries++
		return 400, refusal("ItemCollectionSizeLimitExceededException")
	}).store("weir")
	_, err := s.Lead(t.Context(), "app", "a", 0)
	if err == nil || tries != 1 || !strings.Contains(err.Error(), "the server's own words") || errors.Is(err, lease.ErrSetup) {
		t.Errorf("%d tries: %v", tries, err)
	}
}

func TestSetupErrorsSayWhatToDo(t *testing.T) {
	otherShape := `{"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"leaseKey","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"leaseKey","AttributeType":"S"}]}}`
	for _, c := range []struct {
		name   string
		server server
		words  []string
	}{
		{"a missing table", func(context.Context, string, map[string]any) (int, string) {
			return 400, refusal("ResourceNotFoundException")
		}, []string{"no table mine", "eu-central-1", "aws dynamodb create-table --table-name mine", `resource "aws_dynamodb_table"`, `name         = "mine"`,
			"AWS::DynamoDB::Table", "TableName: mine"}},
		{"no permission", func(context.Context, string, map[string]any) (int, string) {
			return 400, refusal("AccessDeniedException")
		}, []string{"not allowed", "dynamodb:UpdateItem", "dynamodb:Query", "table/mine", "the server's own words"}},
		{"a table of another shape", func(_ context.Context, operation string, _ map[string]any) (int, string) {
			if operation == "DescribeTable" {
				return 200, otherShape
			}
			return 400, refusal("ValidationException")
		}, []string{"HASH leaseKey (S)", "HASH app (S), RANGE row (S)", "another table"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.server.store("mine")
			calls := map[string]func() error{
				"Heartbeat": func() error {
					_, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "a", First: true})
					return err
				},
				"View":  func() error { _, err := s.View(t.Context(), "app", ""); return err },
				"Lead":  func() error { _, err := s.Lead(t.Context(), "app", "a", 0); return err },
				"Leave": func() error { return s.Leave(t.Context(), "app", lease.Report{Session: "a"}) },
				"Apply": func() error {
					_, err := s.Apply(t.Context(), "app", []lease.Action{{Kind: lease.Create, Lease: lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 1}}})
					return err
				},
			}
			for name, call := range calls {
				err := call()
				if !errors.Is(err, lease.ErrSetup) {
					t.Errorf("%s: %v", name, err)
					continue
				}
				for _, w := range c.words {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%s does not say %q:\n%v", name, w, err)
					}
				}
			}
		})
	}
	if err := New(nil, Options{}).Leave(t.Context(), "app", lease.Report{Session: "a"}); !errors.Is(err, lease.ErrSetup) {
		t.Errorf("without a client: %v", err)
	}
}

func TestMigrate(t *testing.T) {
	const ours = `"KeySchema":[{"AttributeName":"app","KeyType":"HASH"},{"AttributeName":"row","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"row","AttributeType":"S"},{"AttributeName":"app","AttributeType":"S"}]`
	table := func(status string) string { return `{"Table":{"TableStatus":"` + status + `",` + ours + `}}` }
	missing := refusal("ResourceNotFoundException")
	type answer struct {
		status int
		body   string
	}
	for _, c := range []struct {
		name      string
		describes []answer // the last one is repeated
		create    answer
		creates   int
		want      string // a part of the error; "" for none
	}{
		{"a missing one is created and waited for", []answer{{400, missing}, {200, table("CREATING")}, {200, table("ACTIVE")}}, answer{200, `{}`}, 1, ""},
		{"one that is there stays", []answer{{200, table("ACTIVE")}}, answer{}, 0, ""},
		{"one that another process creates is waited for", []answer{{400, missing}, {400, missing}, {200, table("CREATING")}, {200, table("ACTIVE")}},
			answer{400, refusal("ResourceInUseException")}, 2, ""},
		{"one that is being deleted is created again", []answer{{200, table("DELETING")}, {400, missing}, {200, table("ACTIVE")}}, answer{200, `{}`}, 1, ""},
		{"one of another shape is refused", []answer{{200, strings.ReplaceAll(table("ACTIVE"), `"row"`, `"other"`)}}, answer{}, 0, "RANGE other (S)"},
		{"one that may not be created is an error", []answer{{400, missing}}, answer{400, refusal("AccessDeniedException")}, 1, "not allowed"},
		{"one that never becomes ready is an error", []answer{{200, table("CREATING")}}, answer{}, 0, "not ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var creates int
				s := server(func(_ context.Context, operation string, body map[string]any) (int, string) {
					if operation == "CreateTable" {
						creates++
						if body["BillingMode"] != "PAY_PER_REQUEST" || body["TableName"] != "mine" {
							t.Errorf("CreateTable of %v", body)
						}
						return c.create.status, c.create.body
					}
					a := c.describes[0]
					if len(c.describes) > 1 {
						c.describes = c.describes[1:]
					}
					return a.status, a.body
				}).store("arn:aws:dynamodb:eu-central-1:123456789012:table/mine")
				err := s.Migrate(t.Context())
				if creates != c.creates {
					t.Errorf("%d tables were created", creates)
				}
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

func TestPartsOfAnAnswerArePutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu         sync.Mutex
			operations []string
		)
		s := server(func(_ context.Context, operation string, body map[string]any) (int, string) {
			mu.Lock()
			operations = append(operations, operation)
			mu.Unlock()
			switch operation {
			case "UpdateItem":
				return 200, `{"Attributes":{"app":{"S":"app"},"row":{"S":"group/worker/a"},"beat":{"N":"9"},"told":{"N":"1"}}}`
			case "Query":
				if strings.Contains(string(must(json.Marshal(body["ExpressionAttributeValues"]))), `"group/"`) {
					if body["ExclusiveStartKey"] == nil {
						return 200, `{"Items":[{"app":{"S":"app"},"row":{"S":"group/leader"},"session":{"S":"b"},"term":{"N":"3"}}],
							"LastEvaluatedKey":{"app":{"S":"app"},"row":{"S":"group/leader"}}}`
					}
					return 200, `{"Items":[{"app":{"S":"app"},"row":{"S":"group/worker/a"},"beat":{"N":"8"}},
						{"app":{"S":"app"},"row":{"S":"group/worker/b"},"beat":{"N":"7"}},
						{"app":{"S":"app"},"row":{"S":"group/worker/c"},"beat":{"S":"of another hand"}},
						{"app":{"S":"app"},"row":{"S":"group/worker/d"},"beat":{"N":"5"},"ended":{"BOOL":true}},
						{"app":{"S":"app"},"row":{"S":"group/worker/e"},"beat":{"N":"6"}}]}`
				}
				row := func(id, more string) string {
					return `{"Items":[{"app":{"S":"app"},"row":{"S":"lease/s/` + id + `"},"epoch":{"N":"1"},"owner":{"S":"a"},"position":{"S":"oldest"},
						"positionKey":{"S":"2"},"rangeStart":{"S":"0"},"rangeEnd":{"S":"1"}}]` + more + `}`
				}
				if body["ExclusiveStartKey"] == nil {
					return 200, row("2", `,"LastEvaluatedKey":{"app":{"S":"app"},"row":{"S":"lease/s/2"}}`)
				}
				return 200, row("1", "")
			}
			return 400, refusal("UnknownOperationException")
		}).store("weir")

		for i, want := range []struct {
			asks       bool
			operations string
		}{
			{false, "Query Query Query Query UpdateItem"},
			{true, "Query Query UpdateItem"}, // the leases are cached
		} {
			operations = nil
			o, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "a", Others: want.asks})
			if err != nil {
				t.Fatal(err)
			}
			if len(o.Held) != 2 || o.Held[0].Shard != "1" || o.Held[1].Shard != "2" {
				t.Errorf("beat %d: held %v", i, o.Held)
			}
			if o.Leader != (lease.Leader{Session: "b", Epoch: 3, Heartbeats: 7}) {
				t.Errorf("beat %d: leader %+v", i, o.Leader)
			}
			// An unreadable row does not disturb heartbeats.
			if others := []lease.SessionHeartbeat{{Session: "b", Heartbeats: 7}, {Session: "e", Heartbeats: 6}}; want.asks != slices.Equal(o.Others, others) {
				t.Errorf("beat %d: others %v", i, o.Others)
			}
			// The update of the session runs in parallel to the reads, so it may occur anywhere.
			slices.Sort(operations)
			if got := strings.Join(operations, " "); got != want.operations {
				t.Errorf("beat %d: %s", i, got)
			}
		}
	})
}

func TestApplicationsOfSeveralPages(t *testing.T) {
	s := server(func(_ context.Context, operation string, body map[string]any) (int, string) {
		if operation != "Scan" {
			return 400, refusal("UnknownOperationException")
		}
		if body["ExclusiveStartKey"] == nil { // in the order of a hash
			return 200, `{"Items":[{"app":{"S":"c"}},{"app":{"S":"a"}}],"LastEvaluatedKey":{"app":{"S":"a"},"row":{"S":"group/leader"}}}`
		}
		return 200, `{"Items":[{"app":{"S":"a"}},{"app":{"S":"b"}}]}`
	}).store("weir")
	apps, err := s.Apps(t.Context())
	if err != nil || !slices.Equal(apps, []string{"a", "b", "c"}) {
		t.Errorf("%q, %v", apps, err)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// If the user's client panics in a goroutine of the store, the call fails.
func TestAClientMayPanicOnAnyGoroutine(t *testing.T) {
	s := server(func(_ context.Context, operation string, _ map[string]any) (int, string) {
		// The heartbeat's write gets this answer. Its reads run in another goroutine and panic.
		if operation == "UpdateItem" {
			return 400, `{"__type":"ConditionalCheckFailedException"}`
		}
		panic("a bug in an HTTP client")
	}).store("t")
	if _, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "one", Name: "one"}); err == nil {
		t.Error("the beat succeeded")
	}
	err := parallel(3, func(int) error { panic("a bug in an HTTP client") })
	if err == nil || !strings.Contains(err.Error(), "a bug in an HTTP client") {
		t.Errorf("calls made in parallel returned %v", err)
	}
}
