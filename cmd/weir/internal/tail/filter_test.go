package tail

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestTailFilters(t *testing.T) {
	t.Parallel()
	endpoint := clitest.KinesisWithOrders(t)
	file := filepath.Join(t.TempDir(), "pattern.json")
	if err := os.WriteFile(file, []byte(`{"Filters": [{"Pattern": "{\"data\":{\"kind\":[{\"prefix\":\"re\"}]}}"}]}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const one, two, three, four = `{"n":1,"kind":"order"}` + "\n", `{"n":2,"kind":"refund"}` + "\n", `{"n":3,"kind":"order"}` + "\n", `{"n":4,"kind":"return"}` + "\n"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--filter=" + clitest.JustOrders}, one + "no JSON\n" + three},
		{[]string{"--filter=" + clitest.JustOrders, "--filter-not-json=drop"}, one + three},
		{[]string{"--filter=" + clitest.JustOrders, "--filter-not-json=drop", "--limit=2"}, one + three},
		{[]string{"--filter=" + clitest.JustOrders, "--filter-not-json=drop", "--limit=1"}, one},
		{[]string{"--filter=@" + file, "--filter-not-json=drop"}, two + four},
		{[]string{"--filter=" + clitest.JustOrders, "--filter=@" + file, "--filter-not-json=drop"}, one + two + three + four},
		{[]string{`--filter={"partitionKey":["other"]}`}, ""},
	} {
		args := append([]string{"tail", endpoint, "--stream=s", "--until-tip"}, c.args...)
		if out := clitest.MustRun(t, "", args...); out != c.want {
			t.Errorf("%q: printed %q, want %q", c.args, out, c.want)
		}
	}
	out, said := clitest.MustExit(t, cli.ExitFailed, "tail", endpoint, "--stream=s", "--until-tip", "--filter="+clitest.JustOrders, "--filter-not-json=fail")
	if out != one || !strings.Contains(said, "is not JSON") {
		t.Errorf("printed %q, said %q", out, said)
	}
}
