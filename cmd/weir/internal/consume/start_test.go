package consume

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestConsumeMakesItsStreamsWhenAsked(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	c := clitest.Start(t, "", "consume", endpoint, "--stream=one", "--stream=two", "--create-stream=2", "--app=a", store)
	c.Err.Await(t, "both streams", func(s string) bool {
		return strings.Contains(s, "stream one is made") && strings.Contains(s, "stream two is made")
	})
	for _, name := range []string{"one", "two"} {
		if n := len(server.OpenShards(name)); n != 2 {
			t.Errorf("stream %s has %d shards", name, n)
		}
	}
	server.Put("one", "k", []byte("hello"))
	c.Out.Await(t, "the record", func(s string) bool { return s == "hello\n" })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
	again := clitest.Start(t, "", "consume", endpoint, "--stream=one", "--create-stream=3", "--app=a", store)
	again.Err.Await(t, "what is different", func(s string) bool {
		return strings.Contains(s, "stream one is left as it is, although it has 2 open shards, not 3")
	})
	again.Interrupt(t)
}

// With two workers, a split and a merge, every line is printed. The lines of each key are in order
// across both workers.
func TestConsumeThroughSplitsAndMerges(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 4)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	out := clitest.NewOutput()
	var workers []*clitest.Command
	for i := range 2 {
		workers = append(workers, clitest.StartTo(t, out, strings.NewReader(""), "consume", endpoint, store, "--stream=s", "--app=a", fmt.Sprint("--worker=w", i)))
	}
	text, lines := clitest.Numbered(200)
	first, second := text[:strings.Index(text, lines[100])], text[strings.Index(text, lines[100]):]
	clitest.MustRun(t, first, "put", endpoint, "--stream=s", "--key=key")
	open := server.OpenShards("s")
	server.Split("s", open[0])
	server.Merge("s", open[1], open[2])
	clitest.MustRun(t, second, "put", endpoint, "--stream=s", "--key=key")

	out.Await(t, "all records", func(s string) bool { return strings.Count(s, "\n") >= 200 })
	clitest.CheckOrder(t, out.Lines(), lines)
	for _, w := range workers {
		if code := w.Interrupt(t); code != cli.ExitDone {
			t.Errorf("a worker ended with %d: %s", code, w.Err)
		}
	}
}

func TestConsumeFilters(t *testing.T) {
	endpoint := clitest.KinesisWithOrders(t)
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.ndjson")
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=sqlite:"+filepath.Join(dir, "a.db"), "--filter="+clitest.JustOrders,
		"--filter-not-json=fail", "--dead=file:"+dead)
	c.Out.Await(t, "the last record", func(s string) bool { return strings.Contains(s, `"n":3`) })
	c.Interrupt(t)
	if out := c.Out.String(); out != `{"n":1,"kind":"order"}`+"\n"+`{"n":3,"kind":"order"}`+"\n" {
		t.Errorf("printed %q", out)
	}
	text, err := os.ReadFile(dead)
	if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), "not JSON") || !strings.Contains(string(text), "rejected") {
		t.Errorf("letters %s, %v", text, err)
	}
}
