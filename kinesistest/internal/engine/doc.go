// Package engine holds the state of the embedded Kinesis: streams, shards, records, consumers, tags
// and limits. It has no HTTP, no goroutines and no timers. Some state changes with time: a stream
// becomes ACTIVE, a record expires, a limit recovers. The engine computes such changes when the
// state is read.
//
// A call has three steps. [Request.Fields] decodes the request, [Engine.Target] returns the
// resources that the request names, and [Engine.Do] carries the call out. A SubscribeToShard call
// creates a [Subscription], which the caller then drives. [Engine.Next] returns the next event or
// the time to wait, and [Subscription.Woken] signals that the wait can end early.
package engine
