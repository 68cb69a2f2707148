package sqlsink_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/queue"
	"github.com/weir-go/weir/sink/sqlsink"
)

// Each order is one row.
func Example() {
	var (
		ctx      context.Context
		consumer *weir.Consumer // of the application billing
	)
	db, err := sql.Open("pgx", "postgres://shop@db/shop") // github.com/jackc/pgx/v5/stdlib
	if err != nil {
		log.Fatal(err)
	}
	sink, err := sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.Postgres, App: "billing"})
	if err != nil {
		log.Fatal(err)
	}
	if err := sink.Migrate(ctx); err != nil { // creates the table of positions unless it exists
		log.Fatal(err)
	}
	err = consumer.RunShards(ctx, sink.Handlers(func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
		for _, r := range b.Records {
			if _, err := tx.ExecContext(ctx, "INSERT INTO orders (customer, what) VALUES ($1, $2)", r.PartitionKey, r.Data); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
}

// Each order of a queue is one row, also if the queue delivers it again.
func ExampleNewQueue() {
	run := func(ctx context.Context, db *sql.DB, consumer *queue.Consumer) error {
		sink, err := sqlsink.NewQueue(db, sqlsink.QueueOptions{Dialect: sqlsink.Postgres, App: "billing"})
		if err != nil {
			return err
		}
		if err := sink.Migrate(ctx); err != nil { // creates the table of handled records unless it exists
			return err
		}
		return consumer.Run(ctx, sink.Handler(func(ctx context.Context, tx *sql.Tx, records []queue.Record) error {
			for _, r := range records {
				if _, err := tx.ExecContext(ctx, "INSERT INTO orders (customer, what) VALUES ($1, $2)", r.PartitionKey, r.Data); err != nil {
					return queue.Failed(r, err)
				}
			}
			return nil
		}))
	}
	_ = run
}
