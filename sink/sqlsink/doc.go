// Package sqlsink applies records to a SQL database exactly once: a transaction contains the
// effects of some records of a shard, and the position after them.
//
//	db, err := sql.Open("pgx", "postgres://shop@db/shop") // any driver
//	...
//	sink, err := sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.Postgres, App: "billing"})
//	...
//	err = sink.Migrate(ctx) // once; or run the statement of Schema as an administrator
//	...
//	err = consumer.RunShards(ctx, sink.Handlers(
//		func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
//			for _, r := range b.Records {
//				if _, err := tx.ExecContext(ctx, `INSERT INTO orders …`); err != nil {
//					return err
//				}
//			}
//			return nil
//		}))
//
// The guarantee: each record takes effect on that database once, in the order of each shard,
// despite crashes, pauses, repetitions and changes of owner. All effects must go through the
// transaction that the function gets. The function itself may run more than once for a record, if
// its transaction was rolled back. There is no guarantee for effects elsewhere, for records that a
// producer wrote twice, and for a database that loses confirmed data without losing the position.
//
// # How it works
//
// A batch is one transaction. It locks the row of the shard, skips the records that the position in
// the row covers, moves the position, calls the function with the remaining records, and commits.
// If two workers both believe to own a shard, the lock makes them take turns, and the later one
// finds the records covered. If the result of a COMMIT is unknown, the handler returns an error,
// weir calls it again, and the row shows what happened. Reading begins at the position in the row.
// If a database is restored from a backup while no worker runs, the lost records are therefore
// applied again. If it is restored while workers run, Run ends with [ErrSetBack].
//
// # Records that are given up
//
// If a function fails with [weir.FailedAt], it is called again with the records before that record,
// in a separate transaction. Otherwise the batch fails as a whole, and [weir.GiveUp].Bisect splits
// it. Wrap the destination of dead letters with [Sink.Letters]. Otherwise the position of the sink
// stays before a given-up record until a later one is done, and a worker that starts in between
// handles the record again.
//
// # Databases
//
// Postgres 9.6, MySQL 8.0, MariaDB 10.3 or SQLite 3.24, or newer. The user needs SELECT, INSERT,
// UPDATE and DELETE on the table. On Postgres, a process that disappears inside a transaction would
// keep its locks for hours, so a transaction may be idle for at most [Options].MaxIdle. On MySQL,
// set the same limit in the data source name (go-sql-driver/mysql: wait_timeout=60), and do not use
// statements in the function that commit implicitly, such as CREATE TABLE. SQLite has one writer at
// a time: the transactions of a sink queue.
//
// A COMMIT that is not answered is abandoned after 10 s, and the next attempt finds out its result.
// Statements of the function last as long as their contexts.
package sqlsink
