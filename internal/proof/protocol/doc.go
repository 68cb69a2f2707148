// Package protocol is the coordination protocol as a model, small enough that every reachable state
// is visited. It is only used by its tests: `make model`, and a part of them with every test.
//
// # What a state is
//
// A state contains the rows of the store (sessions, leases, the leader), the view of each process
// (its terms with their epochs, and the age of its trust by its own clock), answers in flight,
// calls that hang in the network, and the remaining faults. A process is one session: a worker that
// crashes, or learns that its session is over, returns as another one.
//
// Growing numbers are kept as distances. An epoch is "current", "previous" or "older"; a beat count
// or a term is "still current" or not. The store's conditions need no more, so the number of states
// is finite without a limit on how often a lease changes its owner. States that differ only by the
// names of sessions or leases are one state (canonical), and irrelevant data is cleared (settle). A
// state is identified by a hash of 128 bits.
//
// # Steps
//
// Each step is one call of the store with its decision, the arrival of an answer, or a tick. In the
// code a call takes time, but the coarser steps omit nothing:
//
//   - A beat is sent when the store carries it out. An earlier one is trusted for less time, and is
//     otherwise the same; one whose sender has abandoned it by then is a late call.
//   - A view, the plan and its Apply are one step, or the Apply is a late call. Late calls arrive
//     at any later time, whatever happened since: a deposed leader does that, and two at once do.
//   - A lost request is a beat that was never sent, and a worker may be arbitrarily slow. So only
//     lost answers are separate faults.
//   - The leader makes any decision that lease.Plan could ever make, not only the preferred one.
//   - A worker may return a lease, and campaign, at any time.
//
// # Time
//
// The protocol needs one property of time: trust, prolonged by the drift of the clocks, ends before
// the failover time has passed. So the model has ticks, Trust (the greatest age of a beat that is
// still trusted), Failover (the least age of a count that proves a death, and of a Tell that makes
// a revocation ripe) and drift, which is a tick that one process misses or that only the watching
// processes count. Trust + 1 + 1 = Failover: one tick of drift is tolerated, and a tick less
// anywhere is found at once (TestPlantedBugsAreFound). Between two ticks any order is possible.
//
// Whole ticks are enough by the argument of digital clocks (Henzinger, Manna, Pnueli, 1992): every
// bound is closed ("trusts up to an age", "acts from an age on") and between two events on one
// clock, so a run with events between the ticks can be moved onto the ticks without violating a
// bound. The code's trust ends just before its limit, and so does the model's. The ratio differs
// from the code's (0.9): it only has to be large enough, and the drift is scaled with it.
package protocol
