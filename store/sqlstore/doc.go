// Package sqlstore keeps leases in a SQL database that the caller opens with the driver of his
// choice. It implements [lease.Store] for SQLite, so that many processes of one machine share a
// stream through one file, and for Postgres and MySQL or MariaDB, so that those of many machines
// do:
//
//	db, err := sql.Open("sqlite", "/var/lib/shop/leases.db") // modernc.org/sqlite; mattn/go-sqlite3 is "sqlite3"
//	...
//	store, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
//	...
//	err = store.Migrate(ctx) // once, by whoever sets the application up
//
// Tables are never made unasked. Who may not make them gives [Store.Schema] to somebody who may; a
// call that misses them fails with [lease.ErrSetup] and says so. So does one that finds tables of
// an older version, until Migrate was called again or the statements of [Store.SchemaSince] were
// run. Programs of the version before work with the newer tables and may start on them, so an
// upgrade begins with the tables and may be taken back without them.
//
// # Transactions
//
// Every call is one transaction, but for ordinary beats on MySQL: it takes effect whole or not at
// all, also when the process is killed in the midst of it. A call whose answer got lost may still
// have taken effect, as the contract allows. Calls wait for their turn while others write, for as
// long as their context lasts, or 30 seconds if that has no deadline.
//
// # Postgres and MySQL
//
//	db, err := sql.Open("pgx", "postgres://weir@db/shop") // github.com/jackc/pgx/v5/stdlib
//	db, err := sql.Open("mysql", "weir@tcp(db)/shop?interpolateParams=true") // github.com/go-sql-driver/mysql
//
// Statements are not prepared by the store: pgx keeps them by itself, and MySQL's driver needs
// interpolateParams, without which each takes three round trips instead of one. The tables have
// [Options].Prefix in their names and lie in Options.Schema. Wait for no disk only if a crash of
// the server's machine may undo what was confirmed: synchronous_commit and
// innodb_flush_log_at_trx_commit are the server's business. So are replicas: a failover to one that
// lacks confirmed transactions goes back in time, and nothing here notices; use synchronous
// replication.
//
// An ordinary beat is one statement on Postgres, whatever it reports; on MySQL two, three with
// checkpoints, each a transaction of its own. Everything else is a transaction at READ COMMITTED
// that locks the rows it reads, the application's first. That is enough: such transactions of one
// application take turns, so there is nothing that a stricter isolation could find; ordinary beats
// run beside them, and what they write is conditional, row by row, on the session having not ended,
// and on owner, epoch and position. Deadlocks and rows that two make at once are tried again until
// the context ends. No server's clock is ever asked.
//
// # SQLite
//
// Nothing needs to be said in the data source name; the path of the file will do. [Store.Migrate]
// switches the file to write-ahead logging, which it remembers, so that readers and the writer do
// not wait for each other. Whatever the driver's default is, the store sets two things on the
// connection that it takes for a transaction: a short busy_timeout, so that waiting ends with the
// context, and before it writes synchronous=FULL, so that a checkpoint that was confirmed survives
// a power failure. Give the store a *sql.DB of its own if the rest of the program wants other
// settings.
//
// A file that is deleted, moved or replaced while workers use it is noticed with the next call:
// they stop trusting their leases at once and their calls fail, saying so, until the very file is
// back. Nothing is made in its place.
//
// The file has to lie on a local disk: file locks of network file systems are not to be relied
// upon, and neither is their shared memory. A database in memory (":memory:") is another one for
// each connection; use memstore instead.
//
// # What a beat costs
//
// On SQLite an idle beat is one transaction of three statements: it counts the beat on the
// session's row and reads the leader and, by an index, the leases of the session. It writes no
// lease. A checkpoint updates the lease's row.
package sqlstore
