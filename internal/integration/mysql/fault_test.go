package mysql_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/integration/crowd"
	"github.com/weir-go/weir/internal/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/sqlstore"
)

func TestLostAnswersHarmNothing(t *testing.T) {
	d := servers.MariaDB(t)
	clean, _ := migrated(t, d.MySQLDSN("weir"))
	p := servers.NewProxy(t, d.Addr)
	faulty, _ := open(t, strings.Replace(d.MySQLDSN("weir"), d.Addr, p.Addr, 1), sqlstore.Options{})
	lose, lost := crowd.Losing(p)
	crowd.LostAnswers(t, clean, faulty, lose, lost)
}

func TestCallsEndWithTheirContext(t *testing.T) {
	d := servers.MariaDB(t)
	s, db := migrated(t, d.MySQLDSN("weir"))
	group(t, s, "app", 2, 1)
	calls := map[string]func(context.Context) error{
		"Beat": func(ctx context.Context) error { _, err := s.Beat(ctx, "app", lease.Report{Session: "0"}); return err },
		"First": func(ctx context.Context) error {
			_, err := s.Beat(ctx, "app", lease.Report{Session: "1", First: true})
			return err
		},
		"Apply": func(ctx context.Context) error {
			_, err := s.Apply(ctx, "app", []lease.Action{{Kind: lease.Revoke, Key: key("000001"), Epoch: 1}})
			return err
		},
		"Lead":  func(ctx context.Context) error { _, err := s.Lead(ctx, "app", "0", 0); return err },
		"Leave": func(ctx context.Context) error { return s.Leave(ctx, "app", lease.Report{Session: "2"}) },
	}
	hog, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer hog.Rollback() //nolint:errcheck // it may have ended
	for _, table := range []string{"weir_applications", "weir_sessions", "weir_leases"} {
		if _, err := hog.ExecContext(t.Context(), "SELECT * FROM "+table+" FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
	}
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s while others hold the rows: %v", name, err)
		}
		cancel()
	}
	if _, err := s.View(t.Context(), "app", ""); err != nil {
		t.Errorf("View while others hold the rows: %v", err)
	}
	if err := hog.Rollback(); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s after that: %v", name, err)
		}
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections were not given back", n)
	}
}

func TestDeadlocksAreTriedAgain(t *testing.T) {
	d := servers.MariaDB(t)
	dsn := d.MySQLDSN("weir")
	s, _ := migrated(t, dsn)
	_, db := open(t, dsn, sqlstore.Options{})
	group(t, s, "app", 2, 1)
	if _, err := s.Beat(t.Context(), "app", lease.Report{Session: "0"}); err != nil {
		t.Fatal(err)
	}
	// Somebody holds lease 1 and then wants lease 0, while a beat has 0 and wants 1.
	hog, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer hog.Rollback() //nolint:errcheck // it may have ended
	lock := "SELECT 1 FROM weir_leases WHERE app = 'app' AND shard = ? FOR UPDATE"
	if _, err := hog.ExecContext(t.Context(), lock, "000001"); err != nil {
		t.Fatal(err)
	}
	var beat sync.WaitGroup
	beat.Go(func() {
		_, err := s.Beat(t.Context(), "app", lease.Report{Session: "0", Progress: []lease.Progress{
			{Key: key("000000"), Epoch: 1, Position: after(t, "5")}, {Key: key("000001"), Epoch: 1, Position: after(t, "5")}}})
		if err != nil {
			t.Error(err)
		}
	})
	// Until the beat waits. Either of the two may be the one that the server gives up; the beat succeeds all the same.
	// The server refreshes that table only when nobody has read it for a tenth of a second.
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	for waiting, looks := 0, 0; waiting == 0; looks++ {
		if <-look.C; looks == 100 {
			t.Fatal("the beat does not wait for the row")
		}
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := hog.ExecContext(t.Context(), lock, "000000"); err == nil {
		err = hog.Commit()
		if err != nil {
			t.Error(err)
		}
	} else if !strings.Contains(err.Error(), "1213") {
		t.Error(err)
	} else if err := hog.Rollback(); err != nil {
		t.Error(err)
	}
	beat.Wait()
	v, err := s.View(t.Context(), "app", "")
	if err != nil || v.Leases[0].Position.String() != "5" || v.Leases[1].Position.String() != "5" {
		t.Errorf("View = %+v, %v", v.Leases, err)
	}
}
