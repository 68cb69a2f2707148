package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

type edit struct{ path, old, new string }

type mutation struct {
	of           string // package of the simulation
	name, breaks string
	profiles     []string
	seeds        int // number of seeds per profile
	edits        []edit
	list         string // list of the changed files, for the go command
}

// read reads a mutation. most is the default number of seeds per profile.
func read(file string, most int) (m mutation, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return m, err
	}
	m.name = strings.TrimSuffix(filepath.Base(file), ".txt")
	parts := strings.Split("\n"+string(b), "\n=== ")
	breaks, profiles, ok := strings.Cut(strings.TrimSpace(parts[0]), "\nprofiles: ")
	if !ok || len(parts) < 2 {
		return m, fmt.Errorf("%s: there is no sentence, no line of profiles, or no edit", file)
	}
	profiles, seeds, own := strings.Cut(profiles, "\nseeds: ")
	m.breaks, m.profiles, m.seeds = breaks, strings.Split(profiles, ","), most
	if own {
		if m.seeds, err = strconv.Atoi(seeds); err != nil || m.seeds < 1 {
			return m, fmt.Errorf("%s: %q is no number of seeds", file, seeds)
		}
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

// overlay writes the changed files, and their list for the go command. It returns the path of the
// list.
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
