// Package protocol is a model of the coordination protocol. It is small enough to visit every
// reachable state. Only its tests use it: `make model` runs all of them, and an ordinary test run
// runs a part of them.
//
// # What a state is
//
// A state contains the rows of the store: sessions, leases and the leader. It contains the view of
// each process: its terms with their epochs, and the age of its trust by its own clock. It also
// contains answers in flight, calls that hang in the network, and the remaining faults. A process
// is one session. A worker that crashes, or learns that its session is over, returns as another
// process.
//
// Growing numbers are stored as distances. An epoch is "current", "previous" or "older". A
// heartbeat count or a term is either "still current" or not. The conditions of the store
// distinguish no more than that. So the number of states is finite, without a limit on how often a
// lease changes its owner. States that differ only by the names of sessions or leases are one state
// (canonical). Irrelevant data is cleared (settle). A hash of 128 bits identifies a state.
//
// # Steps
//
// Each step is one call of the store with its decision, the arrival of an answer, or a tick. In the
// code a call takes time, but the coarser steps lose no behaviour:
//
//   - A heartbeat is sent at the moment when the store carries it out. A heartbeat that was sent
//     earlier would differ in one way: it would be trusted for less time. A heartbeat that its
//     sender has abandoned before this moment is a late call.
//   - A view, the plan and its Apply are one step, or the Apply is a late call. Late calls arrive
//     at any later time, whatever has happened since. A deposed leader makes such calls, and so do
//     two leaders at the same time.
//   - A lost request is a heartbeat that was never sent, and a worker may be arbitrarily slow. So
//     only lost answers are separate faults.
//   - The leader makes any decision that lease.Plan could ever make, not only the preferred one.
//   - A worker may return a lease, and campaign, at any time.
//
// # Time
//
// The protocol needs one property of time: trust must end before the failover time has passed, even
// if the drift of the clocks prolongs it. So the model has ticks and three quantities. Trust is the
// greatest age of a heartbeat that is still trusted. Failover is the least age of a count that
// proves a death, and of a Tell after which a revoked lease can be assigned. Drift is a tick that
// one process misses, or that only the watching processes count. Trust + 1 + 1 = Failover, so one
// tick of drift is tolerated. If trust lasts a tick longer, failover takes a tick less, or clocks
// drift by a second tick, the search finds a violation (TestPlantedBugsAreFound). Between two ticks
// any order is possible.
//
// Whole ticks are enough, by the argument of digital clocks (Henzinger, Manna, Pnueli, 1992). Every
// bound is closed ("trusts up to an age", "acts from an age on") and is between two events on one
// clock. So a run with events between the ticks can be moved onto the ticks without violating a
// bound. The code's trust ends just before its limit, and so does the model's. The ratio of trust
// to failover differs from the code's ratio, which is 0.9. The ratio only has to be large enough,
// because the drift is scaled with it.
package protocol
