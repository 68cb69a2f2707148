// Package health computes the state of shards and of an application from a few observations of each
// shard. The weir command, the metrics and the web page use it, so they all report the same states.
//
// The package does no I/O and reads no clock. An observer creates an [Observation] of each shard
// from time to time, and keeps some of them in [Observations]. [Evaluate] rates the observations of
// a shard, and [Sum] rates an application. A shard with lag is rated by whether its lag grows or
// falls, not by its size: a lag of a day that shrinks is fine, and a lag of a minute that grows is
// not. [Options] has the few time limits.
//
// There are three lags. The read lag is how far reading is behind the tip of the shard. The handled
// lag is the age of the oldest record that is not handled. The checkpoint lag is the age of the
// oldest record that would be handled again if the worker died now. The lag of a shard without a
// reader keeps growing.
package health
