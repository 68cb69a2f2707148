package consume

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/kinesistest"
)

// startQueue starts a server with the queue billing of stream orders, and puts the payloads.
func startQueue(t *testing.T, payloads ...string) (*kinesistest.Server, []string) {
	t.Helper()
	s, endpoint := clitest.Kinesis(t)
	s.CreateOnDemandStream("orders")
	s.CreateQueue(kinesistest.Queue{Stream: "orders", Name: "billing", MaxReceiveCount: 20})
	for i, p := range payloads {
		s.Put("orders", "key"+strconv.Itoa(i), []byte(p))
	}
	return s, []string{"consume", "--queue=billing", endpoint}
}

// waitFor waits until a condition about a server is true.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("not within a minute")
		}
	}
}

func TestConsumeAQueue(t *testing.T) {
	t.Parallel()
	s, args := startQueue(t, "a", "b", "c")
	c := clitest.Start(t, "", args...)
	c.Out.Await(t, "three records", func(all string) bool { return strings.Count(all, "\n") == 3 })
	if code := c.Interrupt(t); code != 0 {
		t.Errorf("it ends with %d: %s", code, c.Err)
	}
	lines := c.Out.Lines()
	slices.Sort(lines)
	if strings.Join(lines, "") != "abc" || s.QueueState("billing").Acknowledged != 3 {
		t.Errorf("it printed %q, and the queue is %+v", lines, s.QueueState("billing"))
	}
	if said := c.Err.String(); !strings.Contains(said, "the consumer starts") || !strings.Contains(said, "received=3 handled=3 failed=0 acknowledged=3") {
		t.Errorf("it logs %s", said)
	}
}

func TestRecordsOfAQueueAsJSON(t *testing.T) {
	t.Parallel()
	_, args := startQueue(t, "a\xff")
	c := clitest.Start(t, "", append(args, "-o=json", "--order-by-key", "--hold=1m", "--ack-delay=10ms")...)
	c.Out.Await(t, "a record", func(all string) bool { return strings.Count(all, "\n") == 1 })
	line := c.Out.String()
	for _, want := range []string{`{"id":"`, `"key":"key0"`, `"receives":1`, `"data_base64":"Yf8="`} {
		if !strings.Contains(line, want) {
			t.Errorf("it lacks %s: %s", want, line)
		}
	}
	if code := c.Interrupt(t); code != 0 {
		t.Errorf("it ends with %d: %s", code, c.Err)
	}
}

// A record at which the command always fails is set aside, and the others are handled.
func TestACommandForAQueue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	done, dead := filepath.Join(dir, "done"), filepath.Join(dir, "dead.ndjson")
	s, args := startQueue(t, "one", "bad", "two")
	c := clitest.Start(t, "", append(args, "--exec=grep -v -q bad && echo $WEIR_STREAM >> "+done, "--max-attempts=2", "--outage-grace=0", "--retry-min=10ms", "--batch=1", "--dead=file:"+dead)...)
	c.Err.Await(t, "a dead letter", func(all string) bool { return strings.Contains(all, "a record was set aside") })
	waitFor(t, func() bool { return s.QueueState("billing").Acknowledged == 3 })
	if code := c.Interrupt(t); code != 0 {
		t.Errorf("it ends with %d: %s", code, c.Err)
	}
	if text, err := os.ReadFile(done); err != nil || string(text) != "orders\norders\n" {
		t.Errorf("the command wrote %q, %v", text, err)
	}
	if text, err := os.ReadFile(dead); err != nil || !strings.Contains(string(text), `"data":"YmFk"`) || !strings.Contains(string(text), `"reason":"attempts"`) {
		t.Errorf("the dead letter is %s, %v", text, err)
	}
	if said := c.Err.String(); !strings.Contains(said, "records failed; they are handled again") {
		t.Errorf("it logs %s", said)
	}
}

// With --exec-results, the records that a command names fail or are rejected, and the others are
// acknowledged.
func TestResultsForAQueue(t *testing.T) {
	t.Parallel()
	dead := filepath.Join(t.TempDir(), "dead.ndjson")
	s, args := startQueue(t, "one", "bad", "two")
	script := `while read -r line; do id=$(echo "$line" | sed 's/{"id":"\([^"]*\).*/\1/'); case "$line" in *bad*) r='rejected","error":"no good';; *) r=done;; esac; echo "{\"id\":\"$id\",\"result\":\"$r\"}" >&3; done; echo '{"end":true}' >&3`
	c := clitest.Start(t, "", append(args, "--exec="+script, "--exec-results", "--dead=file:"+dead)...)
	waitFor(t, func() bool { return s.QueueState("billing").Acknowledged == 3 })
	if code := c.Interrupt(t); code != 0 {
		t.Errorf("it ends with %d: %s", code, c.Err)
	}
	if text, err := os.ReadFile(dead); err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), "no good") || !strings.Contains(string(text), `"reason":"rejected"`) {
		t.Errorf("the dead letter is %s, %v", text, err)
	}
}

func TestAFileForAQueue(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "records")
	s, args := startQueue(t, "{\n \"a\": 1}", "text")
	c := clitest.Start(t, "", append(args, "--to=file:"+file)...)
	waitFor(t, func() bool { return s.QueueState("billing").Acknowledged == 2 })
	if code := c.Interrupt(t); code != 0 {
		t.Errorf("it ends with %d: %s", code, c.Err)
	}
	text, err := os.ReadFile(file)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(lines)
	if err != nil || !slices.Equal(lines, []string{`{"a":1}`, `{"data_base64":"dGV4dA=="}`}) {
		t.Errorf("the file is %q, %v", lines, err)
	}
}

// closedOutput is a standard output whose reader has gone.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// A closed standard output ends the consumer, and its records stay in the queue.
func TestAClosedOutputEndsAConsumerOfAQueue(t *testing.T) {
	t.Parallel()
	s, args := startQueue(t, "one")
	said := clitest.NewOutput()
	if code := clitest.Run(t.Context(), args, cli.NewTerminal(strings.NewReader(""), closedOutput{}, said)); code != 0 || !strings.Contains(said.String(), "standard output was closed") {
		t.Errorf("it ends with %d: %s", code, said)
	}
	if now := s.QueueState("billing"); now.Acknowledged != 0 {
		t.Errorf("the queue is %+v", now)
	}
}

// Each flag of consume either goes with a queue, or is refused with a reason. No name is wrong.
func TestFlagsOfQueues(t *testing.T) {
	t.Parallel()
	shards, queues := Command(cli.Terminal{}).Flags(), QueueCommand(cli.Terminal{}).Flags()
	for name := range ofQueues {
		if shards.Lookup(name) == nil || queues.Lookup(name) == nil {
			t.Errorf("there is no --%s", name)
		}
	}
	for name := range notOfQueues {
		if shards.Lookup(name) == nil || queues.Lookup(name) != nil {
			t.Errorf("--%s does not exist, or goes with a queue", name)
		}
	}
	_, args := startQueue(t)
	for flag, want := range map[string]string{
		"--stream=s":                                   "--stream does not go with --queue: a queue belongs to one stream, so leave it out",
		"--store=memory:":                              "a consumer needs no store",
		"--heartbeat-interval=1s":                      "it is about shards",
		"--until-tip":                                  "a queue does not say when it is empty",
		"--to=s3://bucket/prefix":                      "records of a queue cannot be written to S3",
		"--aggregates=unpack-own":                      "use unpack or keep-packed",
		"--batch=5":                                    "--batch applies only to --exec, --lambda and --invoke",
		"--max-attempts=5":                             "need a handler that can fail: add --exec",
		"--filter-not-json=drop":                       "--filter-not-json applies only to records that a filter cannot read",
		"--filter={":                                   "--filter: ",
		"--decode=lz4":                                 "--decode \"lz4\": use gzip",
		"--metrics-by-shard":                           "a queue has no shards",
		"--starting-position=LATEST":                   "use \"weir queue create --from\"",
		"--lambda=true --exec=true":                    "are two ways to handle a record",
		"--lambda=true --decode=gzip":                  "functions get the payloads as they are",
		"--lambda=true --tumbling-window-in-seconds=5": "a queue has no order",
		"--lambda=true --lambda-timeout=2h":            "--lambda-timeout 2h0m0s is longer than --max-hold 1h0m0s",
		"--batch-size=5":                               "--batch-size applies only to functions",
		"--health=nowhere:x":                           "--health",
		"--exec=true --batch=5000":                     "--batch is 5000, it must be 1 to 1000",
		"--hold=1s":                                    "--hold is 1s, it must be 5s to 12h",
		"--max-memory=17MiB":                           "--max-memory is 17825792, it must be",
		"--exec=true --dead=file:x":                    "--dead by itself dead-letters no record",
	} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, append(args, strings.Fields(flag)...)...); !strings.Contains(said, want) {
			t.Errorf("%s: %s", flag, said)
		}
	}
	arn := "--queue=arn:aws:kinesis:us-east-1:000000000000:queue/4f2c"
	if _, said := clitest.MustExit(t, cli.ExitUsage, "consume", arn, "--lambda=true", args[2]); !strings.Contains(said, "add --app NAME") {
		t.Errorf("a function without a name: %s", said)
	}
	if _, said := clitest.MustExit(t, cli.ExitUsage, "consume", "--stream=s", "--app=a", "--store=memory:", "--hold=1m", args[2]); !strings.Contains(said, "--hold applies only to queues: add --queue NAME") {
		t.Errorf("--hold without a queue: %s", said)
	}
}
