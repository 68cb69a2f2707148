// Package source defines the types that readers of a shard and consumers of their pages share.
// Readers use polling or fan-out. The types are pages, the status of reading, and the handling of
// refused positions. The package does not use leases, checkpoints or handlers.
package source
