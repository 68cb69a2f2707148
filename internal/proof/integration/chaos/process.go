package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// life is one process of a worker. For example, w2.3 is the third process of worker w2.
type life struct {
	name     string
	cmd      *exec.Cmd
	lifeline io.Closer // standard input of the process; it closes if this process dies
	logged   string    // path of the log
	ended    chan struct{}
	err      error // result of the process; set before ended is closed
	asked    atomic.Bool
}

// startLife starts a worker process.
func startLife(told worker, dir string) (*life, error) {
	text, err := json.Marshal(told)
	if err != nil {
		return nil, err
	}
	l := &life{name: told.Life, ended: make(chan struct{}), logged: filepath.Join(dir, told.Life+".log")}
	log, err := os.OpenFile(l.logged, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	l.cmd = exec.CommandContext(context.Background(), self) // the process ends by a signal, not by a context
	l.cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	l.cmd.Stdout, l.cmd.Stderr = log, log
	l.cmd.SysProcAttr = attributes()
	if l.lifeline, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := l.cmd.Start(); err != nil {
		return nil, fmt.Errorf("worker %s cannot be started: %w", l.name, err)
	}
	go func() { // ended signals its end
		l.err = l.cmd.Wait()
		close(l.ended)
	}()
	return l, nil
}

func (l *life) alive() bool {
	select {
	case <-l.ended:
		return false
	default:
		return true
	}
}

func (l *life) signal(s syscall.Signal) error {
	if err := l.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("worker %s: %w", l.name, err)
	}
	return nil
}

// kill kills the process, like a crash.
func (l *life) kill() error {
	l.asked.Store(true)
	if err := l.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-l.ended
	return nil
}

// stop stops the process, like a deployment.
func (l *life) stop() error {
	l.asked.Store(true)
	return l.signal(syscall.SIGTERM)
}

// wait waits until the process has ended, and kills it after a timeout. The error reports an
// unexpected end.
func (l *life) wait(bound time.Duration) error {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-l.ended:
		if l.err != nil {
			return fmt.Errorf("worker %s stopped with %w; it said last: %s", l.name, l.err, l.lastWords())
		}
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("worker %s did not stop within %v", l.name, bound), l.kill())
	}
}

// lastWords returns the end of the process's log.
func (l *life) lastWords() string {
	text, err := os.ReadFile(l.logged)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
