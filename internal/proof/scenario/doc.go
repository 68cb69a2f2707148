// Package scenario measures coordination: how long shards are silent when workers die, leave, join
// and are replaced, what moves, and how soon new shards are read. Its tests are the scenarios, most
// of them on a virtual clock; what is here judges what handlers wrote down, and prints tables. It
// shares nothing with the code that it judges.
package scenario
