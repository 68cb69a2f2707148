//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/local"
)

// readmeBlocks contains the code blocks of README.md in order, identified by their first words.
// Each has a function that runs it, or a reason why it is not run.
var readmeBlocks = []struct {
	begins string
	run    func(r *readme, script string)
	why    string
}{
	{begins: "go run ./cmd/weir demo", why: "it takes 40 s, and TestDemo runs it with fewer flights; make test runs this test"},
	{begins: "go mod edit -replace", why: "it needs the network; make install-check builds a module with it"},
	{begins: "go install ./cmd/weir", run: (*readme).install},
	{begins: "weir local", run: (*readme).serve},
	{begins: "echo", run: (*readme).put},
	{begins: "export AWS_ENDPOINT", run: (*readme).work},
}

// The commands in the README work as shown, in a clone of the repository and with only Go
// installed.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	r := &readme{t: t, dir: t.TempDir(), port: "4567", path: pathWithoutWeir()}
	program, err := os.ReadFile("internal/example/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if _, code, _ := strings.Cut(string(program), "package main"); !strings.Contains(string(text), "```go\npackage main"+code+"```\n") {
		t.Error("the README's program differs from internal/example/main.go")
	}
	blocks := indented(string(text))
	for i, block := range blocks {
		if i >= len(readmeBlocks) || !strings.HasPrefix(block, readmeBlocks[i].begins) {
			t.Fatalf("this test does not know what to do with block %d of the README:\n%s", i+1, block)
		}
		if known := readmeBlocks[i]; known.run != nil {
			known.run(r, block)
		} else {
			t.Logf("not run, because %s: %q", known.why, block)
		}
	}
	if len(blocks) != len(readmeBlocks) {
		t.Errorf("the README has %d blocks, want %d", len(blocks), len(readmeBlocks))
	}
	for _, c := range slices.Backward(r.lasting) {
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("%s: after Ctrl-C: %v; %s", c.Args[2], err, c.Stdout)
		}
	}
}

// pathWithoutWeir returns the PATH of a user who has not installed weir.
func pathWithoutWeir() string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	dirs = slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "weir"))
		return err == nil
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// indented returns the code blocks of a Markdown text that are marked by indentation.
func indented(text string) (blocks []string) {
	var block []string
	fenced := false
	for line := range strings.Lines(text + "\n\n") {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		code, is := strings.CutPrefix(line, "    ")
		if is && !fenced {
			block = append(block, code)
		} else if len(block) > 0 {
			blocks = append(blocks, strings.Join(block, "\n"))
			block = nil
		}
	}
	return blocks
}

// readme follows the instructions of the README.
type readme struct {
	t       *testing.T
	dir     string // working directory
	path    string // PATH of the commands
	port    string // port of the Kinesis server
	lasting []*exec.Cmd
}

// shell returns a command that runs a script in a directory.
func (r *readme) shell(dir, script string) *exec.Cmd {
	cmd := exec.CommandContext(r.t.Context(), "sh", "-ec", strings.ReplaceAll(script, ":4567", ":"+r.port))
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	cmd.Env = append(os.Environ(), "PATH="+r.path, "GOPATH="+r.dir, "GOBIN=", "GOWORK=")
	return cmd
}

// lasts starts a command that runs until Ctrl-C. It replaces the shell by the command, so that the
// command receives the signal.
func (r *readme) lasts(script string) *clitest.Output {
	out := clitest.NewOutput()
	if at := strings.LastIndex(script, "\n") + 1; at > 0 { // settings precede the command
		script = script[:at] + "exec " + script[at:]
	} else {
		script = "exec " + script
	}
	cmd := r.shell(r.dir, script)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		r.t.Fatalf("%s: %v", script, err)
	}
	// The command has already ended, unless the test failed.
	r.t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	r.lasting = append(r.lasting, cmd)
	return out
}

// install runs the block in the clone, and then uses the PATH that the block created. The module
// cache is shared, so no network is needed.
func (r *readme) install(script string) {
	modules, err := exec.CommandContext(r.t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := r.shell("../..", script+"\ncommand -v weir >&2\necho \"$PATH\"")
	cmd.Env = append(cmd.Env, "GOMODCACHE="+strings.TrimSpace(string(modules)))
	var said strings.Builder
	cmd.Stderr = &said
	path, err := cmd.Output()
	if err != nil || !strings.HasSuffix(said.String(), filepath.Join(r.dir, "bin", "weir")+"\n") {
		r.t.Fatalf("%s: %v; %s", script, err, &said)
	}
	r.path = strings.TrimSpace(string(path))
}

// serve runs an embedded Kinesis on a free port, instead of the port in the README.
func (r *readme) serve(script string) {
	if addr := local.Command(cli.Terminal{}).Flags().Lookup("addr").DefValue; addr != "127.0.0.1:"+r.port {
		r.t.Errorf("the README calls port %s, and weir local listens on %s", r.port, addr)
	}
	out := r.lasts(strings.Replace(script, "weir local", "weir local --addr 127.0.0.1:0", 1))
	out.Await(r.t, "the welcome", func(s string) bool { return strings.Contains(s, "Stream flights has 4 shards") })
	found := regexp.MustCompile(`http://127\.0\.0\.1:(\d+)`).FindStringSubmatch(out.String())
	if found == nil {
		r.t.Fatalf("no endpoint in %s", out)
	}
	r.port = found[1]
}

func (r *readme) put(script string) {
	if out := r.shows(script); !strings.Contains(out, "1 record") {
		r.t.Errorf("%s: %s", script, out)
	}
}

func (r *readme) work(script string) {
	r.lasts(script).Await(r.t, "the flights", func(s string) bool { return strings.Count(s, `"origin"`) == 1 })
}

// shows runs a script that ends by itself, and returns its output.
func (r *readme) shows(script string) string {
	out, err := r.shell(r.dir, script).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v; %s", script, err, out)
	}
	return string(out)
}
