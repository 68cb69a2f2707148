// Package redisstore keeps leases in Redis 6.2 or newer, or Valkey. It implements [lease.Store]:
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	store, err := redisstore.New(client, redisstore.Options{})
//
// Any client of go-redis can be used: for one server, Sentinel, or a cluster. The database needs no
// preparation. An application is five keys in one slot, named PREFIX{APPLICATION}:what.
//
// # Cost of a call
//
// Every call is one script, so it takes effect as a whole or not at all, and needs one round trip.
// An idle heartbeat reads and writes the session's row and reads the leases that the session holds.
// The number of other leases does not matter.
//
// # Requirements
//
// Leases are progress, not a cache. The server must not evict them: use maxmemory-policy
// noeviction, or one of the volatile policies, because the keys never expire. The first call checks
// this if the settings can be read. The server must keep them over a restart (appendonly yes),
// which [Store.Warnings] checks. With appendfsync everysec a crash of the machine loses a second of
// writes. A replica that is promoted lacks the writes that had not reached it.
//
// # Restarts and failovers
//
// After a restart or failover the server may have lost the latest owners. Each script therefore
// compares the server's run_id with the one that last wrote the application. If it differs, all
// sessions are over, and all leases belong to a session that never sends a heartbeat until the
// leader finds it dead. That takes as long as any worker may trust earlier orders. The consequences
// are:
//
//   - No two workers trust one lease, and epochs are never reused: they jump by 2^20.
//   - Records after a lost checkpoint are handled again. Nothing is skipped.
//   - Every restart, failover and move of the application's slot in a cluster stops the application
//     for about the failover time and two heartbeats. With the other stores it continues at once.
//
// A script cannot detect one case: an old primary that is cut off from its replicas but not from
// its workers continues to answer them while a replica has been promoted. [Options.Replicas] closes
// this gap: a call only succeeds if this many replicas have its writes, and a promoted replica does
// not follow the old primary any more. If there are several replicas, use the number of all that
// may be promoted. min-replicas-to-write makes the gap smaller, but does not close it.
//
// A server that hides its run_id gives none of these guarantees. [Store.Warnings] reports that.
//
// # Output of the client
//
// go-redis writes lines to standard error, for example if a connection fails. Every such failure is
// also an error of a call, so nothing is lost by calling logging.Disable of its package logging, or
// redis.SetLogger with your own logger. Both affect the whole process, so this package calls
// neither. The command disables these lines.
package redisstore
