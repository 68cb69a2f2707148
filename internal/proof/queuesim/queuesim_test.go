package queuesim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/internal/proof/longform"
)

var (
	flagProfile = flag.String("sim.profile", "", "the profiles to simulate, with commas between them; all if empty")
	flagSeed    = flag.Uint64("sim.seed", 0, "the first seed; 0 for one from the clock")
	flagSeeds   = flag.Int("sim.seeds", 0, "number of seeds of each profile")
	flagTime    = flag.Duration("sim.time", 0, "continue for this time, whatever sim.seeds says")
	flagQuick   = flag.Bool("sim.quick", false, "stop at the first broken promise")
)

func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
	os.Exit(leaktest.Run(m))
}

// tally sums up the simulations of a profile.
type tally struct {
	Result
	seeds, broken int
}

func (t *tally) add(r *Result) {
	t.seeds++
	t.Records += r.Records
	t.Processes += r.Processes
	t.Lasted += r.Lasted
	t.deliveries += r.deliveries
	t.again += r.again
	t.holdsEnded += r.holdsEnded
	t.deadLetters += r.deadLetters
	t.releases += r.releases
	t.contextsEnded += r.contextsEnded
	t.mostInFlight = max(t.mostInFlight, r.mostInFlight)
	if t.Happened == nil {
		t.Happened = map[string]int{}
	}
	for what, n := range r.Happened {
		t.Happened[what] += n
	}
	if r.Problem != "" {
		t.broken++
	}
}

// TestSimulations runs seeds of each profile: three seeds in the ordinary form, always the same,
// and 20 in the long form. `make sim-queue` runs others.
func TestSimulations(t *testing.T) {
	seed, seeds := *flagSeed, *flagSeeds
	if seeds == 0 && *flagTime == 0 {
		seed, seeds = max(seed, 1), 3
		if longform.On() {
			seeds = 20
		}
	}
	if seed == 0 {
		seed = uint64(time.Now().Unix())
	}
	for _, name := range strings.Split(*flagProfile, ",") {
		if name != "" && !slices.ContainsFunc(Profiles, func(p Profile) bool { return p.Name == name }) {
			t.Fatalf("there is no profile %q", name)
		}
	}
	fmt.Printf("simulations from seed %d\n", seed)
	began, tallies := time.Now(), make([]tally, len(Profiles))
	for n := 0; n < seeds || seeds == 0 && time.Since(began) < *flagTime; n++ {
		for i := range Profiles {
			p := &Profiles[i]
			if *flagProfile != "" && !slices.Contains(strings.Split(*flagProfile, ","), p.Name) {
				continue
			}
			var r Result
			synctest.Test(t, func(*testing.T) { r = Run(p, seed+uint64(n)) })
			tallies[i].add(&r)
			if r.Problem == "" {
				continue
			}
			t.Errorf("profile %s, seed %d: %s\nrepeat it with: go test ./internal/proof/queuesim -run TestSimulations -sim.profile %s -sim.seed %d -sim.seeds 1",
				p.Name, seed+uint64(n), r.Problem, p.Name, seed+uint64(n))
			if *flagQuick {
				return
			}
		}
	}
	report(tallies, time.Since(began))
}

// report prints what was simulated.
func report(tallies []tally, took time.Duration) {
	var all tally
	for i := range tallies {
		c := &tallies[i]
		if c.seeds == 0 {
			continue
		}
		fmt.Printf("%-14s %4d seeds  %7.1f hours  %6d processes  %6d records  %6d deliveries  %5d handled again  %4d holds ended  %4d dead letters  %4d releases  %4d in flight  %d broken\n",
			Profiles[i].Name, c.seeds, c.Lasted.Hours(), c.Processes, c.Records, c.deliveries, c.again, c.holdsEnded, c.deadLetters, c.releases, c.mostInFlight, c.broken)
		all.add(&c.Result)
		all.seeds += c.seeds - 1
		all.broken += c.broken
	}
	for _, what := range slices.Sorted(maps.Keys(all.Happened)) {
		fmt.Printf("  %-46s %d times\n", what, all.Happened[what])
	}
	fmt.Printf("together: %d seeds, %.0f hours, %d records, in %v, %d broken promises\n", all.seeds, all.Lasted.Hours(), all.Records, took.Round(time.Second/10), all.broken)
}
