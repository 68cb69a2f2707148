//go:build unix

package lambda_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
)

// commandFolder is the folder of the command weir.
var commandFolder = filepath.Join("..", "..", "..", "..", "cmd", "weir")

// built builds the command weir and returns its path.
func built(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "weir")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	cmd.Dir = commandFolder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// stage is a stream of flights, with the results of the functions.
type stage struct {
	server  *kinesistest.Server
	flights []put
	fails   map[int]string // how flights fail
	folder  string         // folder with the output of the functions
}

// newStage puts the first n flights into a stream. fails returns how a flight fails, or "" if it
// does not fail.
func newStage(t *testing.T, n, shards int, fails func(flight int) string) *stage {
	t.Helper()
	s := &stage{server: kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, NoLimits: true}), fails: map[int]string{}, folder: t.TempDir()}
	s.server.CreateStream("flights", shards)
	if err := os.Mkdir(s.path("failed"), 0o700); err != nil {
		t.Fatal(err)
	}
	packed, err := os.Open(filepath.Join(commandFolder, "internal", "demo", "flights.ndjson.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unpacked)
	for len(s.flights) < n && lines.Scan() {
		var about struct{ Origin string }
		if err := json.Unmarshal(lines.Bytes(), &about); err != nil {
			t.Fatal(err)
		}
		i := len(s.flights)
		head := fmt.Sprintf(`{"flight":%d,`, i)
		if how := fails(i); how != "" {
			head += fmt.Sprintf(`"fails":%q,`, how)
			s.fails[i] = how
		}
		_, sequence := s.server.Put("flights", about.Origin, append([]byte(head), lines.Bytes()[1:]...))
		s.flights = append(s.flights, put{about.Origin, sequence})
	}
	if len(s.flights) != n {
		t.Fatalf("%d flights, %v", len(s.flights), lines.Err())
	}
	return s
}

func (s *stage) path(name string) string { return filepath.Join(s.folder, name) }

// effects returns the results of the functions so far.
func (s *stage) effects(t *testing.T) (effects []effect) {
	t.Helper()
	text, err := os.ReadFile(s.path("handled"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // incomplete line
		}
		var e effect
		if _, err := fmt.Sscanf(string(line), "%d %s %s\n", &e.flight, &e.key, &e.sequence); err != nil {
			t.Fatalf("a function wrote %q: %v", line, err)
		}
		effects = append(effects, e)
	}
	return effects
}

// letters returns the dead letters of flights so far.
func (s *stage) letters(t *testing.T) map[int][]deadletter.Letter {
	t.Helper()
	text, err := os.ReadFile(s.path("dead.ndjson"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	letters := map[int][]deadletter.Letter{}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // incomplete line
		}
		var letter deadletter.Letter
		var flight struct{ Flight int }
		if err := errors.Join(json.Unmarshal(line, &letter), json.Unmarshal(letter.Data, &flight)); err != nil {
			t.Fatalf("no letter: %v: %s", err, line)
		}
		letters[flight.Flight] = append(letters[flight.Flight], letter)
	}
	return letters
}

// worker is a process of weir.
type worker struct {
	cmd    *exec.Cmd
	log    *os.File
	exited chan error // receives one result
}

// start starts weir with functions, in a folder. It sets --outage-grace to 0, because if a flight
// always fails, there may be no other flight left that could succeed.
func (s *stage) start(t *testing.T, weir, folder string, flags ...string) worker {
	t.Helper()
	log, err := os.OpenFile(s.path("said"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	w := worker{log: log, exited: make(chan error, 1), cmd: exec.CommandContext(t.Context(), weir, append([]string{
		"consume", "--endpoint=" + s.server.URL(), "--stream=flights", "--app=loader", "--store=sqlite:" + s.path("leases.db"),
		"--dead=file:" + s.path("dead.ndjson"), "--outage-grace=0",
	}, flags...)...)}
	w.cmd.Dir = folder
	w.cmd.Env = append(w.cmd.Environ(), "AWS_REGION="+servers.Region, "AWS_ACCESS_KEY_ID="+servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+servers.SecretAccessKey,
		"FLIGHTS_HANDLED="+s.path("handled"), "FLIGHTS_FAILED="+s.path("failed"))
	w.cmd.Stdout, w.cmd.Stderr = log, log
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { w.exited <- w.cmd.Wait() }() // ends with the process, and end waits for it
	return w
}

// end ends a worker with a signal and returns the result of its process.
func (w worker) end(t *testing.T, by os.Signal) error {
	t.Helper()
	defer w.log.Close()
	if err := w.cmd.Process.Signal(by); err != nil {
		t.Error(err)
	}
	return <-w.exited
}

// await waits until n flights are handled or have a dead letter.
func (s *stage) await(t *testing.T, w worker, n int) {
	t.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	late := time.After(3 * time.Minute)
	for {
		select {
		case err := <-w.exited:
			t.Fatalf("weir ended: %v\n%s", err, s.end())
		case <-late:
			t.Errorf("not all flights are handled or in a letter:\n%s", s.end())
			return
		case <-look.C:
			through := map[int]bool{}
			for _, e := range s.effects(t) {
				through[e.flight] = true
			}
			for flight := range s.letters(t) {
				through[flight] = true
			}
			if len(through) >= n {
				return
			}
		}
	}
}

// run runs functions on all flights. It returns the output of weir and the functions, and the
// duration.
func (s *stage) run(t *testing.T, weir, folder string, flags ...string) (said string, took time.Duration) {
	t.Helper()
	began := time.Now()
	w := s.start(t, weir, folder, flags...)
	s.await(t, w, len(s.flights))
	took = time.Since(began)
	if err := w.end(t, syscall.SIGINT); err != nil {
		t.Errorf("weir, asked to end: %v", err)
	}
	text, err := os.ReadFile(s.path("said"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text), took
}

// end returns the last part of the output of weir and its functions.
func (s *stage) end() string {
	text, _ := os.ReadFile(s.path("said")) // for the user
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// check fails the test unless all flights are handled in order. A flight that always fails must
// have a dead letter instead. A flight that fails once must have failed.
func (s *stage) check(t *testing.T, stops bool) map[int][]deadletter.Letter {
	t.Helper()
	effects, letters := s.effects(t), s.letters(t)
	var numbers []int
	for flight, copies := range letters {
		for range copies {
			numbers = append(numbers, flight)
		}
	}
	for _, problem := range judge(s.flights, effects, numbers, stops) {
		t.Error(problem)
	}
	for flight, how := range s.fails {
		_, failed := os.Stat(s.path(filepath.Join("failed", fmt.Sprint(flight))))
		if always := strings.HasSuffix(how, "always"); always != slices.Contains(numbers, flight) {
			t.Errorf("flight %d fails %s, and dead letters are of %v", flight, how, numbers)
		} else if !always && failed != nil {
			t.Errorf("flight %d has not failed: %v", flight, failed)
		}
	}
	t.Logf("%d flights were handled %d times, and %d have dead letters", len(s.flights), len(effects), len(numbers))
	return letters
}
