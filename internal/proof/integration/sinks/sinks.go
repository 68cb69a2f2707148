// Package sinks contains the tests of sqlsink for all databases. The guarantees are the same for
// all, and only details of SQL differ.
package sinks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/sink/sqlsink"
)

// Place is a kind of database.
type Place struct {
	Driver  string // name of the driver in database/sql
	Dialect sqlsink.Dialect
	// Fresh creates an empty database and returns its data source name.
	Fresh func(t testing.TB) string
	// Addr is the address of the server. It is "" if there is no server.
	Addr string
	// Serial is the type of a column that orders rows by insertion.
	Serial string
	// Store is the kind for [servers.OpenStore], if the database can also be a store. Otherwise it
	// is "".
	Store string
	// Idle means that the database rolls back abandoned transactions if IdleDSN is added to the
	// data source name.
	Idle    bool
	IdleDSN string
	// Partitions is the number of partitions of the sinks.
	Partitions int
	Full       bool // use the sizes of the documentation
}

// Run runs the tests for every database.
func Run(t *testing.T, p Place) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Place)
	}{
		{"records that are covered are skipped", skips},
		{"names are bytes", names},
		{"a function that fails has no effect", fails},
		{"what comes before a record that failed is applied", failsAt},
		{"a function that ends the transaction doubles nothing and is told", endsIt},
		{"late owners are refused until epochs are reset", late},
		{"a database that is set back under a worker stops it", underfoot},
		{"a lock that is held is waited for, but not for ever", held},
		{"two owners at once, before there is a row", first},
		{"a process that vanishes in a transaction holds nobody up", vanishes},
		{"an aggregate may be cut anywhere", aggregates},
		{"a COMMIT that is never answered is given up", unanswered},
		{"a table is made once, and never unasked", tables},
		{"ended shards are forgotten when asked", forgets},
		{"records that are dead-lettered are passed", givenUp},
		{"leases are lost, shards split and merged", leasesLost},
		{"a database that is set back across a split misses nothing", setBack},
		{"a stream that is made anew is told", madeAnew},
		{"results of windows are written once", windows},
		{"results of windows of a time in the payload are written once", timedWindows},
		{"under fire", underFire},
		{"processes that are killed", killed},
		{"the contract of rows", contract},
		{"with partitions: leases are lost, shards split and merged", parted(leasesLost)},
		{"with partitions: a database that is set back across a split misses nothing", parted(setBack)},
		{"with partitions: records that are dead-lettered are passed", parted(givenUp)},
		{"with partitions: aggregates may be cut anywhere", parted(aggregates)},
		{"with partitions: processes that are killed", parted(killed)},
		{"other numbers of partitions", renumbered},
		{"with partitions: under fire", partsUnderFire},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of them wait
			c.test(t, p)
		})
	}
}

// open opens a database until the test ends.
func (p Place) open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(p.Driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(10)
	return db
}

// sink returns a sink for a database.
func (p Place) sink(t testing.TB, db *sql.DB, o sqlsink.Options) *sqlsink.Sink {
	t.Helper()
	o.Dialect, o.Partitions = p.Dialect, p.Partitions
	if o.App == "" {
		o.App = "billing"
	}
	s, err := sqlsink.New(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ready returns a new database with its tables, and a sink for it.
func (p Place) ready(t testing.TB) (*sql.DB, *sqlsink.Sink) {
	t.Helper()
	return p.readyAt(t, p.Fresh(t))
}

func (p Place) readyAt(t testing.TB, dsn string) (*sql.DB, *sqlsink.Sink) {
	t.Helper()
	db := p.open(t, dsn)
	s := p.sink(t, db, sqlsink.Options{})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	// There is no unique key, so a duplicate effect is two rows.
	exec(t, db, "CREATE TABLE effects (id "+p.Serial+", shard VARCHAR(100), what VARCHAR(200))")
	return db, s
}

func exec(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// apply inserts a row for each record. The records of the tests contain no quotes or backslashes.
func apply(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
	if len(b.Records) == 0 {
		return nil
	}
	var rows []string
	for _, r := range b.Records {
		rows = append(rows, fmt.Sprintf("('%s', '%s')", b.Shard, r.Data))
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO effects (shard, what) VALUES "+strings.Join(rows, ", "))
	return err
}

// effects returns all effects, in the order of insertion.
func effects(t testing.TB, db *sql.DB) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT what FROM effects ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// want compares the effects with the wanted ones.
func want(t testing.TB, db *sql.DB, all string) {
	t.Helper()
	if got := strings.Join(effects(t, db), " "); got != all {
		t.Errorf("the effects are %q, want %q", got, all)
	}
}

const stream, shardID = "orders", "shardId-000000000000"

// records returns records with the numbers from, …, to.
func records(from, to int) (all []weir.Record) {
	for n := from; n <= to; n++ {
		all = append(all, weir.Record{SequenceNumber: strconv.Itoa(n), Data: []byte(strconv.Itoa(n)), PartitionKey: "k"})
	}
	return all
}

// batch returns a batch with these records.
func batch(epoch uint64, from, to int) *weir.Batch {
	return &weir.Batch{Stream: stream, Shard: shardID, Epoch: epoch, Records: records(from, to), Attempt: 1}
}

// term begins a term with the given epoch, at the sink's position.
func term(t testing.TB, s *sqlsink.Sink, epoch uint64, f sqlsink.Func) weir.ShardHandler {
	t.Helper()
	h, err := tryTerm(t.Context(), s, epoch, f)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func tryTerm(ctx context.Context, s *sqlsink.Sink, epoch uint64, f sqlsink.Func) (weir.ShardHandler, error) {
	handlers := s.Handlers(f)
	at, err := handlers.Position(ctx, stream, shardID)
	if err != nil {
		return nil, err
	}
	if at.IsZero() || at.IsEnd() {
		at = weir.Oldest
	}
	return handlers.Open(ctx, weir.Term{Stream: stream, Shard: shardID, Epoch: epoch, From: at})
}

// handle handles a batch. The call must fail with the error want, or succeed if want is nil.
func handle(t testing.TB, h weir.ShardHandler, b *weir.Batch, want error) {
	t.Helper()
	if err := h.Handle(t.Context(), b); !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("%d records from %v: %v, want %v", len(b.Records), b.Records, err, want)
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for bound := time.Now().Add(time.Minute); !holds(); <-look.C {
		if time.Now().After(bound) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}
