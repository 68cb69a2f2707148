package sqlite

import (
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/crowd"
	"github.com/weir-go/weir/internal/proof/integration/older"
	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/internal/proof/integration/worker"
)

func TestMain(m *testing.M) {
	worker.Main()
	crowd.Main(m, sqlite.Place)
}

func TestProcessesThatAreKilledAtAnyInstantHarmNothing(t *testing.T) {
	path := empty(t)
	s, db := sqlite.Migrated(t, path)
	crowd.Run(t, s, path)
	if got := sqltest.Text(t, db, "PRAGMA integrity_check"); got != "ok" {
		t.Errorf("the file is damaged: %s", got)
	}
}

func TestProcessesOfTwoVersionsShareAFile(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the version before")
	}
	path := empty(t)
	before := older.Unpack(t)
	before.CreateStore(t, "sqlite:"+path)
	s, _ := sqlite.Migrated(t, path)
	crowd.Mixed(t, s, path, before.Tests(t))
}
