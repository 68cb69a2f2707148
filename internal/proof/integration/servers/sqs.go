package servers

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// SQS starts ElasticMQ, an SQS server in memory, without a queue. It accepts any pair of keys. It
// accepts messages up to 1 MiB, whatever the MaximumMessageSize of a queue is.
func SQS(t testing.TB) *Database {
	t.Helper()
	dir := fetched(t, "elasticmq")
	d := newDatabase(t, "SQS", false)
	d.command = func() *exec.Cmd {
		// The URLs of its queues begin with the address of the node.
		cmd := exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
			"-Dnode-address.host=127.0.0.1", "-Dnode-address.port="+d.Port(),
			"-Drest-sqs.bind-hostname=127.0.0.1", "-Drest-sqs.bind-port="+d.Port(), "-Drest-stats.enabled=false",
			"-cp", filepath.Join(dir, "*"), "org.elasticmq.server.Main")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.Dir}
		return cmd
	}
	d.ready = func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.Addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	d.boot()
	return d
}

// SQSClient returns a client for a server. The client keeps no connections.
func SQSClient(addr string) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: Region, BaseEndpoint: aws.String("http://" + addr),
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: AccessKeyID, SecretAccessKey: SecretAccessKey}, nil
		}),
	})
}

// SQSQueue creates a queue with the given attributes and returns its URL.
func SQSQueue(t testing.TB, client *sqs.Client, name string, attributes map[string]string) string {
	t.Helper()
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}
