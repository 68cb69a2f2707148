package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// scratchPrefix is the prefix of every directory that a demo creates. The demo removes only
// directories with this prefix.
const scratchPrefix = "weir-demo-"

func removeScratch(dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), scratchPrefix) {
		return fmt.Errorf("%s is not a directory of the demo", dir)
	}
	return os.RemoveAll(dir)
}

// abandonScratch removes the directory of a demo whose main process is gone. The demo's workers,
// including this one, may still be creating files in the directory. Each worker tries to remove it,
// and the first one succeeds.
func abandonScratch(dir string) {
	gone := dir + "-gone"
	if os.Rename(dir, gone) == nil { // after this, no process finds the directory
		_ = removeScratch(gone)
	}
}

// process is a worker process. Its state records whether the demo has stopped or killed it.
type process struct {
	name     string
	cmd      *exec.Cmd
	lifeline io.WriteCloser // standard input of the worker; the system closes it if this process dies
	started  time.Time
	ended    chan struct{} // closed when the process has ended, after err was set
	err      error
	state    atomic.Uint32 // contains a life
}

func (p *process) life() life     { return life(p.state.Load()) }
func (p *process) become(l life)  { p.state.Store(uint32(l)) }
func (p *process) wasAsked() bool { return p.life() >= stopping }

// startProcess starts a worker process: this program, with its hidden worker command.
func startProcess(command []string, dir, name string) (*process, error) {
	log, err := os.OpenFile(logPath(dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has its own copy
	p := &process{name: name, ended: make(chan struct{}), started: time.Now()}
	// The process ends only through stop or kill, not with a context.
	p.cmd = exec.CommandContext(context.Background(), command[0], command[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	ownGroup(p.cmd) // Ctrl-C is only for the demo, which then stops its workers
	if p.lifeline, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("worker %s cannot be started: %w", name, err)
	}
	go func() { // ended signals its end
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the process like a crash.
func (p *process) kill() error {
	p.become(killed)
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("worker %s cannot be killed: %w", p.name, err)
	}
	<-p.ended
	return nil
}

// stop asks the process to stop gracefully. The channel ended is closed when it has stopped.
func (p *process) stop() error {
	p.become(stopping)
	if err := askToStop(p); err != nil && p.alive() {
		return fmt.Errorf("worker %s cannot be stopped: %w", p.name, err)
	}
	return nil
}

// finish stops the process. If it does not stop within bound, finish kills it.
func (p *process) finish(ctx context.Context, bound time.Duration) error {
	if !p.alive() {
		return nil
	}
	if !p.wasAsked() {
		if err := p.stop(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	select {
	case <-p.ended:
		p.become(stopped)
		return nil
	case <-ctx.Done():
		err := p.kill()
		if err == nil {
			err = fmt.Errorf("worker %s did not stop within %v", p.name, bound)
		}
		return err
	}
}

// failure returns an error about a process that ended without a request from the demo.
func (p *process) failure(dir string) error {
	last := ""
	if f, err := os.Open(logPath(dir, p.name)); err == nil {
		defer func() { _ = f.Close() }()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			last = lines.Text()
		}
	}
	how := "without an error"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("worker %s ended by itself (%s); the last lines of its output: %.300s", p.name, how, last)
}
