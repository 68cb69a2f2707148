// Package lease defines how workers share shards. It contains the types of leases, the contract of
// a store of leases ([Store]), and the decision about which leases move ([Plan]). The package does
// no I/O and reads no clock. Other packages implement [Store].
//
// # Leases and epochs
//
// A [Lease] is the right to read one shard. At most one session owns it. A session is one start of
// one worker. The epoch of a lease increases with every change of owner and is a fence: every write
// of an owner contains the epoch at which it got the lease. The store rejects a write with any
// other epoch.
//
// # The heartbeat
//
// A worker does not renew its leases one by one. It makes one round trip to the store per heartbeat
// interval. The request ([Report]) shows that the worker is alive. It contains the worker's
// progress and the leases that the worker releases. The answer ([Orders]) lists the leases that the
// worker holds. These leases are valid for the failover time minus a margin. The worker measures
// this time on its own monotonic clock and wall clock, from just before it sent the heartbeat. If
// no heartbeat succeeds, the worker stops reading by itself, before another worker may start.
//
// # Death without clocks
//
// weir never compares two clocks. The leader counts a session as dead when the session's heartbeat
// count has not changed for the failover time. The leader measures this time on its own monotonic
// clock, and only over periods in which its own reads succeeded ([Watch]). It then ends the
// session, on the condition that the count is still the same. A later heartbeat of that session
// fails with [ErrSessionOver], and the worker starts a new session without leases.
//
// Every other worker watches sessions in the same way, from the answers to its own heartbeats
// ([Follow]). A worker that becomes the leader continues with these observations. Workers that died
// together with the leader are therefore found at the same time as the leader.
//
// # Moving a lease
//
//	free, or its session has ended   Assign: at once
//	its session lives                Handoff: the request is stored; the owner drains, saves, and
//	                                 releases to the heir
//	the handoff takes too long       Revoke: the lease has no owner, but stores the session that it
//	                                 was taken from, until that session acknowledges (or the
//	                                 failover time has passed); only then Assign
//
// Each step is one write on the condition that the epoch is unchanged. The rows show an unfinished
// move. If the leader dies, the next leader finishes the move. Two workers may both believe for a
// moment that they lead. That is harmless.
//
// An operator can empty a worker that keeps running ([Drain]), or stop all reading of a stream for
// a while ([Pause]). Both actions use handoffs. The heir of a [Pause] is [Nobody]. The store keeps
// pauses, so they outlive all workers.
//
// # Load
//
// Workers report the throughput of their shards as a class on a logarithmic scale ([Load]), and the
// measured value for operators ([Lease.Throughput]). Plans use the class, only for balancing.
// [Watch] removes its noise and excludes leases that moved recently.
//
// # Planning
//
// [Plan] is a pure function from observations to actions. Its plans are balanced and sticky and
// make the fewest moves. They respect the cap of each worker, and never assign a child before its
// parents are done. [Explain] returns the reasons.
package lease
