// Command mutants checks that the simulation detects broken versions of weir. It applies each of
// the mutations in internal/proof/sim/mutations, one at a time and without changing a file. It
// prints a table. It fails if a mutation is not detected, or does not fit the code any more. With
// -of internal/proof/queuesim it does the same with the simulation of queues.
//
// The unchanged weir must keep its promises with the seeds that detect a mutation. Otherwise the
// result would say nothing about the mutation.
//
// A mutation is a text file. It contains a sentence about the broken behaviour, and "profiles: "
// with the profiles that must detect it. It may contain "seeds: " with the number of seeds per
// profile. The edits follow:
//
//	=== path/of/file.go
//	the text that is there, once
//	--- becomes
//	the text that takes its place
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	of := flag.String("of", simulations[0], "the package of the simulation, with its folder of mutations")
	only := flag.String("only", "", "those whose names match")
	seeds := flag.Int("seeds", 200, "in how many seeds of each of its profiles a mutation has to be noticed")
	bound := flag.Duration("bound", 10*time.Minute, "how long that may take; one that makes the simulation hang is not noticed")
	check := flag.Bool("check", false, "only see whether they fit the code")
	flag.Parse()
	left, err := run(*of, *only, *seeds, *bound, *check)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if left > 0 {
		fmt.Fprintf(os.Stderr, "mutants: %d were not noticed\n", left)
		os.Exit(1)
	}
}

// simulations are the packages that have mutations.
var simulations = []string{"internal/proof/sim", "internal/proof/queuesim"}

func run(of, only string, most int, bound time.Duration, check bool) (unnoticed int, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob(of + "/mutations/*.txt")
	if err != nil || len(files) == 0 {
		return 0, errors.Join(err, errors.New("no mutations: run this in the root of the module"))
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	began := time.Now()
	var chosen []mutation
	for _, file := range files {
		m, err := read(file, most)
		m.of = of
		if err != nil {
			return 0, err
		}
		if m.list, err = m.overlay(dir); err != nil {
			return 0, err
		}
		if match.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if check {
		return 0, nil
	}
	binary, err := build(dir, of, "control", "")
	if err != nil {
		return 0, err
	}
	weir := control{binary, bound, map[string]error{}}
	// Fail early if the unchanged weir breaks a promise with the first seed of a profile.
	if err := weir.clean(seeds{profilesOf(chosen), 1, 1}); err != nil {
		return 0, err
	}
	for _, m := range chosen {
		v := m.try(dir, bound)
		if v.noticed {
			v = v.unless(weir.clean(v.in))
		}
		if !v.noticed {
			unnoticed++
		}
		fmt.Printf("%-42s %s\n", m.name, v.how)
	}
	fmt.Printf("%d of %d mutations were noticed, in %v; weir as it is keeps its promises in the same %d seeds\n",
		len(chosen)-unnoticed, len(chosen), time.Since(began).Round(time.Second), len(weir.known)-1)
	return unnoticed, nil
}

// control runs the unchanged weir.
type control struct {
	binary string
	bound  time.Duration
	known  map[string]error
}

// clean returns an error unless the unchanged weir keeps its promises with the given seeds.
func (c control) clean(some seeds) error {
	key := fmt.Sprint(some)
	err, known := c.known[key]
	if !known {
		err = simulate(c.binary, some, c.bound).clean(some)
		c.known[key] = err
	}
	return err
}

// try builds the simulation with the mutation and runs it.
func (m *mutation) try(dir string, bound time.Duration) verdict {
	binary, err := build(dir, m.of, m.name, m.list)
	if err != nil {
		return verdict{how: "FAILED: " + err.Error()}
	}
	defer func() { _ = os.Remove(binary) }()
	some := seeds{m.profiles, 1, m.seeds}
	return simulate(binary, some, bound).verdict(some, m.breaks)
}

func build(dir, of, name, overlay string) (binary string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	binary = filepath.Join(dir, name+".test")
	args := []string{"test", "-c", "-vet=off", "-tags", "lockranks", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if out, err := exec.CommandContext(ctx, "go", append(args, "./"+of)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s does not build: %w\n%s", name, err, out)
	}
	return binary, nil
}

func simulate(binary string, some seeds, bound time.Duration) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "-test.run=^TestSimulations$", "-test.timeout=0", fmt.Sprintf("-sim.seed=%d", some.first),
		fmt.Sprintf("-sim.seeds=%d", some.count), "-sim.profile="+strings.Join(some.profiles, ","), "-sim.quick").CombinedOutput()
	return outcome{out: out, err: err, late: ctx.Err() != nil}
}
