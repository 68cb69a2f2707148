package doctor

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/kinesistest"
)

// The exit code is that of the worst finding about a queue.
func TestDoctorLooksAtAQueue(t *testing.T) {
	t.Parallel()
	s, endpoint := clitest.Kinesis(t)
	s.CreateOnDemandStream("orders")
	s.CreateQueue(kinesistest.Queue{Stream: "orders", Name: "good", MaxReceiveCount: 20})
	s.CreateQueue(kinesistest.Queue{Stream: "orders", Name: "low"})
	if text := clitest.MustRun(t, "", "doctor", "--queue=good", endpoint); text != "Queue good: nothing is wrong. It is empty.\n" {
		t.Errorf("it says %s", text)
	}
	if text, _ := clitest.MustExit(t, cli.ExitWarned, "doctor", "--queue="+s.QueueARN("low"), endpoint); !strings.Contains(text, "0 errors and 1 warning") || !strings.Contains(text, "weir queue update --queue low --max-receives 20") {
		t.Errorf("it says %s", text)
	}
	s.Put("orders", "k", []byte("waits"))
	text, _ := clitest.MustExit(t, cli.ExitWrong, "doctor", "--queue=good", "-o=json", endpoint)
	var r queueReport
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Queue != "good" || r.State != "not consumed" ||
		!slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Code == "queue-not-consumed" && f.Severity == Error }) {
		t.Errorf("it is %+v, %v", r, err)
	}
}
