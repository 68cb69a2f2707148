package sim

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/longform"
)

// print is the environment variable that makes the test print its result in another process.
const print = "WEIR_SIM_PRINT"

// mostRuns is how often a seed runs before the test gives up finding two equal runs.
const mostRuns = 10

// agreed returns a history that two runs of a seed have in common. It tolerates other histories in
// between, because a few seeds have two or three histories on a busy machine. The likely reason is
// that the Go scheduler interrupts a goroutine in the middle of a step; this is not proved. The
// test detects randomness that makes most runs differ. It can miss randomness with only two
// outcomes.
func agreed(t *testing.T, seed uint64, p Profile, lasts time.Duration) string {
	t.Helper()
	var runs []string
	for range mostRuns {
		now := told(t, seed, p, lasts)
		for _, before := range runs {
			if now == before {
				return now
			}
		}
		if runs = append(runs, now); len(runs) == 2 {
			t.Logf("more runs have to decide between %s and %s", strings.TrimSpace(runs[0]), runs[1])
		}
	}
	t.Errorf("%d runs, as many histories: %s", mostRuns, strings.Join(runs, ""))
	return runs[0]
}

// told returns the number of steps and the hash of the history of one run of a seed.
func told(t *testing.T, seed uint64, p Profile, lasts time.Duration) string {
	o := Options{Lasts: lasts}
	if p.Workers[0] > 5 {
		o.Workers = p.Workers[0] // the smallest number of workers of a large profile
	}
	r := Run(t, seed, p, o)
	return fmt.Sprintf("seed %d of %s: %d steps, %x\n", r.Seed, p.Name, r.Steps, r.Hash)
}

// comesTo reports whether a seed also has, in this process, a history that another process found. A
// busy machine may produce two histories of one seed, and two processes may find different ones.
func comesTo(t *testing.T, history string, seed uint64, p Profile, lasts time.Duration) bool {
	t.Helper()
	t.Logf("more runs have to show whether this happens here, too: %s", history)
	for range mostRuns {
		if told(t, seed, p, lasts) == history {
			return true
		}
	}
	return false
}

func TestSeedsReplay(t *testing.T) {
	if raced {
		t.Skip("the race detector makes the Go scheduler random, so seeds do not replay")
	}
	seeds, lasts := 1, 30*time.Second
	if longform.On() {
		seeds, lasts = 2, 3*time.Minute
	}
	var all strings.Builder
	for _, p := range Profiles {
		for seed := range seeds {
			all.WriteString(agreed(t, 100+uint64(seed), p, lasts))
		}
	}
	if os.Getenv(print) != "" {
		fmt.Printf("<<<%s>>>", all.String())
		return
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSeedsReplay$", fmt.Sprintf("-test.short=%v", testing.Short()))
	other.Env = append(os.Environ(), print+"=1")
	out, err := other.CombinedOutput()
	_, theirs, _ := strings.Cut(string(out), "<<<")
	theirs, _, _ = strings.Cut(theirs, ">>>")
	lines := strings.SplitAfter(theirs, "\n")
	if err != nil || len(lines) != len(Profiles)*seeds+1 {
		t.Fatalf("another process: %v, %s", err, out)
	}
	for _, p := range Profiles {
		for seed := range seeds {
			line := lines[0]
			if lines = lines[1:]; !strings.Contains(all.String(), line) && !comesTo(t, line, 100+uint64(seed), p, lasts) {
				t.Errorf("in another process it is different: %s", line)
			}
		}
	}
}
