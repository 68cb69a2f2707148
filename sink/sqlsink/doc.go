// Package sqlsink gives records their effects in a SQL database exactly once: a transaction holds
// the effects of some records of a shard, and the position after them.
//
//	db, err := sql.Open("pgx", "postgres://shop@db/shop") // the driver is yours
//	...
//	sink, err := sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.Postgres, App: "billing"})
//	...
//	err = sink.Migrate(ctx) // once; or give Schema to whoever may make tables
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
// What is promised: the effects of each record on that database are there once, in the order of
// each shard, whatever crashes, pauses, repeats or changes hands, if all of them go through the
// transaction that the function gets. The function itself may run more than once for a record; its
// transaction was rolled back then. Nothing is promised about what it does elsewhere, about records
// that a producer wrote twice, and about a database that loses what it has confirmed without its
// position.
//
// # How
//
// A batch is one transaction. It locks the row of the shard, skips the records that the position in
// the row covers, moves the position, calls the function with what is left, and commits. Two
// workers that both believe to own a shard take turns by that lock, and the later one finds the
// records covered. A COMMIT of which nobody knows whether it took effect is an error; weir calls
// again, and the row says what happened. Reading begins where the row says, so a database that is
// set back to a backup while no worker runs is given what it has lost. One that is set back under
// workers ends Run with [ErrSetBack].
//
// # Records that are given up
//
// A function that fails with [weir.FailedAt] is called again with what comes before that record, in
// a transaction of its own; without it what fails is the batch as a whole, which
// [weir.GiveUp].Bisect takes apart. Wrap the destination of letters with [Sink.Letters]: else the
// position of the sink stays before a record that was given up until a later one is done, and a
// worker that starts in between handles it again.
//
// # Databases
//
// Postgres 9.6, MySQL 8.0, MariaDB 10.3 or SQLite 3.24, or newer. The user needs SELECT, INSERT,
// UPDATE and DELETE on the table. On Postgres, where a process that vanishes inside a transaction
// would keep its locks for hours, a transaction may be idle for [Options].MaxIdle. On MySQL the
// data source name has to see to that (go-sql-driver/mysql: wait_timeout=60); a statement there
// that commits by itself, such as CREATE TABLE, has no place in the function. SQLite has one writer
// at a time: the transactions of a sink queue up.
//
// A COMMIT that is not answered is given up after 10 s, and the next try finds out what became of
// it. Statements of the function last as long as the contexts that it gives them.
package sqlsink
