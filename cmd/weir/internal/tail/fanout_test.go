package tail

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// With fan-out, weir tail needs an existing consumer or the mode that registers one. It removes a
// consumer that it has registered only in the mode "temporary".
func TestTailByFanOut(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	text, lines := clitest.Numbered(40)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	registered := func() string { return clitest.MustRun(t, "", "fanout", "list", endpoint, "--stream=s", "-o=json") }

	c := clitest.Start(t, "", "tail", endpoint, "--stream=s", "--from=oldest", "--fan-out=existing", "--fan-out-name=me")
	if code := c.Wait(t); code != cli.ExitFailed || !strings.Contains(c.Err.String(), "stream s has no consumer me: --fan-out temporary registers it until weir tail ends") {
		t.Errorf("without a consumer: exit code %d, %s", code, c.Err)
	}
	for _, test := range []struct {
		mode string
		left bool
	}{{"temporary", false}, {"register", true}, {"existing", true}, {"temporary", true}} {
		c := clitest.Start(t, "", "tail", endpoint, "--stream=s", "--from=oldest", "--fan-out-name=me", "--fan-out="+test.mode)
		c.Out.Await(t, "everything", func(s string) bool { return strings.Count(s, "\n") == len(lines) })
		if code := c.Interrupt(t); code != cli.ExitDone {
			t.Errorf("%s: exit code %d, %s", test.mode, code, c.Err)
		}
		if left := strings.Contains(registered(), `"me"`); left != test.left {
			t.Errorf("%s: registered in the end: %v", test.mode, left)
		}
	}
	if n := server.Requests("GetRecords"); n > 0 {
		t.Errorf("it polled %d times", n)
	}
	for flags, said := range map[string]string{
		"--fan-out=temporary": "--fan-out-name is empty: fan-out needs the name of a consumer", "--fan-out-name=me": "although --fan-out is off",
		"--fan-out=existing --fan-out-name=a/b": "not the name of a consumer",
	} {
		c := clitest.Start(t, "", append([]string{"tail", endpoint, "--stream=s"}, strings.Fields(flags)...)...)
		if code := c.Wait(t); code != cli.ExitUsage || !strings.Contains(c.Err.String(), said) {
			t.Errorf("%s: exit code %d, %s", flags, code, c.Err)
		}
	}
}
