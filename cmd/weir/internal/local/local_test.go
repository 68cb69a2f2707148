package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/wholebody"
)

func TestLocal(t *testing.T) {
	c := clitest.Start(t, "", "local", "--addr=127.0.0.1:0", "--stream=a:3", "--stream=b", "--stream=o:on-demand", "--queue=work:o")
	c.Out.Await(t, "the welcome", func(s string) bool { return strings.Contains(s, "Ctrl-C") })
	found := regexp.MustCompile(`AWS_ENDPOINT_URL_KINESIS=(\S+)`).FindStringSubmatch(c.Out.String())
	if found == nil {
		t.Fatalf("no endpoint in %s", c.Out)
	}
	if !strings.Contains(c.Out.String(), "Stream a has 3 shards.") || !strings.Contains(c.Out.String(), "Stream b has 1 shard.") ||
		!strings.Contains(c.Out.String(), "Stream o is in on-demand mode.") || !strings.Contains(c.Out.String(), "Queue work of stream o is arn:aws:kinesis:us-east-1:000000000000:queue/") {
		t.Errorf("it said %s", c.Out)
	}
	clitest.MustRun(t, "one\n", "put", "--endpoint="+found[1], "--stream=a")
	if out := clitest.MustRun(t, "", "tail", "--endpoint="+found[1], "--stream=a", "--until-tip"); out != "one\n" {
		t.Errorf("tail printed %q", out)
	}
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
}

func TestLocalWithTLS(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	c := clitest.Start(t, "", "local", "--addr=127.0.0.1:0", "--stream=a", "--tls", "--ca-file="+ca)
	c.Out.Await(t, "the welcome", func(s string) bool { return strings.Contains(s, "Ctrl-C") })
	found := regexp.MustCompile(`AWS_ENDPOINT_URL_KINESIS=(https://\S+)`).FindStringSubmatch(c.Out.String())
	if found == nil || !strings.Contains(c.Out.String(), "AWS_CA_BUNDLE="+ca) {
		t.Fatalf("it said %s", c.Out)
	}
	if _, err := os.Stat(ca); err != nil {
		t.Fatal(err)
	}
	refused := clitest.Start(t, "", "tail", "--endpoint="+found[1], "--stream=a", "--until-tip")
	if code := refused.Wait(t); code != cli.ExitFailed || !strings.Contains(refused.Err.String(), "certificate") {
		t.Errorf("without the certificate: exit code %d, %s", code, refused.Err)
	}
	t.Setenv("AWS_CA_BUNDLE", ca)
	clitest.MustRun(t, "one\n", "put", "--endpoint="+found[1], "--stream=a")
	if out := clitest.MustRun(t, "", "tail", "--endpoint="+found[1], "--stream=a", "--until-tip"); out != "one\n" {
		t.Errorf("tail printed %q", out)
	}
}

func TestLocalIsAnAccountOfOnesOwn(t *testing.T) {
	c := clitest.Start(t, "", "local", "--addr=127.0.0.1:0", "--stream=a:2", "--account=123456789012", "--state-delay=1h", "--shard-limit=3")
	c.Out.Await(t, "the welcome", func(s string) bool { return strings.Contains(s, "Ctrl-C") })
	endpoint := regexp.MustCompile(`AWS_ENDPOINT_URL_KINESIS=(\S+)`).FindStringSubmatch(c.Out.String())[1]
	client := kinesis.New(kinesis.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, Retryer: aws.NopRetryer{}, HTTPClient: wholebody.Client(awshttp.NewBuildableClient()),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
	})
	status := func(name string) string {
		out, err := client.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: &name})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(out.StreamDescriptionSummary.StreamStatus, " ", *out.StreamDescriptionSummary.StreamARN)
	}
	if got := status("a"); got != "ACTIVE arn:aws:kinesis:us-east-1:123456789012:stream/a" {
		t.Errorf("a is %s", got)
	}
	create := func(name string, shards int32) error {
		_, err := client.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: &name, ShardCount: &shards})
		return err
	}
	if err := create("b", 2); err == nil || !strings.Contains(err.Error(), "Limit: 3") {
		t.Errorf("two shards more than two of three: %v", err)
	}
	if err := create("b", 1); err != nil {
		t.Error(err)
	}
	if got := status("b"); !strings.HasPrefix(got, "CREATING") {
		t.Errorf("b is %s", got)
	}
}

func TestLocalFlagsThatMakeNoSense(t *testing.T) {
	for _, flag := range []string{"--account=12", "--account=12345678901a", "--account=", "--state-delay=-1s", "--shard-limit=0"} {
		c := clitest.Start(t, "", "local", "--addr=127.0.0.1:0", flag)
		if code := c.Wait(t); code != cli.ExitUsage || !strings.Contains(c.Err.String(), strings.Split(flag, "=")[0]) {
			t.Errorf("%s: exit code %d, %s", flag, code, c.Err)
		}
	}
}
