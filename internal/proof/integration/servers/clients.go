package servers

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// The region and the credentials of the clients. The servers check neither.
const (
	Region          = "eu-central-1"
	AccessKeyID     = "test"
	SecretAccessKey = "test"
)

// Config returns an SDK configuration for s.
func (s *Server) Config() aws.Config {
	return aws.Config{
		Region:       Region,
		BaseEndpoint: aws.String(s.URL),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: AccessKeyID, SecretAccessKey: SecretAccessKey}, nil
		}),
		// Without TLS, this client uses HTTP/1.1.
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = 64 }),
	}
}

// DynamoDB returns a new client of s.
func (s *Server) DynamoDB(options ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.NewFromConfig(s.Config(), options...)
}

// Kinesis returns a new client of s.
func (s *Server) Kinesis(options ...func(*kinesis.Options)) *kinesis.Client {
	return kinesis.NewFromConfig(s.Config(), options...)
}

// CAFile writes a certificate to a file, which is removed after the test. Use it with
// AWS_CA_BUNDLE.
func CAFile(t testing.TB, pem []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
