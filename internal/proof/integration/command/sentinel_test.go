package command_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// The URL of a store may name sentinels. The command then uses the primary of these sentinels.
func TestSentinelsAsTheStore(t *testing.T) {
	weir := built(t)
	s := servers.NewRedisSentinels(t, servers.Redis, 2*time.Second)
	url := "redis-sentinel://" + s.Addrs()[0] + "/0?master_name=" + s.Name
	for _, addr := range s.Addrs()[1:] {
		url += "&addr=" + addr
	}
	for _, c := range []struct{ args, input, want string }{
		{"store create", "", "is ready"},
		{"group import --app=billing --yes -", `{"weir":"progress","version":1,"app":"billing","leases":0,"paused":["s"]}`, ""},
		{"group list", "", "billing"},
	} {
		cmd := exec.CommandContext(t.Context(), weir, strings.Fields(c.args)...)
		cmd.Env = append(cmd.Environ(), "WEIR_STORE="+url)
		cmd.Stdin = strings.NewReader(c.input)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, %s", c.args, err, out)
		}
	}
}
