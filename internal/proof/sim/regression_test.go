package sim

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/longform"
)

const regressionFile = "testdata/regressions.txt"

// regression is a seed that once broke a promise.
type regression struct {
	profile Profile
	seed    uint64
	showed  string
	shows   bool // it failed again when the fix was removed
}

// TestRegressionSeeds runs seeds that have found a bug. By default it runs those that failed again
// when the fix was removed. The long form runs all seeds. The first lines of regressions.txt state
// what the seeds guarantee.
func TestRegressionSeeds(t *testing.T) {
	if raced {
		t.Skip("the race detector makes the Go scheduler random, so seeds do not replay")
	}
	b, err := os.ReadFile(regressionFile)
	if err != nil {
		t.Fatal(err)
	}
	all, err := readRegressions(string(b))
	if err != nil {
		t.Fatalf("%s: %v", regressionFile, err)
	}
	if !longform.On() {
		all = slices.DeleteFunc(all, func(r regression) bool { return !r.shows })
	}
	if testing.Short() {
		all = all[:min(3, len(all))]
	}
	for _, r := range all {
		if got := Run(t, r.seed, r.profile, Options{}); got.Wrong != "" {
			t.Errorf("profile %s, seed %d: %s\nBefore it showed: %s\nAgain: go test ./internal/proof/sim -run TestSimulations -sim.profile=%s -sim.seed=%d -sim.seeds=1 -sim.quick",
				r.profile.Name, r.seed, got.Wrong, r.showed, r.profile.Name, r.seed)
		}
	}
}

func readRegressions(text string) (all []regression, err error) {
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, showed, explained := strings.Cut(line, "#")
		fields := strings.Fields(what)
		n := len(fields)
		if n != 2 && (n != 4 || fields[2] != "shows") || !explained || strings.TrimSpace(showed) == "" {
			return nil, fmt.Errorf(`line %d is not "profile seed # what it showed", nor "profile seed shows COMMIT # what it showed": %s`, i+1, line)
		}
		r := regression{showed: strings.TrimSpace(showed), shows: n == 4}
		var known bool
		if r.profile, known = ProfileNamed(fields[0]); !known {
			return nil, fmt.Errorf("line %d: there is no profile %q", i+1, fields[0])
		}
		if r.seed, err = strconv.ParseUint(fields[1], 10, 64); err != nil {
			return nil, fmt.Errorf("line %d: the seed: %w", i+1, err)
		}
		key := fmt.Sprintf("%s %d", r.profile.Name, r.seed)
		if seen[key] {
			return nil, fmt.Errorf("line %d: %s is there twice", i+1, key)
		}
		seen[key] = true
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no seed in it")
	}
	return all, nil
}

func TestBadRegressionsAreRefused(t *testing.T) {
	for _, tt := range []struct{ text, wrong string }{
		{"# a head\n\nlatest 16 # late\n  calm   1 shows abc1234  # lost", ""},
		{"", "no seed"},
		{"# calm 1 # late", "no seed"},
		{"calm 1", "line 1 is not"},
		{"calm 1 #", "line 1 is not"},
		{"calm 1 2 # late", "line 1 is not"},
		{"calm 1 broke abc1234 # late", "line 1 is not"},
		{"calm 1 # late\nfoggy 1 # late", `line 2: there is no profile "foggy"`},
		{"calm -1 # late", "the seed"},
		{"calm 1 # late\ncalm 1 # lost", "line 2: calm 1 is there twice"},
	} {
		switch all, err := readRegressions(tt.text); {
		case tt.wrong == "" && (err != nil || len(all) != 2 || all[1].seed != 1 || all[1].profile.Name != "calm" || all[1].showed != "lost"):
			t.Errorf("%q: %+v, %v", tt.text, all, err)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%q: the error is %v, want %q", tt.text, err, tt.wrong)
		}
	}
}
