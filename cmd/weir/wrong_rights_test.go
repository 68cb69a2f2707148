//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weir-go/weir/internal/proof/wronginput"
)

// nobodyID is a user without rights on any system. Tests that run as root, as in many CI systems,
// use it.
const nobodyID = 65534

// The error names the file or directory that the user may not read or write.
func TestWrongInputsWithoutRights(t *testing.T) {
	t.Parallel()
	p := newWrongPlace(t)
	command := p.command()
	if os.Geteuid() == 0 {
		// Other users cannot enter the temporary directory of a test, so create a directory
		// elsewhere.
		dir, err := os.MkdirTemp("", "weir-rights-") //nolint:usetesting // see above
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // others are to read it
			t.Fatal(err)
		}
		command.Path = copyProgram(t, command.Path, filepath.Join(dir, "weir"))
		command.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
		command.Dir, p.dir = dir, dir
		command.Env = append(command.Env, "HOME="+dir, "TMPDIR="+dir)
	}
	wronginput.Run(t, command, wrongRights(p))
}

func copyProgram(t *testing.T, from, to string) string {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // a program
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return to
}

func wrongRights(p *wrongPlace) []wronginput.Input {
	t := p.t
	locked, open := p.path("locked"), p.path("open")
	for _, dir := range []string{locked, open} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	both := p.leases("locked/both.db")
	fileOnly := p.leases("open/file.db")
	secret := p.file("secret", "x\n")
	store := "--store=sqlite:" + p.leases("open/mine.db")
	modes := map[string]os.FileMode{both: 0o444, fileOnly: 0o444, secret: 0, locked: 0o555, open: 0o777, p.path("open/mine.db"): 0o666}
	for name, mode := range modes {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(locked, 0o700) }) //nolint:gosec // so that it can be removed
	work := "consume --stream s --app a " + p.endpoint + " --store sqlite:"
	return under("rights",
		fails("a SQLite file that may only be read", work+fileOnly, "file.db", "write"),
		fails("a SQLite file and directory that may only be read", work+both, "both.db", "write"),
		fails("a pause in a file that may only be read", "group pause --app a --store sqlite:"+fileOnly, "file.db", "write"),
		fails("a SQLite file in a directory that may only be read", work+locked+"/new.db", "new.db", "write"),
		fails("a SQLite file that may not be read", work+secret, "secret", "read"),
		fails("records that may not be read", "put --stream s "+p.endpoint+" "+secret, "secret", "may not be read"),
		fails("a dump that may not be read", "group import --app fresh --yes "+store+" "+secret, "secret", "permission denied"),
		fails("an export to a directory that may only be read", "group export --app a "+store+" "+locked+"/x", "permission denied"),
		fails("a certificate to a directory that may only be read", "local --addr 127.0.0.1:0 --tls --ca-file "+locked+"/ca.pem", "ca.pem", "permission denied"),
	)
}
