// Package lease says how workers share shards: what a lease is, what a store of leases has to do,
// and which lease should move where. It is pure but for the [Store] contract, which others
// implement.
//
// # Leases and epochs
//
// A [Lease] is the right to read one shard, owned by at most one session (one start of one worker).
// Its epoch grows with every change of owner and fences: whatever an owner writes carries the epoch
// it was given, and the store refuses all but the current one.
//
// # The beat
//
// A worker does not renew its leases one by one. Once per beat interval it reports, in one round
// trip, that it lives, how far it got and what it gives back ([Report]); the answer says what it
// holds ([Orders]). It trusts those leases from the moment before that beat was sent until the
// failover time, less a margin, has passed on its monotonic clock. When no beat comes through it
// stops by itself, before anybody else may start.
//
// # Death without clocks
//
// No two clocks are ever compared. The leader counts a session as dead when its beat count has not
// moved for the failover time on the leader's own monotonic clock, in stretches during which the
// leader's reads succeeded ([Watch]). It then ends the session under the condition that the count
// is still the one it saw. A beat that was under way is answered with [ErrSessionOver], and the
// worker starts anew with empty hands.
//
// Every other worker counts in the same way, from the answers to its own beats ([Follow]), the
// leader's beats and all others. One that takes over goes on from there: those that died with the
// leader are found when it is.
//
// # Moving a lease
//
//	free, or its session has ended   Assign: given out at once
//	its session lives                Handoff: the wish is written; the owner drains, saves, and releases to the heir
//	the hand-off takes too long      Revoke: no owner any more, but it names whom it was taken from, until that session
//	                                 acknowledges (or the failover time has passed); only then Assign
//
// Each step is one conditional write on the epoch that was seen, visible in the rows while it is
// half done, and done again by the next leader should this one die. Two workers may believe for a
// moment that they lead; nothing breaks.
//
// An operator may want a worker emptied though it runs on ([Drain]), or a stream read by nobody for
// a while ([Pause]): the same hand-offs do that, the latter to [Nobody]. What is paused is in the
// store, not in a worker, so it outlives all of them.
//
// # Load
//
// Workers report what their shards bring as a class on a logarithmic scale ([Load]). It decides
// about nothing but balance. [Watch] takes its noise out, and keeps leases that moved lately where
// they are.
//
// # Planning
//
// [Plan] is one pure function from what was seen to what to do: balanced, sticky, with the fewest
// moves, within each worker's cap, and never a child before its parents. [Explain] says why.
package lease
