// Package sqlstore keeps leases in a SQL database that the caller opens with the driver of his choice. It implements
// [lease.Store] for SQLite, so that many processes of one machine share a stream through one file:
//
//	db, err := sql.Open("sqlite", "/var/lib/shop/leases.db") // modernc.org/sqlite; mattn/go-sqlite3 is "sqlite3"
//	...
//	store, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
//	...
//	err = store.Migrate(ctx) // once, by whoever sets the application up
//
// # Transactions
//
// Every call is one transaction: it takes effect whole or not at all, also when the process is killed in the midst of
// it. A call whose answer got lost may still have taken effect, as the contract allows. Calls wait for their turn while
// others write, for as long as their context lasts, or 30 seconds if that has no deadline.
//
// # SQLite
//
// Nothing needs to be said in the data source name; the path of the file will do. [Store.Migrate] switches the file to
// write-ahead logging, which it remembers, so that readers and the writer do not wait for each other. Whatever the
// driver's default is, the store sets two things on the connection that it takes for a transaction: a short busy_timeout,
// so that waiting ends with the context, and before it writes synchronous=FULL, so that a checkpoint that was confirmed
// survives a power failure. Give the store a *sql.DB of its own if the rest of the program wants other settings.
//
// The file has to lie on a local disk: file locks of network file systems are not to be relied upon, and neither is
// their shared memory. A database in memory (":memory:") is another one for each connection; use memstore instead.
//
// # What a beat costs
//
// An idle beat is one transaction of three statements: it counts the beat on the session's row and reads the leader and,
// by an index, the leases of the session. It writes no lease. A checkpoint updates the lease's row.
package sqlstore
