package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/cut"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/sqlstore"
)

// deadConns tests a server that vanishes, or a gateway that drops connections, without a signal.
// One call must detect this for all connections of a pool.
func deadConns(t *testing.T, s Server, d *servers.Database) {
	const idle = 10
	dsn := s.Fresh(t, d)
	s.Migrated(t, dsn)
	p, err := cut.New(d.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	store, db := s.Open(t, strings.Replace(dsn, d.Addr, p.Addr(), 1), sqlstore.Options{})
	db.SetMaxIdleConns(idle)
	beat := func(first bool) error {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		_, err := store.Heartbeat(ctx, "app", lease.Report{Session: "a", First: first})
		return err
	}
	if err := beat(true); err != nil {
		t.Fatal(err)
	}
	conns := make([]*sql.Conn, idle)
	for i := range conns {
		if conns[i], err = db.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range conns {
		c.Close()
	}
	if got := db.Stats().Idle; got != idle {
		t.Fatalf("%d idle connections, not %d", got, idle)
	}
	if err := p.Set(cut.HalfOpen); err != nil {
		t.Fatal(err)
	}
	if err := beat(false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the beat that finds out: %v", err)
	}
	if err := beat(false); err != nil {
		t.Errorf("the next beat: %v", err)
	}
	// The drivers close tested connections, and perhaps others, with a delay.
	if got := db.Stats().OpenConnections; got > 2 {
		t.Errorf("%d connections are open, at most one of which is new", got)
	}
}
