package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/sqlstore"
)

func contexts(t *testing.T, s Server, d *servers.Database) {
	store, db := s.Migrated(t, s.Fresh(t, d))
	Group(t, store, "app", 2, 1)
	calls := Calls(store)
	calls["Beat again"] = func(ctx context.Context) error {
		_, err := store.Heartbeat(ctx, "app", lease.Report{Session: "0"})
		return err
	}
	calls["Revoke"] = func(ctx context.Context) error {
		_, err := store.Apply(ctx, "app", []lease.Action{{Kind: lease.Revoke, Key: Key("000001"), Epoch: 1}})
		return err
	}
	look := calls["View"]
	delete(calls, "View")
	hog, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer hog.Rollback() // it may have ended
	for _, statement := range s.Hold {
		if _, err := hog.ExecContext(t.Context(), statement); err != nil {
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
	if err := look(t.Context()); err != nil {
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

// Waits returns when a transaction waits for a row.
func (s Server) Waits(t *testing.T, db *sql.DB) {
	t.Helper()
	look := time.NewTicker(s.Look)
	defer look.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-look.C {
		if Text(t, db, s.Waiting) != "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the beat does not wait for the row")
		}
	}
}

// pair creates two leases of session "0", and a foreign transaction that ends with the test at the
// latest.
func pair(t *testing.T, s Server, d *servers.Database) (*sqlstore.Store, *sql.DB, *sql.Tx) {
	t.Helper()
	dsn := s.Fresh(t, d)
	store, _ := s.Migrated(t, dsn)
	_, db := s.Open(t, dsn, sqlstore.Options{})
	Group(t, store, "app", 2, 1)
	if _, err := store.Heartbeat(t.Context(), "app", lease.Report{Session: "0"}); err != nil {
		t.Fatal(err)
	}
	other, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Rollback() }) // it may have ended
	return store, db, other
}

func deadlocks(t *testing.T, s Server, d *servers.Database) {
	store, db, hog := pair(t, s, d)
	// A foreign transaction holds lease 1 and then requests lease 0. A heartbeat holds lease 0 and
	// requests lease 1.
	const lock = "SELECT 1 FROM weir_leases WHERE app = 'app' AND shard = '%' FOR UPDATE"
	if _, err := hog.ExecContext(t.Context(), strings.Replace(lock, "%", "000001", 1)); err != nil {
		t.Fatal(err)
	}
	r := Saving(t, "5", "000000", "000001")
	var beat sync.WaitGroup
	beat.Go(func() {
		if _, err := store.Heartbeat(t.Context(), "app", r); err != nil {
			t.Error(err)
		}
	})
	s.Waits(t, db)
	// The server may abort either of the two. The heartbeat must still succeed.
	if _, err := hog.ExecContext(t.Context(), strings.Replace(lock, "%", "000000", 1)); err == nil {
		err = hog.Commit()
		if err != nil {
			t.Error(err)
		}
	} else if !strings.Contains(err.Error(), s.Deadlock) {
		t.Error(err)
	} else if err := hog.Rollback(); err != nil {
		t.Error(err)
	}
	beat.Wait()
	v, err := store.View(t.Context(), "app", "")
	if err != nil || v.Leases[0].Position.String() != "5" || v.Leases[1].Position.String() != "5" {
		t.Errorf("View = %+v, %v", v.Leases, err)
	}
}

// takenInItsMidst takes a lease away while a heartbeat waits for the lease's row. The progress on
// the lease is then refused, so the orders must not contain the lease. Otherwise the worker would
// believe that its checkpoint is saved.
func takenInItsMidst(t *testing.T, s Server, d *servers.Database) {
	store, db, other := pair(t, s, d)
	if _, err := other.ExecContext(t.Context(), "UPDATE weir_leases SET epoch = epoch + 1, owner = 'x' WHERE app = 'app' AND shard = '000001'"); err != nil {
		t.Fatal(err)
	}
	r := Saving(t, "5", "000000", "000001")
	var orders lease.Orders
	var beat sync.WaitGroup
	beat.Go(func() {
		var err error
		if orders, err = store.Heartbeat(t.Context(), "app", r); err != nil {
			t.Error(err)
		}
	})
	s.Waits(t, db)
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	beat.Wait()
	if len(orders.Held) != 1 || orders.Held[0].Key != Key("000000") || orders.Held[0].Position.String() != "5" {
		t.Errorf("held are %v", orders.Held)
	}
	v, err := store.View(t.Context(), "app", "")
	if err != nil || v.Leases[1].Owner != "x" || v.Leases[1].Position != shard.Oldest {
		t.Errorf("View = %+v, %v", v.Leases, err)
	}
}

// vanishes tests a process that disappears in the middle of a transaction, with its machine or its
// network. The server receives no signal and keeps the locks, including that of the application's
// row. Other processes must not have to wait for long.
func vanishes(t *testing.T, s Server, d *servers.Database) {
	dsn := s.Fresh(t, d)
	store, _ := s.Migrated(t, dsn)
	Group(t, store, "app", 2, 1)
	gone, log := s.Counted(t, dsn+s.Impatient)
	hangs, over := make(chan struct{}), make(chan struct{})
	var once sync.Once
	log.Before(func(statement string) {
		if statement == "COMMIT" {
			once.Do(func() { close(hangs) })
			<-over
		}
	})
	var call sync.WaitGroup
	call.Go(func() {
		_, err := gone.Apply(context.Background(), "app", []lease.Action{{Kind: lease.Revoke, Key: Key("000000"), Epoch: 1}})
		if err == nil {
			t.Error("the server did not end an idle transaction")
		}
	})
	defer call.Wait()
	defer close(over)
	<-hangs
	// On a busy machine, this call may take a minute. If the server did not end idle transactions,
	// the call would wait for hours.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done, err := store.Apply(ctx, "app", []lease.Action{{Kind: lease.Revoke, Key: Key("000000"), Epoch: 1}})
	if err != nil || !done[0] {
		t.Errorf("Apply = %v, %v", done, err)
	}
}
