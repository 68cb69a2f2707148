package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutationsFitTheCode checks that the text that each mutation replaces is in the code. If it
// fails after a change, adapt the mutation.
func TestMutationsFitTheCode(t *testing.T) {
	t.Chdir("../../../..")
	for _, of := range simulations {
		if _, err := run(of, "", 0, 0, true); err != nil {
			t.Error(err)
		}
	}
}

// TestTheNumberOfMutationsIsStated checks the number of mutations in the Makefile and on the page
// about correctness.
func TestTheNumberOfMutationsIsStated(t *testing.T) {
	t.Chdir("../../../..")
	files, err := filepath.Glob("internal/proof/sim/mutations/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	queues, err := filepath.Glob("internal/proof/queuesim/mutations/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"docs/decisions/0026-queues.md", "docs/correctness.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(" in %d ways", len(queues)); !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
	for _, page := range []string{"Makefile", "docs/correctness.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(" in %d ways", len(files)); !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}

func TestBadMutationsAreRefused(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "x.go")
	if err := os.WriteFile(source, []byte("package x\n\nvar a = 1\nvar b = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, wrong string }{
		{"fits", "It breaks.\nprofiles: calm\n=== " + source + "\nvar a = 1\n--- becomes\nvar a = 2\n", ""},
		{"twice", "It breaks.\nprofiles: calm\n=== " + source + "\n = 1\n--- becomes\n = 2\n", "2 times"},
		{"never", "It breaks.\nprofiles: calm\n=== " + source + "\nvar c = 1\n--- becomes\nvar c = 2\n", "0 times"},
		{"no profiles", "It breaks.\n=== " + source + "\nvar a = 1\n--- becomes\nvar a = 2\n", "no line of profiles"},
		{"no new text", "It breaks.\nprofiles: calm\n=== " + source + "\nvar a = 1\n", "an edit is not"},
		{"own seeds", "It breaks.\nprofiles: calm\nseeds: 400\n=== " + source + "\nvar a = 1\n--- becomes\nvar a = 2\n", ""},
		{"no seeds", "It breaks.\nprofiles: calm\nseeds: 0\n=== " + source + "\nvar a = 1\n--- becomes\nvar a = 2\n", "no number of seeds"},
		{"odd seeds", "It breaks.\nprofiles: calm\nseeds: many\n=== " + source + "\nvar a = 1\n--- becomes\nvar a = 2\n", "no number of seeds"},
		{"no file", "It breaks.\nprofiles: calm\n=== nowhere.go\nvar a = 1\n--- becomes\n\n", "nowhere.go"},
	} {
		file := filepath.Join(dir, tt.name+".txt")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := read(file, 60)
		if err == nil {
			_, err = m.overlay(dir)
		}
		if want := map[string]int{"fits": 60, "own seeds": 400}[tt.name]; want != 0 && m.seeds != want {
			t.Errorf("%s: %d seeds, want %d", tt.name, m.seeds, want)
		}
		switch {
		case tt.wrong == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s: the error is %v, want %q", tt.name, err, tt.wrong)
		}
	}
}
