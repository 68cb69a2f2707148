// Package source defines what the readers of a shard, by polling or by fan-out, and the consumers
// of their pages share: pages, the status of reading, and the handling of a position that the
// service refuses. It does not use leases, checkpoints or handlers.
package source
