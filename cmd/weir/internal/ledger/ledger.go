// Package ledger is the sink of docs/guide/exactly-once.md: it books each record once.
package ledger

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/sink/sqlsink"
)

// Table is where orders are booked.
const Table = `create table if not exists bookings (id text not null, customer text not null)`

// book books the orders of a batch that are not booked yet.
func book(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
	for _, r := range b.Records {
		var order struct{ ID string }
		if err := json.Unmarshal(r.Data, &order); err != nil {
			return weir.FailedAt(r, weir.Reject(err))
		}
		if _, err := tx.ExecContext(ctx, `insert into bookings (id, customer) values ($1, $2)`, order.ID, r.PartitionKey); err != nil {
			return err
		}
	}
	return nil
}

// Run books orders until ctx ends. Records that are no orders become dead letters in letters.
func Run(ctx context.Context, db *sql.DB, letters deadletter.Destination, consumer func(weir.Options) (*weir.Consumer, error)) error {
	sink, err := sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.SQLite, App: "billing"})
	if err != nil {
		return err
	}
	if err := sink.Migrate(ctx); err != nil {
		return err
	}
	c, err := consumer(weir.Options{
		Stream: "orders", App: "billing",
		GiveUp: weir.GiveUp{To: sink.Letters(letters)},
	})
	if err != nil {
		return err
	}
	return c.RunShards(ctx, sink.Handlers(book))
}

// Reset is for lost leases: epochs start from the beginning.
func Reset(ctx context.Context, db *sql.DB) error {
	sink, err := sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.SQLite, App: "billing"})
	if err != nil {
		return err
	}
	_, err = sink.ResetEpochs(ctx)
	return err
}
