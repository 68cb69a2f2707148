// Package older builds programs of older versions of weir from the history of the repository. It is
// for tests in which two versions share a store.
package older

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// commit is the previous version. It is the newest version whose workers may be running when
// workers of this version join them. Each release sets it to the commit of the previous release,
// and adapts internal/previous. Until the first release, it is a commit before all additions to the
// contract of stores, and stored data must be compatible with it. It is the first commit that
// accepts SQL tables of an unknown version.
const commit = "e51672958a43670986aea23e59dd4665e8633f73"

// BeforeNames is the last commit before the public API got its present names. Its workers have all
// additions to the contract of stores.
const BeforeNames = "c0a64c6a51cd96a08d3c8253d31c25a05637e33b"

// Version contains the source of an older version, and its built programs. Only one goroutine may
// call its methods.
type Version struct {
	Source string // folder of the source; read-only, because other tests use it at the same time

	programs string // folder of the built programs, until the test ends
	command  string // path of the command; "" before it is built
}

// Unpack extracts the previous version, as [UnpackCommit] does.
func Unpack(t testing.TB) *Version { return UnpackCommit(t, commit) }

// UnpackCommit extracts an older version from the history into the user's cache. The folder stays
// there, because the build cache identifies packages by their folders. Without git, or in a clone
// without the history, the test is skipped. It fails if skipping is not allowed.
func UnpackCommit(t testing.TB, commit string) *Version {
	t.Helper()
	top, err := git(t, ".", "rev-parse", "--show-toplevel")
	if err == nil {
		_, err = git(t, strings.TrimSpace(string(top)), "cat-file", "-e", commit+"^{commit}")
	}
	if err != nil {
		const how = "the version before, commit %s, cannot be had from git: %v; a shallow clone becomes a whole one by git fetch --unshallow"
		if os.Getenv(servers.Require) == "require" {
			t.Fatalf(how, commit, err)
		}
		t.Skipf(how, commit, err)
	}
	v := &Version{programs: t.TempDir()}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = v.programs
	}
	v.Source = filepath.Join(cache, "weir-tests", "version-"+commit[:12])
	if _, err := os.Stat(v.Source); err == nil {
		return v
	}
	archive, err := git(t, strings.TrimSpace(string(top)), "archive", "--format=tar", commit)
	if err == nil {
		err = place(archive, v.Source)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// place extracts an archive. Afterwards dir exists with all of its files, or it does not exist.
// That holds even if other processes do the same at the same time.
func place(archive []byte, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "part-")
	if err != nil {
		return err
	}
	err = unpack(archive, part)
	if err == nil {
		err = os.Rename(part, dir)
	}
	if err != nil {
		_ = os.RemoveAll(part)
		if _, there := os.Stat(dir); there == nil {
			return nil // another process was faster
		}
	}
	return err
}

// Edit replaces one text in a file of the older version, for a behavior that only a test needs.
type Edit struct {
	File     string // relative to the source, with slashes
	Old, New string // Old must occur exactly once in the file
}

// Tests builds the test program of the calling test's package in the older version. Such a program
// is also the worker process of the package. The environment variables and the output between test
// and worker must therefore not change. The edits apply to this program only.
func (v *Version) Tests(t testing.TB, edits ...Edit) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := filepath.Join("internal", "proof", "integration")
	if _, err := os.Stat(filepath.Join(v.Source, tests)); err != nil {
		tests = filepath.Join("internal", "integration") // where the oldest versions have them
	}
	how := []string{"test", "-c"}
	if len(edits) > 0 {
		how = append(how, "-overlay", v.overlay(t, edits))
	}
	return v.build(t, filepath.Join(tests, filepath.Base(dir)), how...)
}

// overlay writes the edited files, and returns the path of a file for the go command's flag
// -overlay.
func (v *Version) overlay(t testing.TB, edits []Edit) string {
	t.Helper()
	var files struct{ Replace map[string]string }
	files.Replace = map[string]string{}
	for _, e := range edits {
		source := filepath.Join(v.Source, filepath.FromSlash(e.File))
		edited, again := files.Replace[source]
		if !again {
			edited = filepath.Join(t.TempDir(), filepath.Base(source))
			files.Replace[source] = edited
		}
		from := source
		if again {
			from = edited
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), e.Old); n != 1 {
			t.Fatalf("%s of the version before has the text %q %d times, not once", e.File, e.Old, n)
		}
		if err := os.WriteFile(edited, []byte(strings.Replace(string(text), e.Old, e.New, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// CreateStore sets up a store with the command of the older version, as its documentation says.
// more contains arguments of the command after the URL.
func (v *Version) CreateStore(t testing.TB, url string, more ...string) {
	t.Helper()
	if v.command == "" {
		v.command = v.build(t, filepath.Join("cmd", "weir"), "build")
	}
	cmd := exec.CommandContext(t.Context(), v.command, append([]string{"store", "create", "--store", url}, more...)...)
	cmd.Env = append(os.Environ(), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID="+servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+servers.SecretAccessKey)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the version before cannot make the store: %v\n%s", err, out)
	}
}

// build builds a package of the older version.
func (v *Version) build(t testing.TB, pkg string, how ...string) string {
	t.Helper()
	program := filepath.Join(v.programs, strings.ReplaceAll(pkg, string(filepath.Separator), "-")+".exe")
	cmd := exec.CommandContext(t.Context(), "go", append(how, "-buildvcs=false", "-o", program, ".")...)
	cmd.Dir = filepath.Join(v.Source, pkg)
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(v.Source, "go.work"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the version before cannot be built: %v\n%s", err, out)
	}
	return program
}

func git(t testing.TB, dir string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(err, errors.New(strings.TrimSpace(stderr.String())))
	}
	return stdout.Bytes(), nil
}

// unpack writes the folders and files of an archive below dir.
func unpack(archive []byte, dir string) error {
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return &fs.PathError{Op: "unpack", Path: h.Name, Err: fs.ErrInvalid}
		}
		place := filepath.Join(dir, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(place, 0o700)
		case tar.TypeReg:
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(place, text, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
}
