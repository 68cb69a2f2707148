package command_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/sqlstore"
)

// An operator with the documented read-only grants can use the commands that only read, and not
// those that change the group.
func TestWhoMayOnlyLook(t *testing.T) {
	weir := built(t)
	server := kinesistest.NewServer(t)
	server.CreateStream("orders", 1)
	url := servers.Postgres(t).PostgresURL("weir")
	store, db := sqltest.Kind{Driver: "pgx", Dialect: sqlstore.Postgres}.Migrated(t, url)
	sqltest.Exec(t, db, "REVOKE ALL ON SCHEMA public FROM PUBLIC")
	for _, user := range []string{"weir_worker", "weir_operator", "weir_look"} {
		sqltest.Exec(t, db, "CREATE USER "+user)
	}
	for _, statement := range sqltest.Documented(t, `Postgres, after "weir store create"`) {
		sqltest.Exec(t, db, statement)
	}
	sqltest.Group(t, store, "billing", 1, 1)
	before, err := store.View(t.Context(), "billing", "")
	if err != nil {
		t.Fatal(err)
	}
	for args, may := range map[string]bool{
		"group list": true, "group describe --app billing --look 0 --no-lag": true, "group lag --app billing": true, "group plan --app billing --look 0": true,
		"group export --app billing -": true, "doctor --app billing --look 10ms": true,
		"group pause --app billing": false, "group drain --app billing 0": false, "group reset --app billing --to oldest --yes --look 10ms": false,
		"group delete --app billing --yes --look 10ms": false,
	} {
		words := strings.Fields(args)
		if strings.Contains(args, "lag") || words[0] == "doctor" || words[1] == "reset" {
			words = append(words, "--endpoint="+server.URL())
		}
		cmd := exec.CommandContext(t.Context(), weir, words...)
		cmd.Dir = t.TempDir() // for the backup before a change
		cmd.Env = append(cmd.Environ(), "WEIR_STORE="+strings.Replace(url, "weir@", "weir_look@", 1))
		out, err := cmd.CombinedOutput()
		refused := strings.Contains(string(out), "the user may not do this")
		if strings.Contains(args, "lag") || strings.Contains(args, "doctor") {
			err = nil // the lease has a shard that the stream does not contain
		}
		if refused == may || (err == nil) != may {
			t.Errorf("%s: %v, %s", args, err, out)
		}
	}
	after, err := store.View(t.Context(), "billing", before.Revision)
	if err != nil || !after.Same || after.Leader != before.Leader || len(after.Paused) != 0 || after.Workers[0].Drain != before.Workers[0].Drain || len(after.Workers) != 1 {
		t.Errorf("somebody who may only look left %+v of %+v, %v", after, before, err)
	}
}
