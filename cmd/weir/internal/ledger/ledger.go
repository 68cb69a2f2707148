// Command ledger is the program of docs/guide/exactly-once.md and exactly-once-parallel.md: it
// books each order once.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/sink/sqlsink"
	"github.com/weir-go/weir/store/sqlstore"
)

// partitions is the number of transactions of a shard that may run at the same time, or 0 for one
// after the other.
var partitions = flag.Int("partitions", 0, "transactions of a shard that may run at the same time")

const bookings = `create table if not exists bookings (id text not null, customer text not null)`

// book books the orders of a batch that are not booked yet.
func book(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
	for _, r := range b.Records {
		var order struct{ ID string }
		if err := json.Unmarshal(r.Data, &order); err != nil {
			return weir.RejectAt(r, err)
		}
		_, err := tx.ExecContext(ctx,
			`insert into bookings (id, customer) values ($1, $2)`, order.ID, r.PartitionKey)
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx); err != nil {
		log.Fatal(err)
	}
}

func start(ctx context.Context) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "ledger.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, bookings); err != nil {
		return err
	}
	leases, err := sql.Open("sqlite", "leases.db")
	if err != nil {
		return err
	}
	defer leases.Close()
	store, err := sqlstore.New(leases, sqlstore.Options{Dialect: sqlstore.SQLite})
	if err != nil {
		return err
	}
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	return run(ctx, kinesis.NewFromConfig(cfg), store, db, deadletter.File("orders.dead.ndjson"))
}

// run books orders until ctx ends. Records that are no orders become dead letters in letters.
func run(
	ctx context.Context, client *kinesis.Client, store lease.Store,
	db *sql.DB, letters deadletter.Destination,
) error {
	sink, err := sqlsink.New(db, sqlsink.Options{
		Dialect: sqlsink.SQLite, App: "billing", Partitions: *partitions,
	})
	if err != nil {
		return err
	}
	if err := sink.Migrate(ctx); err != nil { // creates the table of positions
		return err
	}
	c, err := weir.New(client, store, weir.Options{
		Streams: []string{"orders"}, App: "billing",
		Batching:  weir.Batching{MaxRecords: 500}, // the records of a transaction, at most
		OnFailure: weir.FailurePolicy{Destination: sink.Letters(letters)},
	})
	if err != nil {
		return err
	}
	return c.RunShards(ctx, sink.Handlers(book))
}
