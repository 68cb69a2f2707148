package sim

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// print has the test of another process print what it gets.
const print = "WEIR_SIM_PRINT"

// agreed is the history of a seed by two runs, or by two of three: on a machine with too much to do
// the system may take the processor away for so long that the Go scheduler preempts a goroutine in
// the middle of a step.
func agreed(t *testing.T, seed uint64, p Profile, lasts time.Duration) string {
	t.Helper()
	var runs []string
	for range 3 {
		r := Run(t, seed, p, Options{Lasts: lasts})
		now := fmt.Sprintf("seed %d of %s: %d steps, %x\n", r.Seed, p.Name, r.Steps, r.Hash)
		for _, before := range runs {
			if now == before {
				return now
			}
		}
		if runs = append(runs, now); len(runs) == 2 {
			t.Logf("a third run has to decide between %s and %s", strings.TrimSpace(runs[0]), runs[1])
		}
	}
	t.Errorf("three runs, three histories: %s", strings.Join(runs, ""))
	return runs[0]
}

func TestSeedsReplay(t *testing.T) {
	if raced {
		t.Skip("a Go program that looks for races has a scheduler that is random on purpose")
	}
	seeds, lasts := 2, 3*time.Minute
	if testing.Short() {
		seeds, lasts = 1, time.Minute
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
	if err != nil || theirs != all.String() {
		t.Errorf("in another process it is different (%v):\n%s\n%s", err, all.String(), theirs)
	}
}
