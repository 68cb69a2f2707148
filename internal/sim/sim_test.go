package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/leaktest"
)

var (
	flagProfile = flag.String("sim.profile", "", "the profile to simulate; all when empty")
	flagSeed    = flag.Uint64("sim.seed", 0, "the first seed; 0 for one that the clock decides")
	flagSeeds   = flag.Int("sim.seeds", 2, "how many seeds of each profile")
	flagTime    = flag.Duration("sim.time", 0, "go on for so long, whatever sim.seeds says")
	flagWorkers = flag.Int("sim.workers", 0, "how many workers; 0 for what the profile says")
	flagLasts   = flag.Duration("sim.lasts", 0, "how long things go wrong, in virtual time; 0 for what the profile says")
	flagTail    = flag.Int("sim.tail", 60, "how many lines of a broken history to print")
)

func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	os.Exit(leaktest.Run(m))
}

func TestSimulations(t *testing.T) {
	seed := *flagSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for _, p := range Profiles {
		if *flagProfile != "" && p.Name != *flagProfile {
			continue
		}
		for i := range *flagSeeds {
			began := time.Now()
			r := Run(t, seed+uint64(i), p, Options{Workers: *flagWorkers, Lasts: *flagLasts})
			fmt.Printf("%-10s %d: %5.2f worker hours in %v, %d steps, %d handled, %d again, settled after %v, hash %x %v\n", p.Name, r.Seed, r.Lived.Hours(),
				time.Since(began).Round(time.Millisecond), r.Steps, r.Handled, r.Again, r.Settled.Round(time.Second), r.Hash, r.Wrong)
			if r.Wrong != "" {
				for _, line := range r.History[max(0, len(r.History)-*flagTail):] {
					fmt.Println(line)
				}
				t.Fatal(r.Wrong)
			}
		}
	}
}
