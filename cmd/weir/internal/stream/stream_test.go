package stream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestStreamCreateMakesAStreamOnce(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	args := []string{"stream", "create", endpoint, "--stream=flights", "--shards=3", "--kms-key=alias/aws/kinesis", "--retention=48h", "--max-record-size=2MiB", "--tag=team=a=b", "--tag=stage=test"}
	if said := clitest.MustRun(t, "", args...); said != "stream flights is made: "+server.StreamARN("flights")+"\n" {
		t.Errorf("it says %q", said)
	}
	name := "flights"
	tags, err := server.Client().ListTagsForStream(t.Context(), &kinesis.ListTagsForStreamInput{StreamName: &name})
	if err != nil || len(tags.Tags) != 2 {
		t.Errorf("the tags are %+v, %v", tags, err)
	}
	again := clitest.Start(t, "", args...)
	if code := again.Wait(t); code != cli.ExitDone || !strings.Contains(again.Out.String(), "exists already") || strings.Contains(again.Err.String(), "left as it is") {
		t.Errorf("again: exit code %d, %s%s", code, again.Out, again.Err)
	}

	other := clitest.Start(t, "", "stream", "create", endpoint, "--stream=flights", "--shards=on-demand", "--tag=team=other", "-o=json")
	code := other.Wait(t)
	var said struct {
		Stream, ARN string
		Created     bool
		Differences []string
	}
	if err := json.Unmarshal([]byte(other.Out.String()), &said); err != nil || code != cli.ExitDone || said.Created || said.ARN != server.StreamARN("flights") || len(said.Differences) != 2 {
		t.Errorf("exit code %d, %v, %+v", code, err, said)
	}
	for _, d := range said.Differences {
		if !strings.Contains(other.Err.String(), "left as it is, although "+d) {
			t.Errorf("%q is not among %s", d, other.Err)
		}
	}
}
