package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/doctor"
)

// Scripts and monitors tell by the exit code what is to be done at once.
func TestTheDoctorsExitCodeIsThatOfTheWorst(t *testing.T) {
	for _, c := range []struct {
		found []doctor.Severity
		want  int
	}{
		{nil, 0},
		{[]doctor.Severity{doctor.Info}, 0},
		{[]doctor.Severity{doctor.Intended, doctor.Info}, 5},
		{[]doctor.Severity{doctor.Warning}, 4},
		{[]doctor.Severity{doctor.Warning, doctor.Intended}, 4},
		{[]doctor.Severity{doctor.Error, doctor.Warning, doctor.Intended, doctor.Info}, 3},
	} {
		var r doctorReport
		for _, s := range c.found {
			r.Findings = append(r.Findings, doctor.Finding{Severity: s})
		}
		code, err := cli.ExitCode(0), r.verdict()
		if err != nil && !errors.As(err, &code) || int(code) != c.want {
			t.Errorf("%v: %v, want %d", c.found, err, c.want)
		}
	}
}

// A service that does not answer is one error, whatever it is that does not.
func TestAnOutageIsOneError(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 4)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	text, _ := clitest.Numbered(20)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	worked(t, 20, endpoint, store)
	silent := "http://" + clitest.SilentServer(t)
	for _, c := range []struct{ at, timeout, says string }{
		{clitest.UnusedAddr(t), "30s", "nothing answers at "},
		{silent, "500ms", "Kinesis at " + silent + " did not answer within 500ms"},
	} {
		out, said := clitest.MustExit(t, cli.ExitWrong, "doctor", "--endpoint="+c.at, store, "--app=a", "--watch=50ms", "--connect-timeout="+c.timeout, "-o=json")
		findings := clitest.Decode[doctorReport](t, out).Findings
		if got := codesOf(findings); !slices.Equal(got, []string{"no-workers", "service-unreachable"}) {
			t.Fatalf("it found %v: %s", got, said)
		}
		if text := findings[1].Text; !strings.HasPrefix(text, "none of 1 stream and 4 shards can be asked about: ") || !strings.Contains(text, c.says) {
			t.Errorf("it says %q", text)
		}
	}
	// Nobody reads, and it was asked for.
	clitest.MustRun(t, "", "group", "pause", store, "--app=a")
	out, _ := clitest.MustExit(t, cli.ExitIntended, "doctor", endpoint, store, "--app=a", "--watch=50ms")
	if want := "Application a: nothing is wrong, and something is paused or drained on purpose."; !strings.HasPrefix(out, want) {
		t.Errorf("it says %s", out)
	}
	if help := clitest.MustRun(t, "", "doctor", "--help"); !strings.Contains(help, fmt.Sprint(cli.ExitIntended)+" doctor found only pauses") {
		t.Errorf("the help does not say what the codes are: %s", help)
	}
}
