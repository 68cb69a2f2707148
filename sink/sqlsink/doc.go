// Package sqlsink applies records to a SQL database exactly once. A transaction contains the
// effects of some records of a shard, and the position after these records.
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
// The guarantee is: each record takes effect on that database once, in the order of each shard.
// Crashes, pauses, repetitions and changes of the owner do not change that. All effects must go
// through the transaction that the function receives. The function itself may run more than once
// for a record, if its transaction was rolled back. The guarantee does not cover effects elsewhere,
// or records that a producer wrote twice. It also does not cover a database that loses committed
// data but keeps the position.
//
// # How it works
//
// A batch is one transaction. The transaction locks the row of the shard, and skips the records
// before the position in the row. It moves the position, calls the function with the remaining
// records, and commits. Two workers may both believe that they own a shard. The lock then makes
// them take turns, and the second one finds that the position covers its records. If the result of
// a COMMIT is unknown, the handler returns an error and weir calls it again. The row then shows
// whether the COMMIT took effect.
//
// Reading begins at the position in the row. If a database is restored from a backup while no
// worker runs, the lost records are therefore applied again. If it is restored while workers run,
// Run ends with [ErrSetBack].
//
// # Dead-lettered records
//
// If the function returns [weir.FailedAt] for a record, the sink calls it again with the records
// before the failed one, in a separate transaction. With other errors the batch fails as a whole,
// and [weir.FailurePolicy].Bisect splits it.
//
// Wrap the destination of dead letters with [Sink.Letters]. Otherwise the position of the sink
// stays before a dead-lettered record until a later record is done. A worker that starts in the
// meantime handles the dead-lettered record again. Also, a batch that fails as a whole is then
// dead-lettered with records whose effects are stored, so that handling their dead letters again
// repeats the effects.
//
// # Queues
//
// A [Queue] applies the records of Kinesis queues exactly once. Queues have no positions, so the
// transaction stores the key of each record, and keys are deleted after [QueueOptions].Window.
//
// # Databases
//
// The package supports Postgres 9.6, MySQL 8.0, MariaDB 10.3 and SQLite 3.24, and newer versions.
// The database user needs SELECT, INSERT, UPDATE and DELETE on the table.
//
// On Postgres, a process that disappears inside a transaction would keep its locks for hours. A
// transaction may therefore be idle for at most [Options].MaxIdle. On MySQL, set the same limit in
// the data source name (go-sql-driver/mysql: wait_timeout=60). In the function, do not use
// statements that MySQL commits implicitly, such as CREATE TABLE. SQLite has one writer at a time,
// so the transactions of a sink queue.
//
// If a COMMIT is not answered within 10 s, it is abandoned, and the next attempt finds out its
// result. Statements of the function may take as long as their contexts allow.
package sqlsink
