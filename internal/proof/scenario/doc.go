// Package scenario measures coordination: how long shards are silent when workers die, leave, join
// and are replaced, how many leases move, and how soon new shards are read. Its tests are the
// scenarios, most of them on a virtual clock. The package itself judges the handlers' records, and
// prints tables. It shares no code with the code that it judges.
package scenario
