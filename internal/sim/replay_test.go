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

func TestSeedsReplay(t *testing.T) {
	seeds, lasts := 2, 3*time.Minute
	if testing.Short() || raced {
		seeds, lasts = 1, time.Minute
	}
	hashes := func() string {
		var all strings.Builder
		for _, p := range Profiles {
			for seed := range seeds {
				r := Run(t, 100+uint64(seed), p, Options{Lasts: lasts})
				fmt.Fprintf(&all, "seed %d of %s: %d steps, %x\n", r.Seed, p.Name, r.Steps, r.Hash)
			}
		}
		return all.String()
	}
	first := hashes()
	if os.Getenv(print) != "" {
		fmt.Printf("<<<%s>>>", first)
		return
	}
	if again := hashes(); again != first {
		t.Errorf("a second time in the same process it is different:\n%s\n%s", first, again)
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSeedsReplay$", fmt.Sprintf("-test.short=%v", testing.Short()))
	other.Env = append(os.Environ(), print+"=1")
	out, err := other.CombinedOutput()
	_, theirs, _ := strings.Cut(string(out), "<<<")
	theirs, _, _ = strings.Cut(theirs, ">>>")
	if err != nil || theirs != first {
		t.Errorf("in another process it is different (%v):\n%s\n%s", err, first, theirs)
	}
}
