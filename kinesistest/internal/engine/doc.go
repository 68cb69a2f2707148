// Package engine holds the state of the embedded Kinesis: streams, shards, records, consumers, tags
// and limits. It has no HTTP, no goroutines and no timers. Changes over time (a stream becomes
// ACTIVE, a record expires, a limit recovers) are computed when the state is read.
//
// A call has three steps. [Request.Fields] decodes it, [Engine.Target] returns its subject, and
// [Engine.Do] carries it out. The caller drives a [Subscription] that a call created: [Engine.Next]
// returns the next event or how long to wait, and [Subscription.Woken] ends the wait early.
package engine
