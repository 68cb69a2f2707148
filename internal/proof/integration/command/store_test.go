// Package command_test runs the command against real servers, as a user does.
package command_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// built builds the command and returns its path.
func built(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "weir")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	cmd.Dir = filepath.Join("..", "..", "..", "..", "cmd", "weir")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

func TestStoresAreMadeAndLookedAt(t *testing.T) {
	weir := built(t)
	run := func(t *testing.T, args ...string) (out, err string, failed bool) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), weir, args...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		failed = cmd.Run() != nil
		if strings.Contains(stdout.String()+stderr.String(), "secret") {
			t.Errorf("%q shows the password: %s%s", args, &stdout, &stderr)
		}
		return stdout.String(), stderr.String(), failed
	}
	mariadb := servers.MariaDB(t)
	for name, url := range map[string]string{
		"Postgres": strings.Replace(servers.Postgres(t).PostgresURL("weir"), "weir@", "weir:secret@", 1),
		"MariaDB":  "mysql://weir:secret@" + mariadb.Addr + "/weir?weir_prefix=w_",
		"Redis":    "redis://" + servers.Redis(t, "--appendonly", "no", "--user", "weir", "on", ">secret", "~*", "+@all").Addr + "/0",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "Redis" {
				url = strings.Replace(url, "redis://", "redis://weir:secret@", 1)
			} else {
				if _, said, failed := run(t, "group", "describe", "--app", "a", "--store", url); !failed || !strings.Contains(said, "weir store create --store") {
					t.Errorf("without tables it says %q", said)
				}
				out, said, failed := run(t, "store", "create", "--print", "--store", url)
				if failed || strings.Count(out, "CREATE TABLE") != 5 {
					t.Errorf("--print: %q, %q", out, said)
				}
			}
			for range 2 {
				out, said, failed := run(t, "store", "create", "--store", url)
				if failed || !strings.Contains(out, "is ready") || (name == "Redis") != strings.Contains(said, "appendonly is no") {
					t.Errorf("store create: %q, %q", out, said)
				}
			}
			if _, said, _ := run(t, "group", "describe", "--app", "a", "--store", url); strings.Contains(said, "create") {
				t.Errorf("with tables it says %q", said)
			}
		})
	}
}
