package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// filtered is a server with a stream of some records, one of them no JSON.
func filtered(t *testing.T) (endpoint string) {
	t.Helper()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	for _, data := range []string{`{"n":1,"kind":"order"}`, `{"n":2,"kind":"refund"}`, `no JSON`, `{"n":3,"kind":"order"}`, `{"n":4,"kind":"return"}`} {
		server.Put("s", "k", []byte(data))
	}
	return endpoint
}

const justOrders = `{"data":{"kind":["order"]}}`

func TestTailFilters(t *testing.T) {
	t.Parallel()
	endpoint := filtered(t)
	file := filepath.Join(t.TempDir(), "pattern.json")
	if err := os.WriteFile(file, []byte(`{"Filters": [{"Pattern": "{\"data\":{\"kind\":[{\"prefix\":\"re\"}]}}"}]}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const one, two, three, four = `{"n":1,"kind":"order"}` + "\n", `{"n":2,"kind":"refund"}` + "\n", `{"n":3,"kind":"order"}` + "\n", `{"n":4,"kind":"return"}` + "\n"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--filter=" + justOrders}, one + "no JSON\n" + three},
		{[]string{"--filter=" + justOrders, "--filter-not-json=drop"}, one + three},
		{[]string{"--filter=" + justOrders, "--filter-not-json=drop", "--limit=2"}, one + three},
		{[]string{"--filter=" + justOrders, "--filter-not-json=drop", "--limit=1"}, one},
		{[]string{"--filter=@" + file, "--filter-not-json=drop"}, two + four},
		{[]string{"--filter=" + justOrders, "--filter=@" + file, "--filter-not-json=drop"}, one + two + three + four},
		{[]string{`--filter={"partitionKey":["other"]}`}, ""},
	} {
		args := append([]string{"tail", endpoint, "--stream=s", "--until-tip"}, c.args...)
		if out := clitest.MustRun(t, "", args...); out != c.want {
			t.Errorf("%q: printed %q, want %q", c.args, out, c.want)
		}
	}
	out, said := clitest.MustExit(t, cli.ExitFailed, "tail", endpoint, "--stream=s", "--until-tip", "--filter="+justOrders, "--filter-not-json=fail")
	if out != one || !strings.Contains(said, "is not JSON") {
		t.Errorf("printed %q, said %q", out, said)
	}
}

func TestConsumeFilters(t *testing.T) {
	endpoint := filtered(t)
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.ndjson")
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=sqlite:"+filepath.Join(dir, "a.db"), "--filter="+justOrders,
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
