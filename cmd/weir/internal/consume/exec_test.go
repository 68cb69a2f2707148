//go:build unix

package consume

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestConsumeGivesBatchesToACommand(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	text, lines := clitest.Numbered(100)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	dir := t.TempDir()
	// For each shard, the first command reads the batch and fails. Later commands print their
	// input, and then the stream, shard and epoch of that input.
	command := fmt.Sprintf(`if mkdir %s/$WEIR_SHARD 2>/dev/null; then cat >/dev/null; exit 3; fi; cat; echo "$WEIR_STREAM $WEIR_SHARD $WEIR_EPOCH" >&2`, dir)
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--batch=40", "--exec", command)
	c.Out.Await(t, "all records", func(s string) bool { return strings.Count(s, "\n") >= 100 })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	clitest.CheckOrder(t, c.Out.Lines(), lines)
	for _, want := range []string{"the command failed: exit status 3", "will be handled again", "s shardId-000000000000 ", "s shardId-000000000001 "} {
		if !strings.Contains(c.Err.String(), want) {
			t.Errorf("standard error lacks %q: %s", want, c.Err)
		}
	}
}

// With --parallel, many commands run at the same time. Each receives records of one key, in order.
func TestConsumeHandlesKeysSideBySide(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	text, lines := clitest.Numbered(100) // the lines have five different keys
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	// Each command waits until all five commands are running. If the worker ran one command after
	// another, the first would wait without end.
	dir := t.TempDir()
	command := fmt.Sprintf(`touch %[1]s/$$; while [ $(ls %[1]s | wc -l) -lt 5 ]; do sleep 0.05; done; cat`, dir)
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--parallel=8", "--exec", command)
	c.Out.Await(t, "all records", func(s string) bool { return strings.Count(s, "\n") >= 100 })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	clitest.CheckOrder(t, c.Out.Lines(), lines)
	if _, said := clitest.MustExit(t, cli.ExitUsage, "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--parallel=8", "--to=s3://bucket/x"); !strings.Contains(said, "--parallel cannot be combined with --to s3") {
		t.Errorf("with S3: %s", said)
	}
}
