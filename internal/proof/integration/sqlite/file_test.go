package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/sqlstore"
)

// A file may be removed, or replaced at its path. The store then does not use the path until the
// file is restored, and creates no file in the meantime.
func TestAFileThatIsDeletedOrReplacedIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		take func(t *testing.T, path string) // removes the file
		back func(t *testing.T, path string) // restores the file; nil if that is impossible
		here bool                            // a file is at the path in the meantime
	}{
		"deleted": {func(t *testing.T, path string) { must(t, os.Remove(path)) }, nil, false},
		"moved away and back": {
			func(t *testing.T, path string) { must(t, os.Rename(path, path+".old")) },
			func(t *testing.T, path string) { must(t, os.Rename(path+".old", path)) }, false,
		},
		"replaced by one with tables, and put back": {
			func(t *testing.T, path string) {
				other := filepath.Join(t.TempDir(), "other.db")
				_, db := sqlite.Migrated(t, other)
				must(t, db.Close())
				must(t, os.Rename(path, path+".old"))
				must(t, os.Rename(other, path))
			},
			func(t *testing.T, path string) { must(t, os.Rename(path+".old", path)) }, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := empty(t)
			_, db := sqlite.Migrated(t, path)
			must(t, db.Close())
			s, _ := open(t, path)
			beat := func(first bool) error {
				_, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "S", Name: "w", First: first})
				return err
			}
			must(t, beat(true))
			must(t, beat(false))
			c.take(t, path)
			for what, err := range map[string]error{"a session's beat": beat(false), "a view": view(t, s)} {
				if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "deleted, moved or replaced") {
					t.Errorf("%s: %v", what, err)
				}
				if over := errors.Is(err, lease.ErrSessionOver); over != (what == "a session's beat") {
					t.Errorf("%s: %v; is the session over? %v", what, err, over)
				}
			}
			if err := beat(true); err == nil || errors.Is(err, lease.ErrSessionOver) || errors.Is(err, lease.ErrSetup) {
				t.Errorf("a first beat: %v; want one that is tried again", err)
			}
			if _, err := os.Stat(path); (err == nil) != c.here {
				t.Errorf("at the path: %v", err)
			}
			if c.back != nil {
				c.back(t, path)
				must(t, beat(false))
				must(t, view(t, s))
			}
		})
	}
}

func view(t *testing.T, s *sqlstore.Store) error {
	_, err := s.View(t.Context(), "app", "")
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
