package mysql_test

import (
	"testing"

	"github.com/weir-go/weir/internal/integration/servers"
	"github.com/weir-go/weir/lease"
)

// A beat must not read the leases of others.
func TestBeatsReadTheSessionsLeasesOnly(t *testing.T) {
	const leases, sessions, beats = 5000, 50, 20
	s, db := migrated(t, servers.MariaDB(t).MySQLDSN("weir"))
	group(t, s, "app", leases, sessions)
	read := func() (rows int) {
		if err := db.QueryRowContext(t.Context(), "SELECT sum(variable_value) FROM information_schema.global_status WHERE variable_name LIKE 'Handler_read%'").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	before, own := read(), 0
	own = read() - before // what asking costs
	before = read()
	for range beats {
		o, err := s.Beat(t.Context(), "app", lease.Report{Session: "7", Progress: []lease.Progress{{Key: key("000007"), Epoch: 1, Position: after(t, "5")}}})
		if err != nil || len(o.Held) != leases/sessions {
			t.Fatalf("%d held, %v", len(o.Held), err)
		}
	}
	if each := (read() - before - own) / beats; each > 3*leases/sessions {
		t.Errorf("a beat reads %d rows, and holds %d", each, leases/sessions)
	}
}
