package tail

import (
	"slices"
	"strings"
	"testing"
	"time"

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

func TestTailUntilATime(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	put := func(data string) { server.Put("s", data, []byte(data)) }
	put("one")
	put("two")
	ms := func() time.Time { return time.Now().Truncate(time.Millisecond) } // as arrival times
	at := ms()
	for last := at; !at.After(last); at = ms() { // for less than a millisecond
	}
	put("three")
	out := strings.Fields(clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--until="+at.Format(time.RFC3339Nano)))
	if slices.Sort(out); !slices.Equal(out, []string{"one", "two"}) {
		t.Errorf("printed %q", out)
	}
	if out := clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--until=1h"); out != "" {
		t.Errorf("of the time before an hour ago it printed %q", out)
	}
	for args, want := range map[string]string{
		"--until=2100-01-01T00:00:00Z": "is in the future: run weir tail after that time",
		"--until=yesterday":            `--until "yesterday" is not a time`,
		"--until=1h --until-tip":       "two ends",
	} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, append([]string{"tail", endpoint, "--stream=s"}, strings.Fields(args)...)...); !strings.Contains(said, want) {
			t.Errorf("%s: %s", args, said)
		}
	}
}
