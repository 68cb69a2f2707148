package weir

import "time"

// badFunc reports an invalid option.
type badFunc = func(option, format string, args ...any)

// Batching sets the size of the batches that a handler gets.
type Batching struct {
	// MaxRecords is the largest number of records in one batch, 1 to 10,000. Without
	// [Options].Concurrency it also limits one read. Defaults to 10,000. Lambda calls it BatchSize.
	MaxRecords int
	// MaxBytes is the largest size of the records' Data in one batch, 1 byte to 1 GiB. A larger
	// record is a batch by itself. With 0, the default, only [Options].MaxMemory limits the size.
	MaxBytes int
	// MaxWait is the time for which a batch that is not full waits for more records, 1 ms to 5 min.
	// It counts from the moment at which the first record could have been delivered. With 0, the
	// default, batches do not wait. A waiting batch is delivered early when it reaches MaxRecords,
	// MaxBytes or the shard's share of Options.MaxMemory, when the shard ends or is handed off, and
	// when the worker stops. Lambda calls it MaximumBatchingWindowInSeconds. MaxWait cannot be
	// combined with Options.Concurrency, because a batch of one key does not wait for other keys.
	MaxWait time.Duration
}

// check fills in the defaults and reports invalid values.
func (b *Batching) check(keys bool, bad badFunc) {
	if b.MaxRecords == 0 {
		b.MaxRecords = 10000
	}
	if b.MaxRecords < 1 || b.MaxRecords > 10000 {
		bad("Options.Batching.MaxRecords", "%d must be between 1 and 10,000", b.MaxRecords)
	}
	if b.MaxBytes < 0 || int64(b.MaxBytes) > 1<<30 {
		bad("Options.Batching.MaxBytes", "%d must be between 1 and 1 GiB, or 0 for no limit", b.MaxBytes)
	}
	if b.MaxWait == 0 {
		return
	}
	within("Options.Batching.MaxWait", &b.MaxWait, 0, time.Millisecond, 5*time.Minute, bad)
	if keys {
		bad("Options.Batching.MaxWait", "cannot be combined with Options.Concurrency, whose batches have one key each: leave one of them out")
	}
}

// Polling sets how a [Consumer] or a [Reader] polls shards. Polling has no effect on a shard while
// it is read by fan-out.
type Polling struct {
	// IdleInterval is the pause between two reads of a shard without new records, 200 ms to 1 min.
	// Defaults to 1 s. While there is more to read, weir reads as fast as the service and Share
	// allow. docs/timing.md lists the cases in which the pause is shorter or longer. The KCL calls
	// it idleTimeBetweenReadsInMillis.
	IdleInterval time.Duration
	// Share is this application's share, or this Reader's, of the five reads and 2 MiB a second
	// that all readers of a shard have together, 0.01 to 1. Defaults to 1. If two applications have
	// 0.5 each, neither throttles the other when it has to catch up. With less than 1, an answer
	// has at most the bytes that the share allows in one second, or in the time until the next read
	// if that is longer. Each worker applies the share to each of its shards, so a shard that
	// changes hands may be read one more time.
	Share float64
}

// check fills in the defaults and reports invalid values. options is the name of the options.
func (p *Polling) check(options string, bad badFunc) {
	within(options+".Polling.IdleInterval", &p.IdleInterval, time.Second, 200*time.Millisecond, time.Minute, bad)
	const least = 0.01 // a read every 20 s
	if p.Share == 0 {
		p.Share = 1
	}
	if !(p.Share >= least && p.Share <= 1) { // also if it is not a number
		bad(options+".Polling.Share", "%v must be between %v and 1", p.Share, least)
	}
}

// Retry limits the pause before weir calls a handler again after a failure. The pause doubles with
// each failure, with jitter. Without [Options].OnFailure, a batch is retried until it succeeds.
type Retry struct {
	// MinBackoff is the first pause, 1 ms to 1 h. Defaults to 100 ms.
	MinBackoff time.Duration
	// MaxBackoff is the longest pause, MinBackoff to 24 h. Defaults to 30 s, or to MinBackoff if
	// that is longer.
	MaxBackoff time.Duration
}

// check fills in the defaults and reports invalid values.
func (r *Retry) check(bad badFunc) {
	within("Options.Retry.MinBackoff", &r.MinBackoff, 100*time.Millisecond, time.Millisecond, time.Hour, bad)
	within("Options.Retry.MaxBackoff", &r.MaxBackoff, max(30*time.Second, r.MinBackoff), r.MinBackoff, 24*time.Hour, bad)
}

// Timing sets the times of coordination. All workers of an application need the same
// HeartbeatInterval, FailoverAfter and HandoffTimeout.
type Timing struct {
	// HeartbeatInterval is the time between two heartbeats, with which a worker reports that it
	// lives and saves its progress. 100 ms to 1 min. Defaults to 1 s.
	HeartbeatInterval time.Duration
	// FailoverAfter is the time for which a worker may be silent before others take its shards.
	// While the store is silent, a worker's leases stay valid for nine tenths of this time. 3
	// heartbeat intervals to 1 h. Defaults to 5 s, or to 3 heartbeat intervals if that is longer.
	// The KCL calls it failoverTimeMillis.
	FailoverAfter time.Duration
	// HandoffTimeout is the time that a handler has to finish its batch when a lease moves to
	// another worker. After that, the lease is taken away. A heartbeat interval to 24 h. Defaults
	// to 30 s, or to FailoverAfter if that is longer.
	HandoffTimeout time.Duration
	// StopTimeout is the time that handlers have to finish their batches when Run stops. After
	// that, their contexts end with the cause [ErrStopping]. 1 ms to 24 h. Defaults to 30 s.
	StopTimeout time.Duration
	// StallAfter is the time for which reading a shard may fail, or return no answer, before this
	// worker releases the lease so that another worker can try. 30 s to 24 h, with fan-out at least
	// 2 min. Defaults to 2 min. Each time that the shard stalls again, the time doubles, up to 32
	// times StallAfter. An empty answer counts as progress. Failures that every worker would get do
	// not count: throttling, a refused position, a missing stream. A failing handler does not count
	// either, because weir calls it again. A call of [ShardHandlers].Open or Position that takes
	// StallAfter counts as a stall.
	StallAfter time.Duration
	// HandlerTimeout is the time that one call of the handler may take, 1 s to 24 h. weir checks
	// the time with each heartbeat. When the time is over, the context of the call ends with
	// [ErrStalled]. When the handler has returned, or HandoffTimeout later, the lease goes to
	// another worker, which handles the batch again. 0, the default, is no limit, because with a
	// limit a handler that is only slow might never finish a batch. weir reports a handler that
	// takes longer than StallAfter.
	HandlerTimeout time.Duration
	// ListInterval is the time between two listings of a stream's shards by the leader, while there
	// is no sign of a change. 1 s to 1 h. Defaults to 1 min.
	ListInterval time.Duration
}

// check fills in the defaults and reports invalid values.
func (t *Timing) check(fanOut bool, bad badFunc) {
	in := func(name string, d *time.Duration, fallback, low, high time.Duration) {
		within("Options.Timing."+name, d, fallback, low, high, bad)
	}
	heartbeat := &t.HeartbeatInterval
	in("HeartbeatInterval", heartbeat, time.Second, 100*time.Millisecond, time.Minute)
	in("FailoverAfter", &t.FailoverAfter, max(5*time.Second, 3**heartbeat), 3**heartbeat, time.Hour)
	in("HandoffTimeout", &t.HandoffTimeout, max(30*time.Second, t.FailoverAfter), *heartbeat, 24*time.Hour)
	in("StopTimeout", &t.StopTimeout, 30*time.Second, time.Millisecond, 24*time.Hour)
	shortest := 30 * time.Second // a call may take 20 s
	if fanOut {
		// three subscriptions may be silent for 30 s each, with pauses between them, before the
		// shard is polled
		shortest = 2 * time.Minute
	}
	in("StallAfter", &t.StallAfter, 2*time.Minute, shortest, 24*time.Hour)
	if t.HandlerTimeout != 0 {
		in("HandlerTimeout", &t.HandlerTimeout, 0, time.Second, 24*time.Hour)
	}
	in("ListInterval", &t.ListInterval, time.Minute, time.Second, time.Hour)
}

// within sets the default of a duration and reports a value out of its range.
func within(option string, d *time.Duration, fallback, low, high time.Duration, bad badFunc) {
	if *d == 0 {
		*d = fallback
	}
	if *d < low || *d > high {
		bad(option, "%v must be between %v and %v", *d, low, high)
	}
}
