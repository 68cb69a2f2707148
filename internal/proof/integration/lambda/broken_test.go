//go:build unix

package lambda_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// broken contains the flights that end a function or make it hang.
var broken = map[int]string{
	200: "hangs once", 600: "exits once", 1000: "is killed once", 1400: "panics once", 1700: "hangs always",
}

// waits matches the message in which a function that hangs names the program that it waits for.
var waits = regexp.MustCompile(`flight \d+ waits for process (\d+)`)

func TestAFunctionThatHangsOrDiesInTheMiddleLosesNothing(t *testing.T) {
	folder := filepath.Join("testdata", "go")
	command, weir := servers.GoFunction(t, folder), built(t)
	s := newStage(t, 2000, 2, func(flight int) string { return broken[flight] })
	said, took := s.run(t, weir, folder, "--lambda="+command, "--lambda-timeout=2s", "--bisect-batch-on-function-error", "--maximum-retry-attempts=1")
	for flight, letters := range s.check(t, true) {
		for _, l := range letters {
			if l.Attempts != 2 || !strings.Contains(l.Error, "did not answer in time") {
				t.Errorf("flight %d was dead-lettered after %d attempts, for %q", flight, l.Attempts, l.Error)
			}
		}
	}
	for _, why := range []string{"did not answer in time", "in the middle of a call: exit status 3", "in the middle of a call: signal: killed", "flight 1400 panics once"} {
		if !strings.Contains(said, why) {
			t.Errorf("nobody says %q:\n%s", why, s.end())
		}
	}
	hung := waits.FindAllStringSubmatch(said, -1)
	if len(hung) < 3 {
		t.Errorf("the function has hung %d times", len(hung))
	}
	for _, found := range hung {
		// A process that has ended and was not waited for has no command line.
		if line, err := os.ReadFile(filepath.Join("/proc", found[1], "cmdline")); err == nil && strings.Contains(string(line), "3600") {
			t.Errorf("process %s, which the function has started, is left: %q", found[1], line)
		}
	}
	t.Logf("%d calls in %v, %d of which hung", len(aboutCall.FindAllString(said, -1)), took, len(hung))
}

func TestAWorkerThatIsKilledLosesNothingOfItsFunctions(t *testing.T) {
	folder := filepath.Join("testdata", "python")
	flags := []string{"--lambda=" + servers.PythonFunction(t, "app.handler"), "--function-response-types=ReportBatchItemFailures", "--maximum-retry-attempts=1"}
	weir := built(t)
	s := newStage(t, 4000, 2, wrong)
	w := s.start(t, weir, folder, flags...)
	s.await(t, w, 1500)
	_ = w.end(t, syscall.SIGKILL) // reports that it was killed
	s.run(t, weir, folder, flags...)
	s.check(t, false)
}
