package group

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// The leases of shards that have left their streams are deleted, also those of a stream that does
// not exist.
func TestPruneDeletesTheLeasesOfShardsThatAreGone(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("orders", 1)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	const here, full = "shardId-000000000000", `"range":["0","340282366920938463463374607431768211455"],"epoch":3`
	clitest.MustRun(t, `{"weir":"progress","version":1,"app":"a","leases":4}
{"stream":"orders","shard":"`+here+`",`+full+`,"position":"oldest"}
{"stream":"orders","shard":"shardId-000000000090",`+full+`,"position":"17"}
{"stream":"orders","shard":"shardId-000000000091",`+full+`,"position":"end"}
{"stream":"gone","shard":"`+here+`",`+full+`,"position":"18"}`,
		"group", "import", "--app=a", store, "--yes", "-")
	args := []string{"group", "prune", "--app=a", store, endpoint}
	plan := clitest.MustRun(t, "", append(args, "--dry-run")...)
	for _, want := range []string{"its shard has left the stream before it was read to its end", "3 leases would be deleted"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan lacks %q: %s", want, plan)
		}
	}
	dump := filepath.Join(t.TempDir(), "dump.ndjson")
	if out := clitest.MustRun(t, "", append(args, "--yes", "--dump="+dump)...); !strings.Contains(out, "3 leases deleted.") {
		t.Errorf("it says %s", out)
	}
	if left := clitest.MustRun(t, "", "group", "export", "--app=a", store, "-"); strings.Count(left, `"shard"`) != 1 || !strings.Contains(left, here) {
		t.Errorf("left are %s", left)
	}
	if out := clitest.MustRun(t, "", append(args, "--yes")...); !strings.Contains(out, "No lease can be deleted") {
		t.Errorf("a second run says %s", out)
	}
}
