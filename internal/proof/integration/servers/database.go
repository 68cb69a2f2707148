package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Database is a running database server with its data in its own folder. It can be stopped and
// restarted on the same port. Only one goroutine may call its methods. Except TryStart, they fail
// the test if there is an error.
type Database struct {
	Name string
	Addr string // host:port on the loopback interface
	Dir  string // folder of the server

	t       testing.TB
	command func() *exec.Cmd            // returns a new command for each start
	ready   func(context.Context) error // returns nil when the server answers
	as      *syscall.Credential         // user of the server; nil for the current user
	stop    syscall.Signal              // signal that stops the server gracefully
	process atomic.Pointer[dataProcess] // nil while the server is stopped
}

// dataProcess is one run of a database server.
type dataProcess struct {
	cmd  *exec.Cmd
	said tail
	gone chan struct{}
}

const (
	stopWithin = 20 * time.Second
	startTries = 3 // another process may take the port before the server uses it
)

// newDatabase creates the folder of a server. A server that refuses to run as root runs as the user
// nobody, who owns the folder.
func newDatabase(t testing.TB, name string, notAsRoot bool) *Database {
	t.Helper()
	// Other users may not enter the parent folder of t.TempDir.
	dir, err := os.MkdirTemp("", "weir-"+strings.ToLower(name)+"-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	d := &Database{Name: name, Dir: dir, t: t, stop: syscall.SIGTERM}
	t.Cleanup(func() {
		d.end(syscall.SIGKILL)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if notAsRoot && os.Geteuid() == 0 {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatalf("%s does not run as root, and there is no user nobody to run it as: %v", name, err)
		}
		uid, _ := strconv.ParseUint(nobody.Uid, 10, 32)
		gid, _ := strconv.ParseUint(nobody.Gid, 10, 32)
		d.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: false}
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// reachable returns a folder with the content of dir that the user of the server can enter. That is
// dir itself, or a copy of it if the user may not enter a parent folder.
func (d *Database) reachable(dir string) string {
	d.t.Helper()
	for up := dir; d.as != nil; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err != nil {
			d.t.Fatal(err)
		}
		if info.Mode()&0o001 == 0 {
			break
		}
		if up == filepath.Dir(up) {
			return dir
		}
	}
	if d.as == nil {
		return dir
	}
	to := filepath.Join(d.Dir, "programs")
	// Use hard links if possible, because the folder has a hundred megabytes.
	if err := exec.Command("cp", "-al", dir, to).Run(); err == nil {
		return to
	}
	if err := os.RemoveAll(to); err != nil {
		d.t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", dir, to).CombinedOutput(); err != nil {
		d.t.Fatalf("%s cannot be copied: %v %s", dir, err, out)
	}
	return to
}

// environment returns the environment for programs of packages that were unpacked into dir.
func environment(t testing.TB, dir string) []string {
	t.Helper()
	var libraries []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu*", "lib/*-linux-gnu*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		libraries = append(libraries, found...)
	}
	return append(os.Environ(), "LC_ALL=C.UTF-8", "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
}

// released returns the beginning of a command line for a program of another Debian release. The
// program runs with its own loader and libraries.
func released(t testing.TB, dir, name string) []string {
	t.Helper()
	loader := program(t, dir, "usr/lib64/ld-linux-*.so.*", "usr/lib/*-linux-gnu/ld-linux-*.so.*", "usr/lib/ld-linux-*.so.*")
	libraries, err := filepath.Glob(filepath.Join(dir, "usr/lib/*-linux-gnu"))
	if err != nil {
		t.Fatal(err)
	}
	return []string{loader, "--library-path", strings.Join(libraries, ":"), program(t, dir, name)}
}

// program returns the path of a program below dir. It uses the first pattern that matches a file.
func program(t testing.TB, dir string, patterns ...string) string {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			return found[len(found)-1]
		}
	}
	t.Fatalf("none of %v is in %s: remove that folder and run scripts/fetch-servers.sh", patterns, dir)
	return ""
}

// run runs a program that prepares the server.
func (d *Database) run(cmd *exec.Cmd) {
	d.t.Helper()
	cmd.Dir = d.Dir
	cmd.SysProcAttr = attributes(d.as)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%s cannot be prepared: %s: %v\n%s", d.Name, cmd.Path, err, out)
	}
}

// boot starts the server for the first time, on a free port.
func (d *Database) boot() {
	d.t.Helper()
	for try := 1; ; try++ {
		d.Addr = freeAddr(d.t)
		err := d.start()
		if err == nil {
			return
		}
		if try == startTries {
			d.t.Fatal(err)
		}
	}
}

// freeAddr returns an unused address on the loopback interface.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Port returns the port in Addr.
func (d *Database) Port() string {
	return portOf(d.Addr)
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// Start starts the server again after [Database.Stop] or [Database.Kill]. It waits until the server
// answers.
func (d *Database) Start() {
	d.t.Helper()
	if err := d.start(); err != nil {
		d.t.Fatal(err)
	}
}

// TryStart starts the server again, like Start, but returns an error instead of failing the test.
// After a crash, remaining parts of a server may block its start for a moment. The caller can then
// retry.
func (d *Database) TryStart() error { return d.start() }

func (d *Database) start() error {
	p := &dataProcess{cmd: d.command(), gone: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = d.Dir, &p.said, &p.said
	p.cmd.SysProcAttr = attributes(d.as)
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("%s cannot be started: %w", d.Name, err)
	}
	d.process.Store(p)
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(d.t.Context(), startWithin)
	defer cancel()
	every := time.NewTicker(healthEvery)
	defer every.Stop()
	for {
		err := d.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-every.C:
		case <-p.gone:
			return fmt.Errorf("%s ended at once: %s", d.Name, p.said.String())
		case <-ctx.Done():
			d.end(syscall.SIGKILL)
			return fmt.Errorf("%s does not answer after %s: %w\n%s", d.Name, startWithin, err, p.said.String())
		}
	}
}

// Stop stops the server gracefully.
func (d *Database) Stop() {
	d.t.Helper()
	d.end(d.stop)
}

// Kill kills the server, like a crash.
func (d *Database) Kill() {
	d.t.Helper()
	d.end(syscall.SIGKILL)
}

// Restart stops the server gracefully and starts it again.
func (d *Database) Restart() {
	d.t.Helper()
	d.Stop()
	d.Start()
}

// Suspend suspends the server. Connections stay open, but there are no answers.
func (d *Database) Suspend() { d.signal(syscall.SIGSTOP) }

// Resume resumes the server after [Database.Suspend].
func (d *Database) Resume() { d.signal(syscall.SIGCONT) }

func (d *Database) signal(s syscall.Signal) {
	d.t.Helper()
	if err := d.process.Load().cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

func (d *Database) end(s syscall.Signal) {
	p := d.process.Swap(nil)
	if p == nil {
		return
	}
	select {
	case <-p.gone:
		d.t.Errorf("%s ended in the middle of the test: %s", d.Name, p.said.String())
		return
	default:
	}
	_ = p.cmd.Process.Signal(s)
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-p.gone:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.gone
		d.t.Errorf("%s had to be killed: it did not end within %s of %s: %s", d.Name, stopWithin, s, p.said.String())
	}
	if d.t.Failed() {
		d.t.Logf("%s said last:\n%s", d.Name, p.said.String()[max(0, len(p.said.String())-2048):])
	}
}
