// Command mutants breaks weir in each of the ways that internal/sim/mutations lists, one at a time and without touching a file of it, and
// sees that the simulation notices. It prints a table, and fails when one is not noticed or does not fit the code any more.
//
// A mutation is a text file: a sentence about what it breaks, "profiles: " and those that are to notice, and edits:
//
//	=== path/of/file.go
//	the text that is there, once
//	--- becomes
//	the text that takes its place
package main

import (
	"bytes"
	"context"
	"encoding/json"
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
	only := flag.String("only", "", "those whose names match")
	seeds := flag.Int("seeds", 60, "in how many seeds of each of its profiles a mutation has to be noticed")
	bound := flag.Duration("bound", 10*time.Minute, "how long that may take; one that makes the simulation hang is not noticed")
	check := flag.Bool("check", false, "only see whether they fit the code")
	flag.Parse()
	left, err := run(*only, *seeds, *bound, *check)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if left > 0 {
		fmt.Fprintf(os.Stderr, "mutants: %d were not noticed\n", left)
		os.Exit(1)
	}
}

type edit struct{ path, old, new string }

type mutation struct {
	name, breaks, profiles string
	edits                  []edit
}

func run(only string, seeds int, bound time.Duration, check bool) (unnoticed int, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob("internal/sim/mutations/*.txt")
	if err != nil || len(files) == 0 {
		return 0, errors.Join(err, errors.New("no mutations: run this in the root of the module"))
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	began, count := time.Now(), 0
	for _, file := range files {
		m, err := read(file)
		if err != nil {
			return 0, err
		}
		overlay, err := m.overlay(dir)
		if err != nil {
			return 0, err
		}
		if check || !match.MatchString(m.name) {
			continue
		}
		count++
		noticed, how, err := m.noticed(dir, overlay, seeds, bound)
		switch {
		case err != nil:
			unnoticed++
			how = "FAILED: " + err.Error()
		case !noticed:
			unnoticed++
			how = "NOT NOTICED: " + m.breaks
		}
		fmt.Printf("%-42s %s\n", m.name, how)
	}
	if !check {
		fmt.Printf("%d of %d mutations were noticed, in %v\n", count-unnoticed, count, time.Since(began).Round(time.Second))
	}
	return unnoticed, nil
}

func read(file string) (m mutation, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return m, err
	}
	m.name = strings.TrimSuffix(filepath.Base(file), ".txt")
	parts := strings.Split("\n"+string(b), "\n=== ")
	var ok bool
	if m.breaks, m.profiles, ok = strings.Cut(strings.TrimSpace(parts[0]), "\nprofiles: "); !ok || len(parts) < 2 {
		return m, fmt.Errorf("%s: there is no sentence, no line of profiles, or no edit", file)
	}
	for _, p := range parts[1:] {
		path, rest, ok1 := strings.Cut(p, "\n")
		old, becomes, ok2 := strings.Cut(rest, "\n--- becomes\n")
		if !ok1 || !ok2 {
			return m, fmt.Errorf("%s: an edit is not a path, the old text, a line \"--- becomes\", and the new text", file)
		}
		m.edits = append(m.edits, edit{path, old, strings.TrimSuffix(becomes, "\n")})
	}
	return m, nil
}

// overlay writes the changed files, and the list of them that the go command takes.
func (m *mutation) overlay(dir string) (string, error) {
	changed := map[string]string{}
	for _, e := range m.edits {
		text, seen := changed[e.path]
		if !seen {
			b, err := os.ReadFile(e.path)
			if err != nil {
				return "", fmt.Errorf("mutation %s: %w", m.name, err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return "", fmt.Errorf("mutation %s does not fit: what it replaces is in %s %d times\n%s", m.name, e.path, n, e.old)
		}
		changed[e.path] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := map[string]string{}
	for path, text := range changed {
		to := filepath.Join(dir, m.name+"-"+strings.ReplaceAll(path, "/", "-"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		replace[abs] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, m.name+".json")
	return list, os.WriteFile(list, b, 0o600)
}

var wrong = regexp.MustCompile(`profile (\w+), seed (\d+): (.*)`)

// noticed builds the simulation with the mutation in it, and runs it.
func (m *mutation) noticed(dir, overlay string, seeds int, bound time.Duration) (bool, string, error) {
	binary := filepath.Join(dir, m.name+".test")
	defer func() { _ = os.Remove(binary) }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./internal/sim")
	if out, err := build.CombinedOutput(); err != nil {
		return false, "", fmt.Errorf("mutation %s does not build: %w\n%s", m.name, err, out)
	}
	ctx, cancel = context.WithTimeout(ctx, bound)
	defer cancel()
	test := exec.CommandContext(ctx, binary, "-test.run=^TestSimulations$", "-sim.seed=1", fmt.Sprintf("-sim.seeds=%d", seeds), "-sim.profile="+m.profiles,
		"-sim.quick", "-sim.shrink=0", "-sim.tail=0")
	out, err := test.CombinedOutput()
	if ctx.Err() != nil {
		return false, "", nil
	}
	if err == nil {
		return false, "", nil
	}
	if found := wrong.FindSubmatch(out); found != nil {
		return true, fmt.Sprintf("%s, seed %s: %.200s", found[1], found[2], found[3]), nil
	}
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) {
			return true, string(bytes.TrimSpace(line)), nil
		}
	}
	return false, "", fmt.Errorf("mutation %s: the simulation failed without saying why: %w\n%s", m.name, err, out)
}
