package guide

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/provision"
	"github.com/weir-go/weir/store/dynamostore"
)

// makeOrders creates the stream, or returns the differences of an existing one.
func makeOrders(ctx context.Context, client *kinesis.Client) ([]string, error) {
	made, err := provision.CreateStream(ctx, client, provision.Stream{
		Name: "orders", Shards: 4, KMSKey: "alias/aws/kinesis", Retention: 48 * time.Hour,
		Tags: map[string]string{"team": "billing"},
	})
	return made.Differences, err
}

// makeTable creates the table, or returns the settings that an existing one lacks.
func makeTable(ctx context.Context, client *dynamodb.Client) ([]string, error) {
	store := dynamostore.New(client, dynamostore.Options{Table: "weir", Settings: dynamostore.Settings{
		KMSKey: "alias/weir", PointInTimeRecovery: true, DeletionProtection: true,
		Tags: map[string]string{"team": "billing"},
	}})
	if err := store.Migrate(ctx); err != nil {
		return nil, err
	}
	return store.Differences(ctx)
}

func TestMakingAStream(t *testing.T) {
	srv := kinesistest.NewServer(t)
	for range 2 {
		if told, err := makeOrders(t.Context(), srv.Client()); err != nil || len(told) > 0 {
			t.Errorf("%q, %v", told, err)
		}
	}
	if n := len(srv.OpenShards("orders")); n != 4 {
		t.Errorf("it has %d shards", n)
	}
}

// plainTable is a DynamoDB with an existing table without any settings.
type plainTable struct{}

func (plainTable) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	answer := map[string]string{
		"DescribeTable": `{"Table":{"TableStatus":"ACTIVE","TableArn":"arn:t","AttributeDefinitions":[{"AttributeName":"app","AttributeType":"S"},
			{"AttributeName":"row","AttributeType":"S"}],"KeySchema":[{"AttributeName":"app","KeyType":"HASH"},{"AttributeName":"row","KeyType":"RANGE"}]}}`,
		"DescribeContinuousBackups": `{}`, "ListTagsOfResource": `{"Tags":[{"Key":"team","Value":"billing"}]}`,
	}[operation]
	if answer == "" {
		return nil, fmt.Errorf("%s is not for a table that is there", operation)
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(answer)), Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: r}, nil
}

func TestMakingATable(t *testing.T) {
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1", HTTPClient: plainTable{}, Credentials: aws.AnonymousCredentials{}})
	told, err := makeTable(t.Context(), client)
	if err != nil || !slices.Equal(told, []string{
		"it is encrypted with DynamoDB's own key, not with alias/weir", "it has no point-in-time recovery", "it is not protected from being deleted",
	}) {
		t.Errorf("%q, %v", told, err)
	}
}
