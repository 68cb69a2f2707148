package consume

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/internal/proof/fakes3"
)

// Dead letters in a bucket have the same format as those of Lambda.
func TestLettersInLambdasForm(t *testing.T) {
	bucket := fakes3.New()
	web := httptest.NewServer(bucket)
	defer web.Close()
	t.Setenv("AWS_ENDPOINT_URL_S3", web.URL)
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	for _, text := range []string{"1", "bad", "3"} {
		server.Put("s", "key", []byte(text))
	}
	c := clitest.Start(t, "", "consume", "--stream=s", "--app=a", "--store=memory:", "--retry-min=1ms", "--retry-max=10ms", endpoint, "--exec", `in=$(cat); case $in in *bad*) exit 3;; esac`,
		"--max-attempts=2", "--bisect", "--outage-grace=0", "--dead=s3://bucket/dead", "--dead-format=lambda")
	c.Err.Await(t, "the letter", func(s string) bool { return strings.Contains(s, "records were dead-lettered") })
	clitest.Stop(t, c)
	var found []string
	for _, key := range bucket.Keys() {
		if strings.HasPrefix(key, "dead/aws/lambda/") {
			found = append(found, key)
		}
	}
	if len(found) != 1 || !strings.Contains(found[0], "/shardId-000000000000/") {
		t.Fatalf("%q", bucket.Keys())
	}
	var m struct {
		RequestContext   struct{ FunctionARN, Condition string }
		KinesisBatchInfo struct {
			BatchSize int
			StreamARN string
		}
		Payload string
	}
	text := bucket.Get(found[0])
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if !strings.HasSuffix(m.RequestContext.FunctionARN, ":000000000000:function:a") || !strings.HasPrefix(m.RequestContext.FunctionARN, "arn:aws:lambda:") ||
		!strings.HasSuffix(m.KinesisBatchInfo.StreamARN, ":000000000000:stream/s") || m.KinesisBatchInfo.BatchSize != 1 || !strings.Contains(m.Payload, `"data":"YmFk"`) {
		t.Errorf("%s", text)
	}
	if got := clitest.MustRun(t, "", "dead", "list", "--dead=s3://bucket/dead"); !strings.HasPrefix(got, "No dead letters") {
		t.Errorf("%q", got)
	}
}

func TestWhatLettersInLambdasFormSayOfTheirStream(t *testing.T) {
	for want, o := range map[string]options{
		"arn:aws:kinesis:eu-west-1:000000000000:stream/orders arn:aws:lambda:eu-west-1:000000000000:function:billing":         {app: "billing", streams: []string{"orders", "more"}},
		"arn:aws-cn:kinesis:cn-north-1:111122223333:stream/orders arn:aws-cn:lambda:cn-north-1:111122223333:function:billing": {app: "billing", streams: []string{"orders", "arn:aws-cn:kinesis:cn-north-1:111122223333:stream/more"}},
		"arn:aws:kinesis:us-east-1:111122223333:stream/orders arn:aws:lambda:us-east-1:111122223333:function:billing":         {app: "billing", streams: []string{"arn:aws:kinesis:us-east-1:111122223333:stream/orders", "arn:aws:kinesis:us-east-1:111122223333:stream/more"}},
	} {
		form, err := o.lambdasForm("eu-west-1")
		if got := form.StreamARN + " " + form.FunctionARN; got != want || err != nil || form.Check() != nil {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	two := options{streams: []string{"arn:aws:kinesis:eu-west-1:1:stream/a", "arn:aws:kinesis:eu-west-1:2:stream/b"}}
	if _, err := two.lambdasForm("eu-west-1"); err == nil || !strings.Contains(err.Error(), "in different accounts") {
		t.Errorf("%v", err)
	}
}

func TestWrongWordsAboutLambdasForm(t *testing.T) {
	consume := []string{"consume", "--stream=s", "--app=a", "--store=memory:", "--endpoint=http://127.0.0.1:1"}
	for _, row := range []struct {
		want string
		args []string
	}{
		{"--dead-format lambda applies only to a queue or a bucket", []string{"--exec=cat", "--max-attempts=2", "--dead=file:x", "--dead-format=lambda"}},
		{"--dead-format lambda applies only to a queue or a bucket", []string{"--exec=cat", "--max-attempts=2", "--dead=kinesis:x", "--dead-format=lambda"}},
		{"--dead-format needs a destination for dead letters", []string{"--exec=cat", "--dead-format=lambda"}},
		{"use weir or lambda", []string{"--exec=cat", "--max-attempts=2", "--dead=s3://bucket", "--dead-format=x"}},
		{"add --exec or --lambda", []string{"--max-attempts=2", "--dead=s3://bucket"}},
		{"--maximum-record-age-in-seconds or --max-age", []string{"--lambda=x", "--dead=s3://bucket"}},
		{"--to and --lambda are two ways", []string{"--lambda=x", "--to=file:x"}},
		{"a function reports failed records with --function-response-types", []string{"--lambda=x", "--exec-results"}},
		{"--exec-credentials applies only to --exec", []string{"--lambda=x", "--exec-credentials"}},
	} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, append(consume, row.args...)...); !strings.Contains(said, row.want) {
			t.Errorf("%v: %s", row.args, said)
		}
	}
}
