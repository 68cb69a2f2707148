// Package protocol is a model of the coordination protocol. It is small enough to visit every
// reachable state. Only its tests use it: `make model` runs all of them, and an ordinary test run
// runs a part of them.
//
// # What a state is
//
// A state contains the rows of the store: sessions, leases and the leader. It contains the view of
// each process: its terms with their epochs, and the age of its last successful heartbeat by its
// own clock. It also contains answers in flight, calls that hang in the network, and the remaining
// faults. A process is one session. A worker that crashes, or learns that its session is over,
// returns as another process.
//
// Growing numbers are stored as distances. An epoch is "current", "previous" or "older". A
// heartbeat count or a leader's epoch is either "still current" or not. The conditions of the store
// depend on nothing else. So the number of states is finite, although a lease may change its owner
// any number of times. States that differ only by the names of sessions or leases are one state
// (canonical). Irrelevant data is cleared (settle). A hash of 128 bits identifies a state.
//
// # Steps
//
// Each step is one call of the store with its decision, the arrival of an answer, or a tick. In the
// code a call takes time, but the coarser steps lose no behaviour:
//
//   - A heartbeat is sent at the moment when the store carries it out. If it had been sent earlier,
//     the only difference would be that its leases are valid for less time. A heartbeat that its
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
// The protocol needs one property of time: lease validity must end before the failover time has
// passed, even if the drift of the clocks prolongs it. So the model has ticks and three quantities.
// Validity is the greatest age of a worker's last successful heartbeat at which its leases are
// still valid. Failover is the least age of an unchanged count that proves a death. It is also the
// least age of a Tell after which a revoked lease can be assigned. Drift is a tick that one process
// misses, or that only the watching processes count. Validity + 1 + 1 = Failover, so the protocol
// tolerates one tick of drift. The search finds a violation if leases are valid for a tick longer,
// if failover takes a tick less, or if clocks drift by a second tick (TestPlantedBugsAreFound).
// Between two ticks any order is possible.
//
// Whole ticks are enough, by the argument of digital clocks (Henzinger, Manna, Pnueli, 1992). Every
// bound is closed ("valid up to an age", "acts from an age on") and is between two events on one
// clock. So the events of a run can be moved from between the ticks onto the ticks without
// violating a bound. Lease validity ends just before its limit, in the code and in the model. The
// ratio of validity to failover is 0.9 in the code, and differs in the model. The ratio only has to
// be large enough, because the drift is scaled with it.
package protocol
