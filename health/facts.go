package health

import "time"

// Facts is the input of [Conclude]: what is known about an application at one moment. Zero fields
// are unknown, except where a comment says otherwise. A Facts is a plain value.
type Facts struct {
	// App is the name of the application, for the commands of the next steps. It must be set.
	App string
	// Now is the moment. It must be set.
	Now time.Time
	// Shards contains all shards, also the finished ones, in any order.
	Shards []ShardFacts

	// Workers is the number of live workers, and Led reports whether one of them leads.
	Workers int
	Led     bool
	// Leases is the number of shards that the live workers hold. MaxLeases is the number that they
	// may hold together, or 0 for no limit.
	Leases, MaxLeases int

	// Died contains the workers whose death was seen lately, in any order.
	Died []Death

	// DeadLettered is the number of records that the live workers dead-lettered or skipped lately.
	DeadLettered int

	// PausedApp reports that the whole application is paused, and not only some of its streams.
	PausedApp bool
	// Pauses contains who paused the application and its streams, and when, as far as it is known.
	Pauses []Pause

	// StoreSilent is the time since which the store has not answered. It is zero if it answers.
	StoreSilent time.Time
	// NoLag is why no lag is known, such as the error of Kinesis, or "".
	NoLag string
	// HideErrors leaves the texts of errors out of the verdict, because they come from code of the
	// user.
	HideErrors bool
}

// Death is the death of a worker: its heartbeats ended, and it did not stop in order.
type Death struct {
	Worker string    // its name
	At     time.Time // when its last heartbeat was seen
	// About reports that At is from the history, and accurate to a minute.
	About bool
}

// ShardFacts is what is known about a shard.
type ShardFacts struct {
	Named
	// Owner is the name of the worker that holds the shard, or "".
	Owner string
	// Doing is a trouble that the shard's owner reports, and DoingSince is when it began. Doing is
	// [NoReason] if the owner reports none.
	Doing      Reason
	DoingSince time.Time
	// Attempts is the number of consecutive failures that the owner reports.
	Attempts int
	// CutOff reports that the owner says that it can read none of its shards.
	CutOff bool
	// Load is the throughput of the shard in bytes per second. It is negative if unknown.
	Load float64
	// Recent is the history of the last [RecentMinutes].
	Recent Recent

	fault   fault   // what Err says
	refused refusal // the call that AWS refused, if fault is faultDenied
}

// RecentMinutes is the time that a [Recent] covers, in minutes. It is long enough to contain a few
// samples, and short enough to show the present.
const RecentMinutes = 5

// Recent summarizes the samples that the owners of a shard took in the last [RecentMinutes].
type Recent struct {
	Minutes   int // number of samples, one a minute; 0 means that nothing is known
	Busy      int // percentage of the time in which the handler ran, 0 to 100
	Throttled int // percentage of the time in which reading waited because of throttling, 0 to 100
	Failing   int // number of samples in which the handler failed
	Unread    int // number of samples in which reading failed for another reason than throttling
}

// Add adds a sample. busy and throttled are percentages.
func (r Recent) Add(busy, throttled int, failing, unread bool) Recent {
	n := r.Minutes
	next := Recent{
		Minutes: n + 1, Busy: (r.Busy*n + busy + n/2) / (n + 1), Failing: r.Failing,
		Unread:    r.Unread,
		Throttled: (r.Throttled*n + throttled + n/2) / (n + 1),
	}
	if failing {
		next.Failing++
	}
	if unread {
		next.Unread++
	}
	return next
}
