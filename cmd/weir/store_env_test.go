package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// The environment sets the store if the command line does not. Its value is never shown.
func TestTheStoreOfTheEnvironment(t *testing.T) {
	file := "sqlite:" + filepath.Join(t.TempDir(), "a.db")
	t.Setenv(cli.StoreVariable, file)
	clitest.MustRun(t, `{"weir":"progress","version":1,"app":"billing","leases":0,"paused":["s"]}`, "group", "import", "--app=billing", "--store="+file, "--yes", "-")
	if out := clitest.MustRun(t, "", "group", "list"); !strings.Contains(out, "billing") {
		t.Errorf("group list: %s", out)
	}
	if out := clitest.MustRun(t, "", "__complete", "group", "describe", "--app", ""); !strings.HasPrefix(out, "billing") {
		t.Errorf("completion: %s", out)
	}
	other := "sqlite:" + filepath.Join(t.TempDir(), "b.db")
	clitest.MustRun(t, "", "store", "create", "--store="+other)
	if out := clitest.MustRun(t, "", "group", "list", "--store="+other); strings.Contains(out, "billing") {
		t.Errorf("--store does not come first: %s", out)
	}
	if _, said := clitest.MustExit(t, cli.ExitUsage, "group", "list", "--store="); !strings.Contains(said, "--store is blank") {
		t.Errorf("with an empty --store: %s", said)
	}

	const planted = "Pl4ntedS3cr3t"
	t.Setenv(cli.StoreVariable, "postgres://weir:"+planted+"@127.0.0.1:1")
	_, said := clitest.MustExit(t, cli.ExitUsage, "group", "list")
	if !strings.Contains(said, "WEIR_STORE postgres://") || strings.Contains(said, planted) {
		t.Errorf("a wrong one: %s", said)
	}
	for _, args := range [][]string{{"group", "list", "--help"}, {"consume", "--help"}, {"store", "create", "--help"}, {"__complete", "group", "list", "--"}, {"__complete", "group", "list", "--store", ""}} {
		if out := clitest.MustRun(t, "", args...); strings.Contains(out, planted) {
			t.Errorf("%q shows the password: %s", args, out)
		}
	}
}
