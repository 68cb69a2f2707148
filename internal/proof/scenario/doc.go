// Package scenario measures coordination. It measures how long shards are silent when workers die,
// leave, join and are replaced, how many leases move, and how soon new shards are read. Its tests
// are the scenarios, most of them in virtual time. The package itself checks the records of the
// handlers and prints tables. It shares no code with the code that it checks.
package scenario
