// Package redisstore keeps leases in Redis 6.2 or newer, or Valkey. It implements [lease.Store]:
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	store, err := redisstore.New(client, redisstore.Options{})
//
// Any client of go-redis can be used: for one server, Sentinel, or a cluster. The database needs no
// preparation. An application uses seven keys in one slot, with names of the form
// PREFIX{APPLICATION}:part. Five keys contain the leases and sessions, and two contain the history.
//
// # Cost of a call
//
// Every call of [lease.Store] is one script, so it takes effect as a whole or not at all, and needs
// one round trip. Only [Store.Apply] divides a long list of actions. An idle heartbeat reads and
// writes the session's row, and reads the leases that the session holds and the counts of the other
// sessions. The number of other leases does not matter.
//
// # Requirements
//
// Leases are progress, not a cache. The server must not evict them. Use maxmemory-policy
// noeviction, or one of the volatile policies, because only the keys of the history expire. The
// first call checks the policy if the settings can be read. The server must keep the keys over a
// restart (appendonly yes). [Store.Warnings] checks appendonly. With appendfsync everysec, a crash
// of the machine loses one second of writes. A promoted replica lacks the writes that had not
// reached it.
//
// # Restarts and failovers
//
// After a restart or failover, the server may have lost the latest changes of owners. Each script
// for leases therefore compares the server's run_id with the run_id at the last write to the
// application. If they differ, all sessions are over. All unfinished leases then belong to a
// session that never sends a heartbeat, until the leader finds it dead. That takes at least as long
// as any worker may still act on its leases. The consequences are:
//
//   - No two workers hold the same lease at the same time. Epochs are never reused, because they
//     increase by 2^20.
//   - Records after a lost checkpoint are handled again. No record is skipped.
//   - Every restart, failover and move of the application's slot in a cluster stops the application
//     for about the failover time and two heartbeats. With other stores, the application continues
//     at once.
//
// A script cannot detect one case. An old primary may be cut off from its replicas, but not from
// its workers. The old primary then continues to answer these workers after a replica was promoted.
// [Options.Replicas] closes this gap: a call then only succeeds if this number of replicas have its
// writes, and a promoted replica no longer follows the old primary. With several replicas, use the
// number of all replicas that may be promoted. min-replicas-to-write makes the gap smaller, but
// does not close it.
//
// If a server hides its run_id, none of these guarantees hold. [Store.Warnings] reports that.
//
// # Output of the client
//
// go-redis writes lines to standard error, for example if a connection fails. Every such failure
// also causes an error of a call. You can therefore safely call logging.Disable of go-redis's
// package logging, or redis.SetLogger with your own logger. Both affect the whole process, so this
// package calls neither. The weir command disables these lines.
package redisstore
