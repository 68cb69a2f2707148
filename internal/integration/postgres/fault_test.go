package postgres_test

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
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/sqlstore"
)

func TestLostAnswersHarmNothing(t *testing.T) {
	d := servers.Postgres(t)
	clean, _ := migrated(t, d.PostgresURL("weir"))
	p := servers.NewProxy(t, d.Addr)
	faulty, _ := open(t, strings.Replace(d.PostgresURL("weir"), d.Addr, p.Addr, 1), sqlstore.Options{})
	lose, lost := crowd.Losing(p)
	crowd.LostAnswers(t, clean, faulty, lose, lost)
}

func TestCallsEndWithTheirContext(t *testing.T) {
	d := servers.Postgres(t)
	s, db := migrated(t, d.PostgresURL("weir"))
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
	if _, err := hog.ExecContext(t.Context(), "LOCK TABLE weir_applications, weir_sessions, weir_leases IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
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
	d := servers.Postgres(t)
	dsn := d.PostgresURL("weir")
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
	lock := "SELECT 1 FROM weir_leases WHERE app = 'app' AND shard = $1 FOR UPDATE"
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
	for waiting := 0; waiting == 0; {
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := hog.ExecContext(t.Context(), lock, "000000"); err == nil {
		err = hog.Commit()
		if err != nil {
			t.Error(err)
		}
	} else if !strings.Contains(err.Error(), "40P01") {
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

// What a beat says of a lease that is taken away while the beat waits for its row is refused, so the orders must not say that it is held:
// the worker would take its checkpoint for saved.
func TestABeatWhoseLeaseIsTakenInItsMidstDoesNotHoldIt(t *testing.T) {
	d := servers.Postgres(t)
	dsn := d.PostgresURL("weir")
	s, _ := migrated(t, dsn)
	_, db := open(t, dsn, sqlstore.Options{})
	group(t, s, "app", 2, 1)
	if _, err := s.Beat(t.Context(), "app", lease.Report{Session: "0"}); err != nil {
		t.Fatal(err)
	}
	other, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback() //nolint:errcheck // it may have ended
	if _, err := other.ExecContext(t.Context(), "UPDATE weir_leases SET epoch = epoch + 1, owner = 'x' WHERE app = 'app' AND shard = '000001'"); err != nil {
		t.Fatal(err)
	}
	var orders lease.Orders
	var beat sync.WaitGroup
	beat.Go(func() {
		var err error
		orders, err = s.Beat(t.Context(), "app", lease.Report{Session: "0", Progress: []lease.Progress{
			{Key: key("000000"), Epoch: 1, Position: after(t, "5")}, {Key: key("000001"), Epoch: 1, Position: after(t, "5")}}})
		if err != nil {
			t.Error(err)
		}
	})
	for waiting := 0; waiting == 0; {
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	beat.Wait()
	if len(orders.Held) != 1 || orders.Held[0].Key != key("000000") || orders.Held[0].Position.String() != "5" {
		t.Errorf("held are %v", orders.Held)
	}
	v, err := s.View(t.Context(), "app", "")
	if err != nil || v.Leases[1].Owner != "x" || v.Leases[1].Position != shard.Oldest {
		t.Errorf("View = %+v, %v", v.Leases, err)
	}
}
