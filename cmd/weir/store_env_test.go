package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The environment names the store where the command line does not, and is never shown.
func TestTheStoreOfTheEnvironment(t *testing.T) {
	file := "sqlite:" + filepath.Join(t.TempDir(), "a.db")
	t.Setenv(storeVariable, file)
	mustRun(t, `{"weir":"progress","version":1,"app":"billing","leases":0,"paused":["s"]}`, "group", "import", "--app=billing", "--store="+file, "--yes", "-")
	if out := mustRun(t, "", "group", "list"); !strings.Contains(out, "billing") {
		t.Errorf("group list: %s", out)
	}
	if out := mustRun(t, "", "__complete", "group", "describe", "--app", ""); !strings.HasPrefix(out, "billing") {
		t.Errorf("completion: %s", out)
	}
	other := "sqlite:" + filepath.Join(t.TempDir(), "b.db")
	mustRun(t, "", "store", "create", "--store="+other)
	if out := mustRun(t, "", "group", "list", "--store="+other); strings.Contains(out, "billing") {
		t.Errorf("--store does not come first: %s", out)
	}
	if _, said := refused(t, exitUsage, "group", "list", "--store="); !strings.Contains(said, "--store is blank") {
		t.Errorf("with an empty --store: %s", said)
	}

	const planted = "Pl4ntedS3cr3t"
	t.Setenv(storeVariable, "postgres://weir:"+planted+"@127.0.0.1:1")
	_, said := refused(t, exitUsage, "group", "list")
	if !strings.Contains(said, "WEIR_STORE postgres://") || strings.Contains(said, planted) {
		t.Errorf("a wrong one: %s", said)
	}
	for _, args := range [][]string{{"group", "list", "--help"}, {"consume", "--help"}, {"store", "create", "--help"}, {"__complete", "group", "list", "--"}, {"__complete", "group", "list", "--store", ""}} {
		if out := mustRun(t, "", args...); strings.Contains(out, planted) {
			t.Errorf("%q shows the password: %s", args, out)
		}
	}
}
