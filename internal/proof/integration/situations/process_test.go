package situations_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// process is a running process of the command.
type process struct {
	t    *testing.T
	name string
	addr string // of its metrics or pages, or ""
	log  string // path of the file with its standard error
	cmd  *exec.Cmd
	gone chan struct{}
}

// build builds the command and returns its path.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "weir")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	cmd.Dir = filepath.Join("..", "..", "..", "..", "cmd", "weir")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// environment returns the environment of all processes, with more variables.
func environment(more ...string) []string {
	return append(append(os.Environ(), "AWS_REGION="+servers.Region, "AWS_DEFAULT_REGION="+servers.Region,
		"AWS_ACCESS_KEY_ID="+servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+servers.SecretAccessKey,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER="), more...)
}

// start starts a process, which ends with the test.
func start(t *testing.T, name, program string, args ...string) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{t: t, name: name, log: filepath.Join(dir, "log"), gone: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir, p.cmd.Env = dir, environment()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	servers.Attach(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		defer close(p.gone)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			said := p.said()
			t.Logf("%s said:\n%s", name, said[max(0, len(said)-6000):])
		}
	})
	return p
}

// said returns what the process has written so far.
func (p *process) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// kill kills the process, like a crash.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// stop stops the process with SIGTERM.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.gone:
	case <-time.After(time.Minute):
		p.t.Errorf("%s does not stop", p.name)
		p.kill()
	}
}

// lives reports whether the process runs.
func (p *process) lives() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

var link = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serving waits until the process prints its address, and returns it.
func (p *process) serving() string {
	p.t.Helper()
	until(p.t, time.Minute, p.name+" prints its address", func() string {
		if !p.lives() {
			p.t.Fatalf("%s ended: %s", p.name, p.said())
		}
		if p.addr = link.FindString(p.said()); p.addr == "" {
			return "it says " + p.said()
		}
		return ""
	})
	return p.addr
}

// until polls until a function returns "". The function returns what is missing.
func until(t *testing.T, within time.Duration, what string, missing func() string) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		is := missing()
		if is == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %s", what, within, is)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("%s: %s", what, is)
		}
	}
}

// get returns the body of a page.
func get(t *testing.T, url string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// freePort returns the number of an unused port.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// output runs a command line in a shell, with the command weir in its path. It returns the standard
// output, the standard error and the exit code.
func (s *scene) output(line string) (out, said string, code int) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = s.t.TempDir()
	cmd.Env = environment("WEIR_STORE="+s.store, "WEIR_DEAD="+s.dead, "AWS_ENDPOINT_URL_KINESIS="+s.observers.server.URL,
		"PATH="+strings.Join([]string{filepath.Dir(s.program), s.awsDir, os.Getenv("PATH")}, ":"), "COLUMNS=80")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		return "", fmt.Sprint(err), -1
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}
