package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestHeedSignals(t *testing.T) {
	type at struct {
		after time.Duration
		is    os.Signal
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		sent []at
		stop time.Duration // when stop was called; negative if it was not
		code int           // exit code of an immediate end; 0 if there was none
		when time.Duration
	}{
		{"no signal", nil, -1, 0, 0},
		{"one", []at{{5 * ms, syscall.SIGTERM}}, 5 * ms, 0, 0},
		{"two in the same instant", []at{{0, syscall.SIGTERM}, {0, syscall.SIGTERM}}, 0, 0, 0},
		{"two, 2 ms apart", []at{{0, os.Interrupt}, {2 * ms, os.Interrupt}}, 0, 0, 0},
		{"two, 20 ms apart, of different kinds", []at{{0, os.Interrupt}, {20 * ms, syscall.SIGTERM}}, 0, 0, 0},
		{"five within the second", []at{{0, os.Interrupt}, {200 * ms, os.Interrupt}, {400 * ms, os.Interrupt}, {600 * ms, os.Interrupt}, {999 * ms, os.Interrupt}}, 0, 0, 0},
		{"a second one after a second", []at{{0, os.Interrupt}, {1000 * ms, os.Interrupt}}, 0, 130, 1000 * ms},
		{"a second one after a minute", []at{{0, os.Interrupt}, {60000 * ms, syscall.SIGTERM}}, 0, 143, 60000 * ms},
		{"twice, and once more later", []at{{0, syscall.SIGTERM}, {20 * ms, syscall.SIGTERM}, {1500 * ms, os.Interrupt}}, 0, 130, 1500 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, signals := time.Now(), make(chan os.Signal, 4)
				stop, when, code, stops := time.Duration(-1), time.Duration(0), 0, 0
				done := make(chan struct{})
				go func() {
					defer close(done)
					heedSignals(signals, func() { stop = time.Since(began); stops++ }, func(s os.Signal) { code, when = exitCode(s), time.Since(began) })
				}()
				for _, s := range c.sent {
					time.Sleep(s.after - time.Since(began))
					signals <- s.is
				}
				synctest.Wait()
				if stop != c.stop || code != c.code || when != c.when || stops > 1 {
					t.Errorf("stopped %d times, at %v, ended with %d at %v; want %v, %d, %v", stops, stop, code, when, c.stop, c.code, c.when)
				}
				if len(c.sent) == 0 {
					signals <- os.Interrupt
				}
				if code == 0 {
					time.Sleep(2 * time.Second)
					signals <- os.Interrupt
				}
				<-done
			})
		})
	}
}

// Only main.go receives signals, for all commands.
func TestOnlyOneFileListensToSignals(t *testing.T) {
	t.Parallel()
	if found := filesWith(t, "signal.Notify", "signal.NotifyContext"); !slices.Equal(found, []string{"main.go"}) {
		t.Errorf("signals are received in %v", found)
	}
}

// filesWith returns the files of the command that contain one of the texts. It skips tests and the
// packages below internal.
func filesWith(t *testing.T, texts ...string) (found []string) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		has := func(s string) bool { return strings.Contains(string(text), s) }
		if !strings.HasSuffix(name, "_test.go") && slices.ContainsFunc(texts, has) {
			found = append(found, name)
		}
	}
	return found
}

// Standard error may be a full pipe that nobody reads, so that each write blocks. A signal must
// still have its effect.
func TestASignalDoesNotWaitForStandardError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan struct{})
		began := time.Now()
		briefly(func() { <-read })
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		close(read)
		said := false
		briefly(func() { said = true })
		if !said {
			t.Error("what can be said at once was not said")
		}
	})
}
