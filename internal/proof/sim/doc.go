// Package sim runs whole applications of weir in virtual time, step by step. A seed determines each
// run. The consumers are real, with their planning, heartbeats, leadership, shard loops and
// checkpoints. They run on the reference store and on a model of Kinesis. One run of a worker,
// until it stops or crashes, is called a life. A profile selects the faults.
//
// # How a seed replays
//
// A simulation runs in a testing/synctest bubble, on one processor. Whenever weir waits for
// something external, the waiting goroutine parks at the gate. Something external is a call to the
// store, to Kinesis or of the handler, or the end of Run. When all goroutines have parked, the
// driver takes the arrived calls, sorted by worker, kind, shard and number. It decides the fate of
// each call by a hash of the seed and those names. It puts the consequences on a calendar, at times
// that differ for all events. The driver then lets the first event happen, waits until all
// goroutines have parked again, checks the invariants, and continues. In between, virtual time
// advances to weir's next timer.
//
// So in each step only the goroutines affected by one event run. Their next calls arrive at the
// gate and are sorted. Random choices inside weir (package jitter) are a hash of the seed and the
// virtual time.
//
// One order is not determined: if an event wakes several goroutines of a worker, any of them may
// run first. That order must not matter. TestSeedsReplay checks this with thousands of steps of
// each profile, in one process and in two.
//
// # What is a model
//
//   - A clock with rate r: all configured durations of the worker are divided by r, which has
//     exactly the same effect. Constants in the code, for example the 20 s limit of a call, keep
//     true time.
//   - Producers (profile producing) are package producer with a client of the AWS SDK. The driver
//     passes records to them by TryPut, one per step. The service refuses records at random and has
//     no limits per shard. Consumers count each stored copy of a record as a separate record.
//     A producer's judge compares the outcomes with the copies and with what handlers got.
//   - A pause of a worker delays all answers to the worker's calls, and the returns of its
//     handlers. The timers of the worker continue. The chaos command tests processes that are
//     really frozen.
//   - A sink with partitions is package sink with a database that the driver keeps. A transaction
//     locks one row and takes effect at its COMMIT. A COMMIT that is under way when its worker
//     crashes may take effect. A frozen call goes on after its lease is lost.
//   - After a crash, no call or log line of the worker has an effect. Its goroutines are ended in
//     the background.
package sim
