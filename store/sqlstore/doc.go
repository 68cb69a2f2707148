// Package sqlstore keeps leases in a SQL database that the caller opens with any driver. It
// implements [lease.Store] for SQLite, where the processes of one machine share a file, and for
// Postgres, MySQL and MariaDB, for the processes of many machines:
//
//	db, err := sql.Open("sqlite", "/var/lib/shop/leases.db") // modernc.org/sqlite; mattn/go-sqlite3 is "sqlite3"
//	...
//	store, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
//	...
//	err = store.Migrate(ctx) // once, when the application is set up
//
// Only Migrate creates tables. If the program may not create them, an administrator runs the
// statements of [Store.Schema]. If tables are missing, a call fails with [lease.ErrSetup] and says
// so. The same happens with tables of an older version, until Migrate was called again or the
// statements of [Store.SchemaSince] were run. Programs of the previous version work with the newer
// tables and may start on them. An upgrade therefore begins with the tables, and the program can be
// rolled back without them.
//
// # Transactions
//
// Every call is one transaction, except ordinary heartbeats on MySQL. It takes effect as a whole or
// not at all, even if the process is killed during it. A call whose answer was lost may have taken
// effect, as the contract allows. While others write, a call waits until its context ends, or for
// 30 seconds if the context has no deadline.
//
// # Postgres and MySQL
//
//	db, err := sql.Open("pgx", "postgres://weir@db/shop") // github.com/jackc/pgx/v5/stdlib
//	db, err := sql.Open("mysql", "weir@tcp(db)/shop?interpolateParams=true") // github.com/go-sql-driver/mysql
//
// The store does not prepare statements. pgx caches them itself. MySQL's driver needs
// interpolateParams: without it each statement takes three round trips instead of one. The names of
// the tables begin with [Options].Prefix, and they are in Options.Schema.
//
// The settings synchronous_commit and innodb_flush_log_at_trx_commit determine whether the server
// waits for the disk. Turn that off only if a crash of the server's machine may undo confirmed
// writes. Replication is also a matter of the server. A failover to a replica that lacks confirmed
// transactions goes back in time, and the store cannot notice that: use synchronous replication.
//
// An ordinary heartbeat is one statement on Postgres. On MySQL it is two, or three with
// checkpoints, and each is a separate transaction. Every other call is a transaction at READ
// COMMITTED that locks the rows it reads, beginning with that of the application. That is
// sufficient, because such transactions of one application take turns, and a stricter isolation
// would not detect anything else. Ordinary heartbeats run in parallel to them. Their writes are
// conditional, row by row: the session must not have ended, and owner, epoch and position must
// match. Deadlocks, and rows that two transactions create at once, are retried until the context
// ends. The store never uses a server's clock.
//
// # SQLite
//
// The path of the file is sufficient as data source name. [Store.Migrate] switches the file to
// write-ahead logging permanently, so that readers and the writer do not wait for each other. The
// store sets two options on the connection of each transaction, whatever the driver's defaults are:
// a short busy_timeout, so that waiting ends with the context, and synchronous=FULL before it
// writes, so that a confirmed checkpoint survives a power failure. Use a separate *sql.DB for the
// store if the rest of the program needs other settings.
//
// If the file is deleted, moved or replaced while workers use it, the next call notices that. The
// workers stop trusting their leases at once, and their calls fail with an error that says so,
// until the same file is back. The store does not create a new file in its place.
//
// The file must be on a local disk, because the file locks and shared memory of network file
// systems are unreliable. A database in memory (":memory:") is separate for each connection: use
// memstore instead.
//
// # Cost of a heartbeat
//
// On SQLite an idle heartbeat is one transaction of three statements. It increments the heartbeat
// count in the session's row, reads the leader, and reads the leases of the session by an index. It
// writes no lease. A checkpoint updates the lease's row.
package sqlstore
