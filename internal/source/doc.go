// Package source is what those who read a shard, by polling or by fan-out, and those who take what
// was read have in common: pages, how reading stands, and what becomes of a position that the
// service refuses. It knows no lease, no checkpoint and no handler.
package source
