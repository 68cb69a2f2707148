package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutationsFitTheCode: whoever changes a line that a mutation replaces has to change the mutation too.
func TestMutationsFitTheCode(t *testing.T) {
	t.Chdir("../../..")
	if _, err := run("", 0, 0, true); err != nil {
		t.Error(err)
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
		{"no file", "It breaks.\nprofiles: calm\n=== nowhere.go\nvar a = 1\n--- becomes\n\n", "nowhere.go"},
	} {
		file := filepath.Join(dir, tt.name+".txt")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := read(file)
		if err == nil {
			_, err = m.overlay(dir)
		}
		switch {
		case tt.wrong == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s: the error is %v, want %q", tt.name, err, tt.wrong)
		}
	}
}
