package consume

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// emfOf decodes the lines of a text that are in the embedded metric format.
func emfOf(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"_aws"`) {
			all = append(all, clitest.Decode[map[string]any](t, line))
		}
	}
	return all
}

func TestConsumeWritesMetricsForCloudWatch(t *testing.T) {
	for _, c := range []struct{ name, namespace string }{{"stderr", "a"}, {"file", "shop/a"}} {
		t.Run(c.name, func(t *testing.T) {
			server, endpoint := clitest.Kinesis(t)
			server.CreateStream("s", 1)
			for i := range 10 {
				server.Put("s", fmt.Sprint(i), []byte("x\n"))
			}
			file := filepath.Join(t.TempDir(), "metrics")
			args := []string{"consume", endpoint, "--store=memory:", "--stream=s", "--app=a", "--worker=w1"}
			if c.name == "file" {
				args = append(args, "--metrics-emf=file:"+file, "--metrics-namespace=shop/a", "--metrics-by-shard=false")
			} else {
				args = append(args, "--metrics-emf=stderr")
			}
			x := clitest.Start(t, "", args...)
			x.Out.Await(t, "the records", func(s string) bool { return strings.Count(s, "x") == 10 })
			if code := x.Interrupt(t); code != cli.ExitDone {
				t.Fatalf("exit code %d, %s", code, x.Err)
			}
			text := x.Err.String()
			if c.name == "file" {
				if len(emfOf(t, text)) > 0 {
					t.Errorf("on standard error too: %s", text)
				}
				written, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				text = string(written)
			}
			records := 0.0
			for _, line := range emfOf(t, text) {
				if got := fmt.Sprint(line["_aws"]); !strings.Contains(got, "Namespace:"+c.namespace) {
					t.Errorf("of another namespace: %s", got)
				}
				if n, some := line["RecordsProcessed"]; some {
					records += n.(float64)
					if shard, by := line["ShardId"]; by != (c.name == "stderr") || line["Operation"] != "ProcessTask" {
						t.Errorf("shard %v: %v", shard, line)
					}
				}
			}
			if records != 10 {
				t.Errorf("%v records: %s", records, text)
			}
		})
	}
}

func TestWrongFlagsOfMetricsForCloudWatch(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	args := []string{"consume", endpoint, "--stream=s", "--store=memory:"}
	for _, c := range []struct {
		more string
		code int
		want string
	}{
		{"--app=a --metrics-emf=stdout", cli.ExitUsage, `--metrics-emf "stdout": want stderr, or file:PATH`},
		{"--app=a --metrics-emf=file:", cli.ExitUsage, `--metrics-emf "file:": want`},
		{"--app=a --metrics-namespace=x", cli.ExitUsage, "add --metrics-emf stderr"},
		{"--app=a --metrics-emf=stderr --metrics-namespace=AWS/x", cli.ExitUsage, `--metrics-namespace: Namespace "AWS/x"`},
		{"--app=größe --metrics-emf=stderr", cli.ExitUsage, "unless --metrics-namespace is set"},
		{"--app=a --metrics-emf=file:" + filepath.Join(t.TempDir(), "none", "x"), cli.ExitFailed, "--metrics-emf: open "},
	} {
		if _, said := clitest.MustExit(t, c.code, append(args, strings.Fields(c.more)...)...); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", c.more, said)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A worker that cannot write its metrics logs this once and keeps running.
func TestLinesThatCannotBeWrittenAreToldOnce(t *testing.T) {
	var said bytes.Buffer
	w := &emfWriter{Writer: fullDisk{}, t: cli.Terminal{Err: &said}}
	for range 3 {
		if n, err := w.Write([]byte("line\n")); n != 5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "--metrics-emf: lines are lost: no space left") {
		t.Error(text)
	}
}
