// Package sim runs whole applications of weir in virtual time, step by step from a seed: real
// consumers with their planning, heartbeats, leadership, shard loops and checkpoints, on the
// reference store and a model of Kinesis, with all faults of a profile.
//
// # How a seed replays
//
// A simulation runs in a testing/synctest bubble, on one processor. Wherever weir waits for
// something outside of itself (a call to the store or to Kinesis, a call of the handler, the end of
// Run) it parks at the gate. When all goroutines have parked, the driver takes the arrived calls in
// the order of worker, kind, shard and number. It decides the fate of each by a hash of the seed
// and that name, and puts the consequences on a calendar at instants that no two entries share.
// Then it lets the first entry happen, waits until all is quiet again, checks the invariants, and
// continues. In between, virtual time advances to weir's next timer. So in one step only the
// goroutines run that one event concerns, and their next calls arrive at the gate, sorted. Random
// choices of weir (package jitter) are a hash of the seed and the virtual time. One order is not
// decided: which of several goroutines of one worker runs first if one event wakes them. Their
// order must not matter; TestSeedsReplay checks that with thousands of steps of each profile, in
// one process and in two.
//
// # What is a model
//
//   - A clock with rate r: all configured durations of the worker are divided by r. For their
//     effects that is exactly the same. Constants of the code (a call's 20 s, for example) keep
//     true time.
//   - A pause delays all answers to a worker's calls, and its handlers' returns, until it is over;
//     its timers continue. The chaos command tests processes that are really frozen.
//   - A crash: from that instant no call or log line of the worker has an effect. Its goroutines
//     are ended in the background.
package sim
