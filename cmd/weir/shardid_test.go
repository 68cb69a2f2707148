package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/records"
)

// Commands accept every form of a shard ID that other commands print.
func TestCommandsTakeTheShardsThatCommandsPrint(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	server.CreateStream("other", 1)
	clitest.MustRun(t, `{"k":"a"}`, "put", endpoint, "--stream=s", "--key=k")
	of, err := strconv.Atoi(records.ShortID(server.Records("s")[0].Shard))
	if err != nil {
		t.Fatal(err)
	}
	store := "--store=sqlite:" + t.TempDir() + "/leases.db"
	clitest.MustRun(t, "", "store", "create", store)
	for _, form := range []string{"%d", "%012d", "shardId-%012d", "shardId-%d", "s/%d", "s/shardId-%012d"} {
		named := "--shard=" + fmt.Sprintf(form, of)
		if out := clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--until-tip", named); out != "{\"k\":\"a\"}\n" {
			t.Errorf("tail %s printed %q", named, out)
		}
		out := clitest.MustRun(t, "", "group", "reset", endpoint, store, "--app=a", "--stream=s", "--to=oldest", "--dry-run", named)
		if !strings.Contains(out, "1 checkpoint would move") {
			t.Errorf("reset %s: %s", named, out)
		}
	}
	if out := clitest.MustRun(t, "", "group", "reset", endpoint, store, "--app=a", "--to=oldest", "--dry-run", "--shard=s/0"); !strings.Contains(out, "1 checkpoint would move") {
		t.Errorf("reset of a shard that names its stream: %s", out)
	}
	const has = "no shard shardId-000000000009: it has shardId-000000000000, shardId-000000000001"
	for name, c := range map[string]struct {
		code int
		args []string
		want string
	}{
		"tail of none":             {cli.ExitFailed, []string{"tail", "--stream=s", "--shard=9"}, has},
		"reset of none":            {cli.ExitFailed, []string{"group", "reset", store, "--app=a", "--stream=s", "--to=oldest", "--dry-run", "--shard=9"}, has},
		"tail of another stream":   {cli.ExitUsage, []string{"tail", "--stream=s", "--shard=other/0"}, "is a shard of stream other, not of s"},
		"reset of another stream":  {cli.ExitUsage, []string{"group", "reset", store, "--app=a", "--stream=s", "--to=oldest", "--dry-run", "--shard=other/0"}, "is a shard of stream other, not of s"},
		"tail of what is no name":  {cli.ExitUsage, []string{"tail", "--stream=s", "--shard=3,4"}, `"3,4" is not a shard`},
		"tail of an empty name":    {cli.ExitUsage, []string{"tail", "--stream=s", "--shard="}, "--shard is blank"},
		"reset of an empty name":   {cli.ExitUsage, []string{"group", "reset", store, "--app=a", "--stream=s", "--to=oldest", "--dry-run", "--shard="}, "--shard is blank"},
		"reset of what is no name": {cli.ExitUsage, []string{"group", "reset", store, "--app=a", "--stream=s", "--to=oldest", "--dry-run", "--shard=0 1"}, `"0 1" is not a shard`},
	} {
		if _, said := clitest.MustExit(t, c.code, append(c.args, endpoint)...); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", name, said)
		}
	}
}
