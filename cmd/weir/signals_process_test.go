//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/internal/proof/longform"
)

// A worker stops gracefully, however the signal reaches it. Cases are: timeout(1), which signals
// its child and the child's group; a shell; a parent that forwards a signal that its group has
// already received; and PID 1 of a container.
func TestConsumeStopsInOrderHoweverItIsWrapped(t *testing.T) {
	longform.Only(t)
	const forwards = `trap 'kill -TERM $child; sleep 0.02; kill -TERM $child' TERM INT
"$0" "$@" &
child=$!
while kill -0 $child 2>/dev/null; do wait $child; done
wait $child`
	for _, c := range []struct {
		name string
		wrap []string // words before the command
		code int
		send func(p *os.Process) error // nil if the wrapper itself sends the signal
		of   string                    // program that must be installed; "" if none
	}{
		{name: "plain timeout", wrap: []string{"timeout", "3"}, code: 124, of: "timeout"},
		{name: "timeout that keeps the status", wrap: []string{"timeout", "--preserve-status", "3"}, of: "timeout"},
		{name: "timeout that interrupts", wrap: []string{"timeout", "--preserve-status", "-s", "INT", "3"}, of: "timeout"},
		{name: "a shell that becomes the command", wrap: []string{"sh", "-c", `exec "$0" "$@"`}, send: func(p *os.Process) error { return p.Signal(syscall.SIGTERM) }},
		{name: "Ctrl-C for a shell's whole group", wrap: []string{"sh", "-c", `trap : INT; "$0" "$@"`}, send: func(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGINT) }},
		{name: "a parent that forwards", wrap: []string{"sh", "-c", forwards}, send: func(p *os.Process) error { return p.Signal(syscall.SIGTERM) }},
		{name: "a group and a parent that forwards", wrap: []string{"sh", "-c", forwards}, send: func(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGTERM) }},
		{name: "PID 1", wrap: []string{"unshare", "--pid", "--fork", "--kill-child"}, of: "unshare", send: func(p *os.Process) error { return syscall.Kill(childOf(p.Pid), syscall.SIGTERM) }},
		{name: "PID 1 that gets it twice", wrap: []string{"unshare", "--pid", "--fork", "--kill-child"}, of: "unshare", send: func(p *os.Process) error {
			child := childOf(p.Pid)
			err := syscall.Kill(child, syscall.SIGTERM)
			time.Sleep(20 * time.Millisecond)
			return errors.Join(err, syscall.Kill(child, syscall.SIGTERM))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.of != "" {
				if _, err := exec.LookPath(c.of); err != nil {
					t.Skip(err)
				}
			}
			if c.of == "unshare" && exec.Command("unshare", "--pid", "--fork", "true").Run() != nil {
				t.Skip("this user may make no PID namespace")
			}
			server, endpoint := clitest.Kinesis(t)
			server.CreateStream("s", 2)
			store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
			args := append(c.wrap[1:len(c.wrap):len(c.wrap)], os.Args[0], "consume", endpoint, "--stream=s", "--app=a", store, "--exec", "sleep 1; echo handled") // a batch is always in progress
			cmd := exec.CommandContext(t.Context(), c.wrap[0], args...)
			cmd.Env = append(os.Environ(), asCommand+"=1")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, 20*time.Second
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			var putting sync.WaitGroup
			putting.Go(func() {
				for i := 0; ; i++ {
					server.Put("s", strconv.Itoa(i), []byte("x"))
					select {
					case <-time.After(100 * time.Millisecond):
					case <-ended:
						return
					}
				}
			})
			if c.send != nil {
				time.Sleep(2 * time.Second)
				if err := c.send(cmd.Process); err != nil {
					t.Error(err)
				}
			}
			_ = cmd.Wait()
			close(ended)
			putting.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, stderr.String())
			}
			if !strings.Contains(stdout.String(), "handled") || strings.Contains(stderr.String(), "handled again") {
				t.Errorf("standard output is %q, standard error %q", stdout.String(), stderr.String())
			}
			said, _ := process(t, nil, "", "group", "describe", endpoint, "--app=a", store, "-o", "json")
			if at := strings.Index(said, "{"); at > 0 {
				said = said[at:]
			}
			var group struct {
				Workers []any
				Leases  []struct{ Shard, State string }
			}
			if err := json.Unmarshal([]byte(said), &group); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			if len(group.Workers) > 0 || len(group.Leases) != 2 {
				t.Errorf("after the end: %s", said)
			}
			for _, l := range group.Leases {
				if l.State != "free" {
					t.Errorf("the lease of %s is %s: %s", l.Shard, l.State, said)
				}
			}
		})
	}
}

// childOf returns the only child process of a process.
func childOf(pid int) int {
	said, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	if err != nil {
		return -1
	}
	var child int
	_ = json.Unmarshal(bytes.TrimSpace(said), &child)
	return child
}
