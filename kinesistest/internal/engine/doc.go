// Package engine is the state of the embedded Kinesis: streams, shards,
// records, consumers, tags and the limits on using them. It knows nothing of
// HTTP, starts no goroutine and no timer: what time brings about (a stream
// becomes ACTIVE, a record leaves the retention period, a limit recovers) is
// worked out when somebody looks.
//
// A call goes through three steps. [Request.Fields] decodes it, [Engine.Target]
// tells what it is about, and [Engine.Do] carries it out. A [Subscription] that a
// call made is driven by whoever made the call: [Engine.Next] tells what is to
// be sent or how long to wait, and [Subscription.Woken] when not to wait longer.
package engine
