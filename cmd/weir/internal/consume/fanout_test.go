package consume

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/fanout"
)

// The command fanout lists and removes consumers that workers have left behind.
func TestConsumeByFanOutAndClearUp(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	text, lines := clitest.Numbered(40)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	for app, flag := range map[string]string{"plain": "--fan-out=register", "named": "--fan-out=register --fan-out-name=pushed"} {
		c := clitest.Start(t, "", append([]string{"consume", endpoint, "--stream=s", "--app=" + app, "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db"), "--verbose"}, strings.Fields(flag)...)...)
		c.Out.Await(t, "everything by fan-out", func(s string) bool { return strings.Count(s, "\n") == len(lines) })
		clitest.CheckOrder(t, c.Out.Lines(), lines)
		if code := c.Interrupt(t); code != cli.ExitDone || !strings.Contains(c.Err.String(), "fan-out consumer registered") {
			t.Errorf("exit code %d, %s", code, c.Err)
		}
	}
	if n := server.Requests("GetRecords"); n > 0 {
		t.Errorf("it polled %d times", n)
	}

	list := func() []fanout.Consumer {
		t.Helper()
		return clitest.Decode[struct{ Consumers []fanout.Consumer }](t, clitest.MustRun(t, "", "fanout", "list", endpoint, "--stream=s", "-o=json")).Consumers
	}
	all := list()
	if len(all) != 2 || all[0].Name != "plain" && all[1].Name != "plain" || all[0].Status != "ACTIVE" || all[0].ARN == "" || all[0].Created.IsZero() {
		t.Fatalf("registered are %+v", all)
	}
	if said := clitest.MustRun(t, "", "fanout", "list", endpoint, "--stream="+server.StreamARN("s")); !strings.Contains(said, "pushed") || !strings.Contains(said, "ACTIVE") {
		t.Errorf("it lists %s", said)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		said string
	}{
		"nobody to ask":      {[]string{"--stream=s", "--name=pushed"}, cli.ExitUsage, "--yes"},
		"no name":            {[]string{"--stream=s", "--yes"}, cli.ExitUsage, "--name"},
		"another name":       {[]string{"--stream=s", "--name=other", "--yes"}, cli.ExitFailed, "there is "},
		"a stream that none": {[]string{"--stream=none", "--name=pushed", "--yes"}, cli.ExitFailed, "no such stream"},
	} {
		c := clitest.Start(t, "", append([]string{"fanout", "remove", endpoint}, test.args...)...)
		if code := c.Wait(t); code != test.code || !strings.Contains(c.Err.String(), test.said) {
			t.Errorf("%s: exit code %d, %s", name, code, c.Err)
		}
	}
	if n := len(list()); n != 2 {
		t.Fatalf("%d consumers are left, and none was removed", n)
	}
	for _, name := range []string{"pushed", "plain"} {
		clitest.MustRun(t, "", "fanout", "remove", endpoint, "--stream=s", "--name="+name, "--yes")
	}
	if n := len(list()); n != 0 {
		t.Errorf("%d consumers are left", n)
	}
	if said := clitest.MustRun(t, "", "fanout", "list", endpoint, "--stream=s"); !strings.Contains(said, "No consumer") {
		t.Errorf("it lists %s", said)
	}
}

// A worker uses a consumer that is given by its ARN, and never removes it. With the mode
// "temporary", the last worker removes the application's own consumer.
func TestConsumeByAGivenConsumerAndRemoveOnesOwn(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	given := server.RegisterConsumer("s", "theirs")
	server.Put("s", "k", []byte("hello"))
	for flag, stays := range map[string]string{"--fan-out=temporary --fan-out-arn=" + given: "theirs", "--fan-out=temporary": "theirs", "--fan-out=existing --fan-out-name=theirs": "theirs"} {
		c := clitest.Start(t, "", append([]string{"consume", endpoint, "--stream=s", "--app=a", "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")}, strings.Fields(flag)...)...)
		c.Out.Await(t, "the record", func(s string) bool { return s == "hello\n" })
		if code := c.Interrupt(t); code != cli.ExitDone {
			t.Errorf("%s: exit code %d, %s", flag, code, c.Err)
		}
		if removed := strings.Contains(c.Err.String(), "fan-out consumer removed"); removed != (flag == "--fan-out=temporary") {
			t.Errorf("%s: it says %s", flag, c.Err)
		}
		if said := clitest.MustRun(t, "", "fanout", "list", endpoint, "--stream=s", "-o=json"); strings.Count(said, `"name"`) != 1 || !strings.Contains(said, `"`+stays+`"`) {
			t.Errorf("%s: registered are %s", flag, said)
		}
	}
	if said := clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--from=oldest", "--until-tip", "--fan-out=existing", "--fan-out-arn="+given); said != "hello\n" {
		t.Errorf("tail says %q", said)
	}
	if n := server.Requests("GetRecords"); n > 0 {
		t.Errorf("it polled %d times", n)
	}
}

func TestFanOutFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--fan-out=pushed":                            "not a mode of fan-out: use existing, register, temporary or off",
		"--fan-out":                                   "needs an argument",
		"--fan-out=register --fan-out-name=a/b":       "not the name of a consumer",
		"--fan-out-name=me":                           "--fan-out-name is set although --fan-out is off",
		"--fan-out=off --fan-out-name=me":             "--fan-out-name is set although --fan-out is off",
		"--fan-out-arn=arn:aws:kinesis:us-east-1:1:s": "--fan-out-arn is set although --fan-out is off",
	} {
		_, said := clitest.MustExit(t, cli.ExitUsage, append([]string{
			"consume", "--stream=s", "--app=a", "--store=memory:", "--endpoint=http://127.0.0.1:1", "--region=us-east-1",
		}, strings.Fields(args)...)...)
		if !strings.Contains(said, want) {
			t.Errorf("%s: %s", args, said)
		}
	}
}
