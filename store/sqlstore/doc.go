// Package sqlstore keeps leases in a SQL database that the caller opens with any driver. It
// implements [lease.Store]. With SQLite, the processes of one machine share a file. With Postgres,
// MySQL and MariaDB, the processes of many machines share a database:
//
//	db, err := sql.Open("sqlite", "/var/lib/shop/leases.db") // modernc.org/sqlite; mattn/go-sqlite3 is "sqlite3"
//	...
//	store, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
//	...
//	err = store.Migrate(ctx) // once, when the application is set up
//
// Only Migrate creates tables. If the program may not create them, an administrator runs the
// statements of [Store.Schema]. If tables are missing, calls fail with [lease.ErrSetup] and an
// explanation. The same happens with tables of an older version. To upgrade them, call Migrate
// again or run the statements of [Store.SchemaSince]. Programs of the previous version work with
// the newer tables and may start on them. Begin an upgrade with the tables. A rollback of the
// program does not need a rollback of the tables.
//
// # Transactions
//
// Every call that writes is one transaction, except ordinary heartbeats on MySQL. The transaction
// takes effect as a whole or not at all, even if the process is killed during the call. If the
// answer of a call was lost, the call may have taken effect, as the contract allows. A call waits
// while other processes write. It fails if its context ends, or after 30 seconds if the context has
// no deadline.
//
// # Postgres and MySQL
//
//	db, err := sql.Open("pgx", "postgres://weir@db/shop") // github.com/jackc/pgx/v5/stdlib
//	db, err := sql.Open("mysql", "weir@tcp(db)/shop?interpolateParams=true") // github.com/go-sql-driver/mysql
//
// The store does not prepare statements. pgx caches them itself. MySQL's driver needs
// interpolateParams: without it each statement takes three round trips and not one. The names of
// the tables begin with [Options].Prefix, and they are in Options.Schema.
//
// The settings synchronous_commit and innodb_flush_log_at_trx_commit determine whether the server
// waits for the disk. Turn that off only if a crash of the server's machine may undo confirmed
// writes. Replication is configured on the server as well. If a failover promotes a replica that
// lacks confirmed transactions, the state goes back in time, and the store cannot detect this. Use
// synchronous replication.
//
// An ordinary heartbeat neither starts a session nor resigns leadership, and reports only
// checkpoints and loads. It is one statement on Postgres. On MySQL it is two statements, one more
// for checkpoints with their loads, and one more for loads without a new checkpoint. Each is a
// separate transaction. Every other call that writes is a transaction at READ COMMITTED that locks
// the rows it reads, beginning with the row of the application. Such transactions of one
// application run one after the other, so a stricter isolation level would not help.
//
// Ordinary heartbeats run in parallel to these transactions. Their writes are conditional, row by
// row: the session must not have ended, owner and epoch must match, and the position must be later.
// Deadlocks are retried until the context ends, and so are collisions of two transactions that
// create the same row. The store never uses a server's clock.
//
// # SQLite
//
// The path of the file is sufficient as data source name. [Store.Migrate] switches the file to
// write-ahead logging permanently, so that readers and the writer do not wait for each other.
//
// The store sets two options on the connection of each transaction, whatever the driver's defaults
// are. A short busy_timeout makes waiting end with the context. Before writes, synchronous=FULL
// ensures that a confirmed checkpoint survives a power failure. Use a separate *sql.DB for the
// store if the rest of the program needs other settings.
//
// If the file is deleted, moved or replaced while workers use it, the next call of each worker
// detects that. The worker then considers its leases invalid at once. Calls fail with an error that
// explains the cause, until the same file is back. The store does not create a new file in its
// place.
//
// The file must be on a local disk, because file locks and shared memory are unreliable on network
// file systems. A database in memory (":memory:") is separate for each connection: use memstore for
// that purpose.
//
// # Cost of a heartbeat
//
// On SQLite an idle heartbeat is one transaction of four statements. It increments the heartbeat
// count in the session's row, reads the session's leases by an index, and reads the leader and the
// counts of the other sessions. It writes no lease. A checkpoint updates the lease's row.
package sqlstore
