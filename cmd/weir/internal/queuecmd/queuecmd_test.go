package queuecmd

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/queue"
)

// orders starts a server with the on-demand stream orders.
func orders(t *testing.T) (*kinesistest.Server, string) {
	t.Helper()
	s, endpoint := clitest.Kinesis(t)
	s.CreateOnDemandStream("orders")
	return s, endpoint
}

// kill makes records of queue q dead letters, if the queue's MaxReceiveCount is 1.
func kill(t *testing.T, s *kinesistest.Server, payloads ...string) {
	t.Helper()
	for _, p := range payloads {
		s.Put("orders", "key", []byte(p))
	}
	client, err := queue.NewClient(aws.Config{
		Region: s.Region(), BaseEndpoint: aws.String(s.URL()), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	arn, left := s.QueueARN("q"), len(payloads)
	for left > 0 {
		out, err := client.Receive(t.Context(), queue.ReceiveInput{QueueARN: arn, Limit: 10, Wait: time.Second, Hold: time.Minute})
		if err != nil || len(out.Records) == 0 {
			t.Fatalf("%d are left: %v", left, err)
		}
		left -= len(out.Records)
		for _, r := range out.Records {
			if _, err := client.SetVisibility(context.Background(), arn, []queue.Visibility{{ReceiptHandle: r.ReceiptHandle}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAQueueFromCreationToDeletion(t *testing.T) {
	t.Parallel()
	s, endpoint := orders(t)
	s.CreateStream("provisioned", 1)
	said := clitest.MustRun(t, "", "queue", "create", "--queue=billing", "--stream=orders", "--from=oldest", "--tag=team=a", endpoint)
	if arn := s.QueueARN("billing"); said != "queue billing is made: "+arn+"\n" {
		t.Errorf("create says %s", said)
	}
	again := clitest.Start(t, "", "queue", "create", "--queue=billing", "--stream=orders", "--max-receives=7", "--visibility=1m", endpoint, "-o=json")
	if code := again.Wait(t); code != 0 || !strings.Contains(again.Out.String(), `"created":false`) || !strings.Contains(again.Err.String(), "although its --max-receives is 20") ||
		!strings.Contains(again.Err.String(), "although its --visibility is 30s") {
		t.Errorf("a second create: exit code %d, %s%s", code, again.Out, again.Err)
	}
	if _, said := clitest.MustExit(t, cli.ExitFailed, "queue", "create", "--queue=x", "--stream=provisioned", endpoint); !strings.Contains(said, "only on-demand streams can have queues") {
		t.Errorf("a provisioned stream: %s", said)
	}
	if _, said := clitest.MustExit(t, cli.ExitFailed, "queue", "describe", "--queue=bill", endpoint); !strings.Contains(said, "there is no queue bill; this account and region have billing") {
		t.Errorf("an unknown queue: %s", said)
	}
	clitest.MustRun(t, "", "queue", "update", "--queue=billing", "--max-receives=9", endpoint)
	var d description
	if err := json.Unmarshal([]byte(clitest.MustRun(t, "", "queue", "describe", "--queue=billing", "-o=json", endpoint)), &d); err != nil || d.MaxReceives != 9 || d.From != "oldest" {
		t.Errorf("after the update: %+v, %v", d, err)
	}
	if list := clitest.MustRun(t, "", "queue", "list", "--stream=orders", endpoint); !strings.Contains(list, "billing  ACTIVE  orders") {
		t.Errorf("list shows %s", list)
	}
	if list := clitest.MustRun(t, "", "queue", "list", "--stream=provisioned", endpoint); !strings.Contains(list, "There is no queue") {
		t.Errorf("list of another stream shows %s", list)
	}
	clitest.MustExit(t, cli.ExitUsage, "queue", "delete", "--queue=billing", endpoint) // it cannot ask
	if said := clitest.MustRun(t, "", "queue", "delete", "--queue="+s.QueueARN("billing"), "--yes", endpoint); said != "queue billing is being deleted\n" {
		t.Errorf("delete says %s", said)
	}
	var all struct{ Queues []listed }
	if err := json.Unmarshal([]byte(clitest.MustRun(t, "", "queue", "list", "-o=json", endpoint)), &all); err != nil || len(all.Queues) != 0 {
		t.Errorf("after the deletion: %+v, %v", all, err)
	}
}

// The description fits the screen, and names the numbers and the next step.
func TestDescribe(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	s, endpoint := orders(t)
	s.CreateQueue(kinesistest.Queue{Stream: "orders", Name: "q", MaxReceiveCount: 1})
	kill(t, s, `{"n":1}`)
	s.Put("orders", "a", []byte("waits"))
	text := clitest.MustRun(t, "", "queue", "describe", "--queue=q", endpoint)
	for _, want := range []string{
		"Queue q of stream orders is ACTIVE: with dead letters.", "  visible       1\n", "  in flight     0 of 120,000 at most (0 %)\n", "  dead letters  1\n",
		"not known without --peek", "1 in the last hour, 0 acknowledged", "becomes a dead letter after 1 receive,", "Next step: ", ":\n  weir queue dead list --queue q\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q: %s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("a long line: %s", line)
		}
	}
	peeked := clitest.MustRun(t, "", "queue", "describe", "--queue=q", "--peek", endpoint)
	if !strings.Contains(peeked, " old, of 1 record; received up to 1 time\n") {
		t.Errorf("--peek shows %s", peeked)
	}
	watched := clitest.Start(t, "", "queue", "describe", "--queue=q", "--watch", "-o=json", endpoint)
	watched.Out.Await(t, "two looks", func(all string) bool { return strings.Count(all, `"queue":"q"`) > 1 })
	if code := watched.Interrupt(t); code != 0 {
		t.Errorf("--watch ends with %d: %s", code, watched.Err)
	}
}

func TestDeadLettersOfAQueue(t *testing.T) {
	t.Parallel()
	s, endpoint := orders(t)
	s.CreateQueue(kinesistest.Queue{Stream: "orders", Name: "q", MaxReceiveCount: 1})
	kill(t, s, `{"n":1}`, `{"n":2}`, `{"n":3}`)
	letters := func() (all []letter) {
		t.Helper()
		for line := range strings.Lines(clitest.MustRun(t, "", "queue", "dead", "list", "--queue=q", "-o=json", endpoint)) {
			var l letter
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		return all
	}
	all := letters()
	if len(all) != 3 || all[0].Data == nil || all[0].Key != "key" || all[0].Bytes != 7 {
		t.Fatalf("there are %+v", all)
	}
	first := all[0].RecordID
	if text := clitest.MustRun(t, "", "queue", "dead", "list", "--queue=q", endpoint); !strings.Contains(text, first) || strings.Contains(text, `"n"`) {
		t.Errorf("list shows %s", text)
	}
	if text := clitest.MustRun(t, "", "queue", "dead", "show", "--queue=q", endpoint, first); !strings.Contains(text, "key             key\n") || !strings.Contains(text, "payload: 7 B, JSON\n{\n") {
		t.Errorf("show shows %s", text)
	}
	if data := clitest.MustRun(t, "", "queue", "dead", "show", "--data", "--queue=q", endpoint, first); data != *all[0].Data {
		t.Errorf("--data shows %s", data)
	}
	if _, said := clitest.MustExit(t, cli.ExitFailed, "queue", "dead", "show", "--queue=q", endpoint, "none"); !strings.Contains(said, "no visible dead letter none") {
		t.Errorf("an unknown record: %s", said)
	}

	file := filepath.Join(t.TempDir(), "dead.ndjson")
	if said := clitest.MustRun(t, "", "queue", "copy-dead", "--queue=q", "--dead=file:"+file, "--drop", endpoint, first); !strings.HasPrefix(said, "1 dead letter is copied to file:"+file+" and removed") {
		t.Errorf("copy-dead says %s", said)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"position":"`+first+`"`) || !strings.Contains(string(text), `"app":"q"`) {
		t.Errorf("the copy is %s, %v", text, err)
	}
	clitest.MustExit(t, cli.ExitUsage, "queue", "dead", "drop", "--queue=q", "--all", endpoint) // it cannot ask
	clitest.MustExit(t, cli.ExitUsage, "queue", "dead", "retry", "--queue=q", endpoint)
	clitest.MustExit(t, cli.ExitUsage, "queue", "dead", "retry", "--queue=q", "--all", endpoint, first)
	if said := clitest.MustRun(t, "", "queue", "dead", "drop", "--queue=q", "--yes", endpoint, all[1].RecordID); said != "1 dead letter is removed\n" {
		t.Errorf("drop says %s", said)
	}
	if said := clitest.MustRun(t, "", "queue", "dead", "retry", "--queue=q", "--all", endpoint); said != "1 dead letter is restored\n" {
		t.Errorf("retry says %s", said)
	}
	if now := s.QueueState("q"); now.Visible != 1 || now.VisibleDeadLetters+now.InFlightDeadLetters != 0 {
		t.Errorf("the queue is %+v", now)
	}
}

// A restored record that fails again at once is restored only once, so that the command ends.
func TestADeadLetterIsRestoredOnce(t *testing.T) {
	t.Parallel()
	s, endpoint := clitest.Kinesis(t)
	s.CreateOnDemandStream("orders")
	s.CreateQueue(kinesistest.Queue{Stream: "orders", Name: "q", MaxReceiveCount: 1})
	s.Put("orders", "k", []byte("poison"))
	c := clitest.Start(t, "", "queue", "consume", "--queue=q", "--exec=exit 1", "--max-attempts=1", "--outage-grace=0", endpoint)
	for i := range 2 {
		c.Err.Await(t, "a dead letter", func(all string) bool { return strings.Count(all, "a record was set aside") > i })
		if said := clitest.MustRun(t, "", "queue", "dead", "retry", "--queue=q", "--all", endpoint); said != "1 dead letter is restored\n" {
			t.Errorf("retry says %s", said)
		}
	}
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("the consumer ends with %d: %s", code, c.Err)
	}
}
