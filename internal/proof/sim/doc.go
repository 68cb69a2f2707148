// Package sim runs whole applications of weir in virtual time, one step after another, from a seed:
// real consumers with their planning, beats, leadership, shard loops and checkpoints, over the
// reference store and a model of Kinesis, with everything going wrong that a profile asks for.
//
// # How a seed replays
//
// A simulation lives in a testing/synctest bubble, on one processor. Wherever weir waits for
// something outside of itself (a call to the store or to Kinesis, a call of the handler, the end of
// Run) it parks at the gate. When everything has parked, the driver takes in what has arrived in
// the order of worker, kind, shard and number, decides the fate of each by a hash of the seed and
// that name, and puts what follows from it on a calendar at instants that no two entries share.
// Then it lets the first entry happen, waits until all is quiet again, checks the invariants, and
// goes on. In between, virtual time moves to the next timer of weir. So in one step only the
// goroutines that one event concerns run, and what they do next shows at the gate, sorted. What
// weir leaves to chance (package jitter) is a hash of the seed and the virtual time. What is not
// decided: which of several goroutines of one worker that one event woke runs first. Those touch
// the same state in an order that must not matter; TestSeedsReplay holds that against thousands of
// steps of each profile, in one process and in two.
//
// # What is a model
//
//   - A clock whose rate is r: all durations that the worker is configured with are divided by r.
//     For what depends on them that is exactly the same. Constants of the code (a call's 20 s, for
//     one) keep true time.
//   - A pause holds all answers to a worker's calls, and its handlers' returns, until it is over;
//     its timers go on. Processes that are really frozen are the business of the chaos command.
//   - A crash: from that instant nothing of the worker reaches the store, the service or the log.
//     Its goroutines are ended behind the scene.
package sim
