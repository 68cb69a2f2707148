package sim

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
	"time"

	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/internal/proof/longform"
)

var (
	flagProfile = flag.String("sim.profile", "", "the profiles to simulate, with commas between them; all when empty")
	flagSeed    = flag.Uint64("sim.seed", 0, "the first seed; 0 for one that the clock decides")
	flagSeeds   = flag.Int("sim.seeds", 0, "how many seeds of each profile")
	flagTime    = flag.Duration("sim.time", 0, "go on for so long, whatever sim.seeds says")
	flagWorkers = flag.Int("sim.workers", 0, "how many workers; 0 for what the profile says")
	flagLasts   = flag.Duration("sim.lasts", 0, "how long things go wrong, in virtual time; 0 for what the profile says")
	flagTail    = flag.Int("sim.tail", 50, "how many lines of a broken history to print")
	flagShrink  = flag.Int("sim.shrink", 150, "in how many runs to look for a shorter history of a broken promise")
	flagSlow    = flag.Duration("sim.slow", 45*time.Second, "tell of seeds in which it takes longer until all is well again, and why")
	flagMatrix  = flag.Bool("sim.matrix", false, "print the worker hours of each pair of features, not only the fewest")
	flagFeature = flag.String("sim.feature", "", "run only the seeds with this feature, by its name in a matrix")
	flagQuick   = flag.Bool("sim.quick", false, "stop at the first broken promise, print only that, and do not ask whether every fault happened")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *flagQuick {
		*flagShrink, *flagTail = 0, 0
	}
	runtime.GOMAXPROCS(1)
	if f := flag.Lookup("test.memprofile"); f == nil || f.Value.String() == "" {
		runtime.MemProfileRate = 0
	}
	debug.SetGCPercent(400) // there is little live memory and much garbage
	os.Exit(leaktest.Run(m))
}

// tally sums up the simulations of a profile.
type tally struct {
	seeds, steps, handled, again, broken int
	beats                                int
	lived, settled, cpu                  time.Duration
	faults                               map[Fault]int
	due                                  map[Fault]float64
	worst                                map[string]float64
	pairs                                *matrix // nil if the profile does not cross features
}

// TestSimulations runs seeds of each profile. By default it runs one seed, which is always the
// same. Large profiles use their smallest number of workers, and faults last for at most a minute.
// The long form runs two seeds with the profiles' own ranges. `make sim` runs other seeds.
func TestSimulations(t *testing.T) {
	seed, seeds, short := *flagSeed, *flagSeeds, false
	if seeds == 0 && *flagTime == 0 {
		seed, seeds = max(seed, 1), 1
		if longform.On() && !raced {
			seeds = 2
		} else {
			short = true
		}
	}
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) / 1000 % 1e12
	}
	fmt.Printf("simulations from seed %d\n", seed)
	var profiles []Profile
	for _, p := range Profiles {
		if *flagProfile == "" || slices.Contains(strings.Split(*flagProfile, ","), p.Name) {
			profiles = append(profiles, p)
		}
	}
	for _, name := range strings.Split(*flagProfile, ",") {
		if _, known := ProfileNamed(name); !known && name != "" {
			t.Fatalf("there is no profile %q", name)
		}
	}
	all := map[string]*tally{}
	began := time.Now()
	for i := 0; i < seeds || time.Since(began) < *flagTime; i++ {
		for _, p := range profiles {
			if *flagTime > 0 && i >= seeds && time.Since(began) > *flagTime {
				break
			}
			if all[p.Name] == nil {
				all[p.Name] = &tally{faults: map[Fault]int{}, due: map[Fault]float64{}, worst: map[string]float64{}}
			}
			if *flagFeature != "" && !crosses(seed+uint64(i), p, *flagFeature) {
				continue
			}
			o := Options{Workers: *flagWorkers, Lasts: *flagLasts}
			switch {
			case o.Lasts > 0:
			case raced:
				o.Lasts = 2 * time.Minute
			case short && p.Lasts[1] > time.Minute:
				o.Lasts = time.Minute
			}
			if short && o.Workers == 0 && p.Workers[0] > 5 {
				o.Workers = p.Workers[0]
			}
			before := cpuTime()
			r := Run(t, seed+uint64(i), p, o)
			all[p.Name].add(r, cpuTime()-before)
			if r.Settled > *flagSlow {
				fmt.Printf("seed %d of %s: all was well only after %v\n    %s\n", r.Seed, p.Name, r.Settled.Round(time.Second), strings.Join(r.Late, "\n    "))
			}
			if r.Wrong != "" {
				report(t, r, p, o)
				if *flagQuick {
					return
				}
			}
		}
	}
	summarize(t, profiles, all, time.Since(began))
}

// crosses reports whether the first application of a seed has a feature.
func crosses(seed uint64, p Profile, name string) bool {
	all := &shared{}
	newWorld(all, seed, 0, p.filled())
	c := all.apps[0].crosses
	return c != nil && slices.ContainsFunc(c.on.all(), func(f feature) bool { return f.String() == name })
}

// missed reports whether a fault never happened, although at least 20 were expected. By chance,
// that happens once in e^20 runs.
func (a *tally) missed(f Fault) bool { return a.faults[f] == 0 && a.due[f] >= 20 }

func (a *tally) add(r Result, cpu time.Duration) {
	a.seeds++
	a.steps += r.Steps
	a.handled += r.Handled
	a.again += r.Again
	a.lived += r.Lived
	a.beats += r.Beats
	a.cpu += cpu
	a.settled = max(a.settled, r.Settled)
	if r.Wrong != "" {
		a.broken++
	}
	for f, n := range r.Faults {
		a.faults[f] += n
	}
	for f, n := range r.Due {
		a.due[f] += n
	}
	for _, c := range r.Crossed {
		if a.pairs == nil {
			a.pairs = newMatrix()
		}
		a.pairs.add(c)
	}
	for kind, part := range r.Worst {
		a.worst[kind] = max(a.worst[kind], part)
	}
}

// report reports a violation with the shortest history that it can find.
func report(t *testing.T, r Result, p Profile, o Options) {
	t.Errorf("profile %s, seed %d: %s\nAgain: go test ./internal/proof/sim -run TestSimulations -sim.profile=%s -sim.seed=%d -sim.seeds=1 -sim.quick",
		p.Name, r.Seed, r.Wrong, p.Name, r.Seed)
	for _, c := range r.Crossed {
		fmt.Printf("seed %d of %s had on: %v\n", r.Seed, p.Name, c.On)
	}
	if *flagShrink > 0 {
		before := len(r.Struck)
		r = Shrink(t, r, p, o, *flagShrink)
		fmt.Printf("shrunk from %d faults to %d: %s\n", before, len(r.Struck), r.Wrong)
		for _, f := range r.Struck {
			fmt.Println("    fault:", f)
		}
	}
	for _, line := range r.Story(*flagTail) {
		fmt.Println(line)
	}
}

func summarize(t *testing.T, profiles []Profile, all map[string]*tally, took time.Duration) {
	var hours, cpu float64
	beats, steps, broken := 0, 0, 0
	for _, p := range profiles {
		a := all[p.Name]
		if a == nil {
			continue
		}
		hours += a.lived.Hours()
		cpu += a.cpu.Seconds()
		beats += a.beats
		steps += a.steps
		broken += a.broken
		fmt.Printf("%-14s %4d seeds %9.1f worker hours, %.3f CPU s for each %10d heartbeats %8d records handled %6d again, at most %v until all was well, %d broken\n",
			p.Name, a.seeds, a.lived.Hours(), a.cpu.Seconds()/a.lived.Hours(), a.beats, a.handled, a.again, a.settled.Round(time.Second), a.broken)
		var counted []string
		for _, f := range slices.Sorted(maps.Keys(p.Rates)) {
			counted = append(counted, fmt.Sprintf("%s %d", f, a.faults[f]))
			if a.missed(f) {
				t.Errorf("profile %s: %q never happened, and should have %.1f times", p.Name, f, a.due[f])
			}
		}
		fmt.Printf("           %s\n", strings.Join(counted, ", "))
		fmt.Printf("           of its bound each duty took at most:")
		for _, kind := range slices.Sorted(maps.Keys(a.worst)) {
			fmt.Printf(" %s %.0f%%", kind, 100*a.worst[kind])
		}
		fmt.Println()
		if a.pairs != nil {
			a.pairs.print(os.Stdout, *flagMatrix)
			// Consecutive seeds use every set of the covering list.
			if missing := a.pairs.missing(); *flagFeature == "" && len(missing) > 0 && a.seeds >= len(covering()) {
				t.Errorf("profile %s: %d pairs of features had no worker, such as %s with %s", p.Name, len(missing), missing[0][0], missing[0][1])
			}
		}
	}
	fmt.Printf("%.1f worker hours, %d heartbeats, %d steps, %.1f CPU s (%.3f for a worker hour), %d broken promises, in %v\n",
		hours, beats, steps, cpu, cpu/hours, broken, took.Round(time.Second))
}
