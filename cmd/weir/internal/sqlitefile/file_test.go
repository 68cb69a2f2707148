package sqlitefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
)

func TestOpen(t *testing.T) {
	for _, name := range []string{"plain.db", "with space.db", "odd ?%#&=ü.db", "file:name"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			if _, err := Open(t.Context(), path, false); err == nil || !strings.Contains(err.Error(), "there is no SQLite file") {
				t.Fatalf("a missing file: %v", err)
			}
			for range 2 { // first the file is created, then it exists
				f, err := Open(t.Context(), path, true)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.Heartbeat(t.Context(), "app", lease.Report{Session: "s", Name: "n", First: true}); err != nil {
					t.Error(err)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("the file has another name: %v", err)
			}
			f, err := Open(t.Context(), path, false)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			if view, err := f.View(t.Context(), "app", ""); err != nil || len(view.Workers) != 1 {
				t.Errorf("view %v, %v", view, err)
			}
		})
	}
}

func TestOpenComplains(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database at all\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"no path":              {"", "needs a path"},
		"a directory":          {dir, "is a directory"},
		"a missing directory":  {filepath.Join(dir, "none", "x.db"), "there is no directory"},
		"a file of other kind": {text, "not a SQLite database"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Open(t.Context(), c.path, true)
			if err == nil {
				_ = f.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
