// Package redisstore keeps leases in Redis 6.2 or newer, or Valkey. It implements [lease.Store]:
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	store, err := redisstore.New(client, redisstore.Options{})
//
// Any client of go-redis will do: of one server, of Sentinel, of a cluster. Nothing needs to be
// made in the database. An application is five keys in one slot, named PREFIX{APPLICATION}:what.
//
// # What a call costs
//
// Every call is one script, so it takes effect whole or not at all, and one round trip. An idle
// beat reads and writes the session's row and reads the leases that the session holds, however many
// there are of others.
//
// # What Redis has to keep
//
// Leases are progress, not a cache. The server must not evict them (maxmemory-policy noeviction, or
// one of the volatile ones: the keys never expire), which the first call makes sure of where it may
// ask, and has to keep them over a restart (appendonly yes), which [Store.Warnings] tells. With
// appendfsync everysec a crash of the machine loses a second of writes, and with a replica that is
// promoted those that had not reached it.
//
// # What a restart or failover does
//
// Whoever answers next may have forgotten who holds what. Each script therefore compares the run of
// the server (run_id) with the one that wrote the application last. When it is another one, all
// sessions are over, and everything belongs to a session that never beats until the leader finds it
// dead, which takes as long as anybody may go on trusting what he was told before. So:
//
//   - No two workers trust one lease, and epochs are never given out twice: they jump by 2^20.
//   - Checkpoints that were lost are handled again. Nothing is skipped.
//   - Every restart, failover and move of the application's slot in a cluster stops the application
//     for about the failover time and two beats, where the other stores go on at once.
//
// One gap cannot be seen from a script: an old primary that is cut off from its replicas but not
// from its workers goes on answering them while a replica has been promoted. [Options.Replicas]
// closes it: a call only succeeds when so many replicas have its writes, and a replica that was
// promoted does not follow the old primary any more. With more than one replica, let it be all of
// those that may be promoted. min-replicas-to-write makes the window small, but does not close it.
//
// A server that hides its run_id gives none of this; [Store.Warnings] tells.
//
// # What the client prints
//
// go-redis writes lines of its own to standard error, for instance when a connection cannot be
// made; every such failure is also an error of a call, so nothing is lost by logging.Disable of its
// package logging, or by redis.SetLogger with a logger of yours. Both are for the whole process, so
// this package calls neither. The command does without these lines.
package redisstore
