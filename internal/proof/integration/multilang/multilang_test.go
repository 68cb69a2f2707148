//go:build unix

// Package multilang_test runs programs that use amazon_kclpy and aws-kcl with weir multilang. Three
// daemons handle flights while shards are split and merged, and while a program and a daemon are
// killed.
package multilang_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

const (
	stream  = "flights"
	flights = 20_000
	daemons = 3
)

// buildWeir builds the command and returns its path.
func buildWeir(t *testing.T) string {
	t.Helper()
	weir := filepath.Join(t.TempDir(), "weir")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", weir, ".")
	build.Dir = "../../../../cmd/weir"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return weir
}

func TestSampleProgramsHandleAllFlights(t *testing.T) {
	weir := buildWeir(t)
	libraries := servers.MultiLang(t)
	python := filepath.Join(libraries, "python", "bin", "python")
	own, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	kclpy3, kclpy1 := filepath.Join(libraries, "amazon_kclpy-3.1.3"), filepath.Join(libraries, "amazon_kclpy-1.5.1")
	for _, c := range []struct{ name, script, protocol string }{
		{
			name: "amazon_kclpy 3.1.3", protocol: "kcl2",
			script: "export PYTHONPATH=" + kclpy3 + " PYTHONUNBUFFERED=1\nexec " + python + " -B " +
				filepath.Join(kclpy3, "samples", "sample_kclpy_app.py") + ` 2>"$OUTPUT/$$"`,
		},
		{
			name: "amazon_kclpy 1.5.1", protocol: "kcl1",
			script: "export PYTHONPATH=" + kclpy1 + "\nexec " + python + " -B " + filepath.Join(own, "app.py"),
		},
		{
			name: "aws-kcl 2.3.2", protocol: "kcl2",
			script: "export NODE_PATH=" + filepath.Join(libraries, "node_modules") + "\nexec node " + filepath.Join(own, "app.js"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, weir, "#!/bin/sh\n"+c.script+"\n")
			s.protocol = c.protocol
			s.play(t)
		})
	}
}

// stage is a stream of flights, and the daemons that handle it.
type stage struct {
	srv     *kinesistest.Server
	weir    string
	dir     string
	daemons []*exec.Cmd

	protocol string         // --protocol
	seen     map[string]int // the step in which a sequence number was first in the output
	times    map[string]int // how often it was in the output
	read     map[string]int // bytes of each output that were read
	order    map[string]string
	step     int
	wrong    []string
}

func newStage(t *testing.T, weir, script string) *stage {
	t.Helper()
	s := &stage{
		srv: kinesistest.NewServer(t), weir: weir, dir: t.TempDir(),
		seen: map[string]int{}, times: map[string]int{}, read: map[string]int{}, order: map[string]string{},
	}
	s.srv.CreateStream(stream, 3)
	for name, text := range map[string]string{
		"program": script,
		"app.properties": "executableName = " + filepath.Join(s.dir, "program") + "\nstreamName = " + stream +
			"\napplicationName = app\nAwsCredentialsProvider = DefaultCredentialsProvider\ninitialPositionInStream = TRIM_HORIZON\n" +
			"retrievalMode = POLLING\nidleTimeBetweenReadsInMillis = 200\nmaxRecords = 100\nkinesisEndpoint = " + s.srv.URL() + "\nregionName = us-east-1\n",
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.dir, "output"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// startDaemon starts a daemon. It is killed at the end of the test.
func (s *stage) startDaemon(t *testing.T) {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, fmt.Sprintf("log-%d", len(s.daemons))))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(s.weir, "multilang", "--properties", filepath.Join(s.dir, "app.properties"), "--store", "sqlite:"+filepath.Join(s.dir, "app.db"), "--protocol", s.protocol)
	cmd.Env = append(os.Environ(), "OUTPUT="+filepath.Join(s.dir, "output"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.daemons = append(s.daemons, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
	})
}

// put puts flights into the stream.
func (s *stage) put(t *testing.T, lines []string) {
	t.Helper()
	for _, line := range lines {
		_, rest, _ := strings.Cut(line, `"origin":"`)
		key, _, _ := strings.Cut(rest, `"`)
		s.srv.Put(stream, key, []byte(line))
	}
}

var handled = regexp.MustCompile(`Partition Key: ([^,]*), Sequence Number: (\d+), Sub`)

// look reads what the programs have written since the last look.
func (s *stage) look(t *testing.T) {
	t.Helper()
	s.step++
	files, err := filepath.Glob(filepath.Join(s.dir, "output", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		part := text[s.read[f]:]
		for _, m := range handled.FindAllSubmatchIndex(part, -1) {
			key, sequence := string(part[m[2]:m[3]]), string(part[m[4]:m[5]])
			if s.times[sequence]++; s.times[sequence] == 1 {
				s.seen[sequence] = s.step
			}
			before := s.order[f+key]
			if before != "" && shard.CompareSequence(before, sequence) >= 0 {
				s.wrong = append(s.wrong, fmt.Sprintf("%s after %s in one process", sequence, before))
			}
			s.order[f+key] = sequence
		}
		if all := handled.FindAllIndex(part, -1); len(all) > 0 {
			s.read[f] += all[len(all)-1][1]
		}
	}
}

// await waits until the programs have handled n different records.
func (s *stage) await(t *testing.T, n int) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if s.look(t); len(s.seen) >= n {
			return
		}
		if time.Since(began) > 2*time.Minute {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log-0"))
			t.Fatalf("only %d of %d records were handled; the first daemon says:\n%.4000s", len(s.seen), n, log)
		}
	}
}

// killProgram kills a process of the program that is alive.
func (s *stage) killProgram(t *testing.T) {
	t.Helper()
	for _, f := range slices.Sorted(maps.Keys(s.read)) {
		pid, _ := strconv.Atoi(filepath.Base(f))
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			return
		}
	}
	t.Fatal("no program is alive")
}

// play runs the whole story, and checks its outcome.
func (s *stage) play(t *testing.T) {
	packed, err := os.Open("../../../../cmd/weir/internal/demo/flights.ndjson.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")[:flights]
	part := flights / 5
	for range daemons {
		s.startDaemon(t)
	}
	began := time.Now()
	s.put(t, lines[:part])
	s.await(t, part/2)
	lower, upper := s.srv.Split(stream, "shardId-000000000000")
	s.put(t, lines[part:2*part])
	s.await(t, part*3/2)
	s.killProgram(t)
	s.put(t, lines[2*part:3*part])
	s.await(t, part*5/2)
	s.srv.Merge(stream, lower, upper)
	s.put(t, lines[3*part:4*part])
	s.await(t, part*7/2)
	if err := s.daemons[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.put(t, lines[4*part:])
	s.await(t, flights)
	took := time.Since(began)
	for _, d := range s.daemons[1:] {
		if err := d.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	for i, d := range s.daemons[1:] {
		if err := d.Wait(); err != nil {
			log, _ := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("log-%d", i+1)))
			t.Errorf("a daemon that was stopped: %v\n%.4000s", err, log)
		}
	}
	s.look(t)
	s.judge(t, took)
}

// judge compares the output with the stream.
func (s *stage) judge(t *testing.T, took time.Duration) {
	t.Helper()
	byKey := map[string][]string{}
	lost := 0
	for _, r := range s.srv.Records(stream) {
		byKey[r.PartitionKey] = append(byKey[r.PartitionKey], r.SequenceNumber)
		if s.times[r.SequenceNumber] == 0 {
			lost++
		}
	}
	disorder := slices.Clone(s.wrong)
	for key, all := range byKey {
		slices.SortFunc(all, shard.CompareSequence)
		for i := 1; i < len(all); i++ {
			if s.seen[all[i]] < s.seen[all[i-1]] {
				disorder = append(disorder, fmt.Sprintf("key %s: %s before %s", key, all[i], all[i-1]))
			}
		}
	}
	repeated := 0
	for _, n := range s.times {
		repeated += n - 1
	}
	t.Logf("%d flights in %v: %d lost, %d out of order in %d keys, %d handled again after two kills",
		len(s.times), took.Round(time.Second), lost, len(disorder), len(byKey), repeated)
	if lost > 0 || len(disorder) > 0 || len(s.times) != flights {
		t.Errorf("lost: %d; out of order: %.1000s", lost, strings.Join(disorder, "; "))
	}
	logs := ""
	for i := range s.daemons {
		log, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("log-%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		logs += string(log)
	}
	if !strings.Contains(logs, "the program is started again at the last checkpoint") {
		t.Errorf("no log reports the killed program:\n%.4000s", logs)
	}
}
