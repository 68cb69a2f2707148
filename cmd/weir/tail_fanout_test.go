package main

import (
	"strings"
	"testing"
)

// weir tail by fan-out needs the consumer, or to be told to register it, and leaves one behind only
// when asked.
func TestTailByFanOut(t *testing.T) {
	t.Parallel()
	server, endpoint := kinesisServer(t)
	server.CreateStream("s", 2)
	text, lines := numbered(40)
	mustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	registered := func() string { return mustRun(t, "", "fanout", "list", endpoint, "--stream=s", "-o=json") }

	c := start(t, "", "tail", endpoint, "--stream=s", "--from=oldest", "--fan-out=me")
	if code := c.wait(t); code != exitFailed || !strings.Contains(c.err.String(), "stream s has no consumer me: --register registers it") {
		t.Errorf("without a consumer: exit code %d, %s", code, c.err)
	}
	for _, test := range []struct {
		flags []string
		left  bool
	}{{[]string{"--register"}, false}, {[]string{"--register", "--keep"}, true}, {nil, true}, {[]string{"--register"}, true}} {
		c := start(t, "", append([]string{"tail", endpoint, "--stream=s", "--from=oldest", "--fan-out=me"}, test.flags...)...)
		c.out.await(t, "everything", func(s string) bool { return strings.Count(s, "\n") == len(lines) })
		if code := c.interrupt(t); code != exitDone {
			t.Errorf("%v: exit code %d, %s", test.flags, code, c.err)
		}
		if left := strings.Contains(registered(), `"me"`); left != test.left {
			t.Errorf("%v: registered in the end: %v", test.flags, left)
		}
	}
	if n := server.Requests("GetRecords"); n > 0 {
		t.Errorf("it polled %d times", n)
	}
	for flags, said := range map[string]string{"--register": "--fan-out", "--fan-out=me --keep": "--register", "--fan-out=a/b": "no name of a consumer"} {
		c := start(t, "", append([]string{"tail", endpoint, "--stream=s"}, strings.Fields(flags)...)...)
		if code := c.wait(t); code != exitUsage || !strings.Contains(c.err.String(), said) {
			t.Errorf("%s: exit code %d, %s", flags, code, c.err)
		}
	}
}
