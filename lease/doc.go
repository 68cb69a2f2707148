// Package lease defines how workers share shards: what a lease is, what a store of leases must do,
// and which lease should move where. Everything in it is pure. Other packages implement the [Store]
// contract.
//
// # Leases and epochs
//
// A [Lease] is the right to read one shard. At most one session (one start of one worker) owns it.
// Its epoch increases with every change of owner and acts as a fence: every write of an owner
// carries the epoch that the owner was given, and the store refuses writes with any other epoch.
//
// # The heartbeat
//
// A worker does not renew its leases one by one. Once per heartbeat interval it makes one round
// trip. The [Report] says that the worker is alive, how far it has read, and which leases it gives
// back. The answer lists the leases that it holds ([Orders]). The worker trusts those leases until
// the failover time, less a margin, has passed on its monotonic clock, counted from the moment
// before it sent the heartbeat. If no heartbeat succeeds, it stops by itself before another worker
// may start.
//
// # Death without clocks
//
// No two clocks are ever compared. The leader counts a session as dead when the session's heartbeat
// count has not moved for the failover time. It measures that on its own monotonic clock, and only
// over periods in which its own reads succeeded ([Watch]). It then ends the session, under the
// condition that the count is still the one it saw. A heartbeat of that session that arrives later
// is answered with [ErrSessionOver], and the worker starts a new session without leases.
//
// Every other worker watches in the same way, from the answers to its own heartbeats ([Follow]). A
// worker that becomes the leader continues with these observations. Workers that died together with
// the leader are therefore found at the same time as the leader.
//
// # Moving a lease
//
//	free, or its session has ended   Assign: given out at once
//	its session lives                Handoff: the request is written; the owner drains, saves, and releases to the heir
//	the hand-off takes too long      Revoke: the lease has no owner, but names the session that it was taken from, until
//	                                 that session acknowledges (or the failover time has passed); only then Assign
//
// Each step is one conditional write on the epoch that the leader saw. A half-finished move is
// visible in the rows, and if the leader dies, the next leader finishes it. Two workers may believe
// for a moment that they lead. That does no harm.
//
// An operator may want to empty a worker that keeps running ([Drain]), or stop all reading of a
// stream for a while ([Pause]). Both use the same hand-offs, [Pause] with the heir [Nobody]. Pauses
// are stored in the store and not in a worker, so they outlive all workers.
//
// # Load
//
// Workers report the throughput of their shards as a class on a logarithmic scale ([Load]). It is
// used only for balancing. [Watch] removes its noise and keeps leases that moved recently where
// they are.
//
// # Planning
//
// [Plan] is one pure function from observations to actions. The plan is balanced and sticky, makes
// the fewest moves, respects the cap of each worker, and never assigns a child before its parents
// are done. [Explain] gives the reasons.
package lease
