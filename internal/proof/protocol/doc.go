// Package protocol is the coordination protocol as a model, small enough that every state it can
// get into is visited. It has no use but its tests: `make model`, and a part of them with every
// test.
//
// # What a state is
//
// A state is the rows of the store (sessions, leases, the leader), what each process believes (its
// terms with their epochs, and the age of its trust by its own clock), answers that are under way,
// calls that hang in the network, and how many faults are left. A process is one session: a worker
// that crashes, or hears that its session is over, comes back as another.
//
// Numbers that grow for ever are kept as distances. An epoch is "the present one", "the one
// before" or "older"; a beat count or a term is "still the present one" or not. The store's
// conditions ask for no more, so the number of states is finite without any bound on how often a
// lease changes hands. States that differ by the names of sessions or leases alone are one
// (canonical), and what cannot matter any more is cleared (settle). A state is known by 128 bits
// of hash.
//
// # Steps
//
// Each step is one call of the store with its decision, the arrival of an answer, or a tick. That
// is less than what happens in the code, where a call takes time, but leaves nothing out:
//
//   - A beat is sent when the store carries it out. One that is sent earlier is trusted for less
//     long, and is otherwise the same; one whose sender has given up by then is a late call.
//   - A look, the plan and its Apply are one step, or the Apply is a late call. Late calls arrive
//     at any later time, whatever has happened since: that is what a leader does that was deposed,
//     and two at once.
//   - A lost request is a beat that was never sent, and a worker may be as slow as it likes. So
//     only lost answers are faults of their own.
//   - The leader decides anything that lease.Plan might ever decide, not what it prefers.
//   - A worker gives a lease back whenever it likes, and campaigns whenever it likes.
//
// # Time
//
// Of time the protocol needs one thing: trust, prolonged by the drift of the clocks, ends before
// the failover time has passed. So the model has ticks, Trust (the greatest age of a beat that is
// still trusted), Failover (the least age of a count that proves a death, and of a Tell that makes
// a revocation ripe) and drift, which is a tick that one process misses or that only those who
// watch count. Trust + 1 + 1 = Failover: one tick of drift is borne, and a tick less anywhere is
// found at once (TestPlantedBugsAreFound). Between two ticks everything may happen in any order.
//
// That whole ticks are enough is the argument of digital clocks (Henzinger, Manna, Pnueli, 1992):
// every bound is closed ("trusts up to an age", "acts from an age on") and between two events on
// one clock, so that a run in which they fall between the ticks can be moved onto them without
// leaving a bound. The code's trust ends just before its limit, the model's with it. The ratio is
// not that of the code (0.9): only its being enough counts, and the drift is scaled with it.
package protocol
