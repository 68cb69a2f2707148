package tail

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestTailFromASequenceNumber(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte("one"))
	_, second := server.Put("s", "k", []byte("two"))
	server.Put("s", "k", []byte("three"))
	if out := clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--shard=0", "--from="+second, "--until-tip"); out != "two\nthree\n" {
		t.Errorf("printed %q", out)
	}
	for args, want := range map[string]string{
		"--from=" + second:                             "is a place in a shard: name that one with --shard",
		"--shard=0 --shard=1 --from=" + second:         "name that one with --shard",
		"--shard=0 --from=" + strings.Repeat("7", 200): "--from 777",
		"--shard=0 --from=0" + second:                  "--from 0",
	} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, append([]string{"tail", endpoint, "--stream=s"}, strings.Fields(args)...)...); !strings.Contains(said, want) {
			t.Errorf("%s: %s", args, said)
		}
	}
}
