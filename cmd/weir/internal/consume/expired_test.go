package consume

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// If the service refuses a checkpoint, the worker logs this once. With --expired=oldest or latest,
// the worker continues at another position.
func TestConsumeAtACheckpointThatIsRefused(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	shardID, _ := server.Put("s", "k", []byte("one"))
	dir := t.TempDir()
	file := filepath.Join(dir, "dump")
	text := fmt.Sprintf(`{"weir":"progress","version":1,"app":"a","leases":1}
{"stream":"s","shard":%q,"range":["0","340282366920938463463374607431768211455"],"epoch":1,"position":"17"}
`, shardID)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"", "fail", "oldest", "latest"} {
		t.Run(policy, func(t *testing.T) {
			store := "--store=sqlite:" + filepath.Join(dir, policy+".db")
			clitest.MustRun(t, "", "group", "import", store, "--app=a", "--yes", file)
			args := []string{"consume", endpoint, store, "--stream=s", "--app=a", "--list-interval=1s"}
			if policy != "" {
				args = append(args, "--expired="+policy)
			}
			c := clitest.Start(t, "", args...)
			told := "so it is not read"
			if policy == "oldest" || policy == "latest" {
				told = "records have expired, or may have expired, before they were handled"
			}
			c.Err.Await(t, "what happened", func(s string) bool { return strings.Contains(s, told) })
			if policy == "oldest" {
				c.Out.Await(t, "the record", func(s string) bool { return s == "one\n" })
			}
			c.Interrupt(t)
			if said := c.Err.String(); strings.Count(said, "level=ERROR") != 1 || strings.Contains(said, "level=WARN") {
				t.Errorf("it says %s", said)
			}
			if policy != "oldest" && c.Out.String() != "" {
				t.Errorf("it handled %q", c.Out)
			}
		})
	}
}
