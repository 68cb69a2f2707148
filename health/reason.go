package health

import "fmt"

// Reason is why a shard is in its state: the current activity of its worker in detail, why it has
// no worker, or what the observations show. weir, its command, its metrics and its web page all use
// the words of this package. A Reason is a plain value, and all its methods may be called
// concurrently.
type Reason uint8

const (
	// NoReason is the zero value. It has no words.
	NoReason Reason = iota
	// OtherReason is a reason that this version of weir does not know, because a newer worker
	// reported it. [Observation].Detail has the text of the report.
	OtherReason

	// NotStarted means that the lease was just taken, and that no records were requested yet.
	NotStarted
	// OpeningHandler means that a function of weir.ShardHandlers runs: Open, which makes the term's
	// handler, or Position, which returns the position of the sink.
	OpeningHandler

	// AtTip means that all records are handled. The next read follows after
	// Options.Polling.IdleInterval.
	AtTip
	// Pacing means that there are more records, and that the next read waits for the service's
	// limits.
	Pacing
	// Positioning means that an iterator is requested, for 20 s at most.
	Positioning
	// Requesting means that records are requested or received. Each part of an answer takes 20 s
	// at most.
	Requesting
	// Subscribing means that a subscription is requested, or that weir waits until the service
	// allows one. Only with fan-out.
	Subscribing
	// Subscribed means that the service pushes new records as they are written. Only with fan-out.
	Subscribed

	// InHandler means that the handler runs, for Options.Timing.HandlerTimeout at most if that is
	// set. Its context ends when the lease is lost.
	InHandler
	// StoringDeadLetters means that dead letters are being stored; see weir.FailurePolicy. This
	// counts as handling for Options.Timing.HandlerTimeout.
	StoringDeadLetters

	// ReadFailed means that a read failed. weir tries again after about 10 s at most.
	ReadFailed
	// HandlerFailed means that the handler failed. weir calls it again after
	// Options.Retry.MaxBackoff at most.
	HandlerFailed
	// DeadLettersFailed means that dead letters could not be stored. weir tries again after
	// Options.Retry.MaxBackoff at most.
	DeadLettersFailed
	// NoOtherHandled means that a record fails and is not dead-lettered yet, because the worker has
	// handled no other record since its first failure; see FailurePolicy.OutageGrace.
	NoOtherHandled
	// RateLimited means that a record fails and is not dead-lettered yet, because that would exceed
	// FailurePolicy.MaxPerMinute.
	RateLimited
	// CutOff means that the worker can read no shard, for a reason that does not depend on the
	// shard. It gets no more leases while another worker can take them.
	CutOff

	// AwaitingHandler means that records wait for the handler, and that weir reads no more until
	// the handler takes them.
	AwaitingHandler
	// AwaitingMemory means that Options.MaxMemory has no room for the next records. The shard waits
	// until handlers of other shards give memory back and shards that asked earlier have got
	// theirs.
	AwaitingMemory
	// AwaitingBatch means that a batch that is not full waits for more records, for
	// Options.Batching.MaxWait at most. Reading continues.
	AwaitingBatch
	// Suspected means that workers that had the shard died one after the other; see
	// Options.OnFailure.SuspectAfter. The next record waits before it is handled or dead-lettered:
	// for 15 min or FailurePolicy.OutageGrace at most, or until this worker has tried single
	// records of other shards.
	Suspected
	// AfterStall means that the shard has stalled in this process before. weir begins it again
	// after a pause of Options.Retry.MaxBackoff at most, but not before an abandoned handler of the
	// shard has returned. After Options.Timing.StallAfter it releases the lease.
	AfterStall

	// ClosingHandler means that the term is over, and that ShardHandler.Close runs.
	ClosingHandler
	// Ended means that the shard was read and handled to its end. The next heartbeat saves that.
	Ended
	// Abandoned means that the handler ignores the end of its context, so weir has released the
	// lease without waiting for it. The shard may belong to another worker.
	Abandoned

	// WaitsForParents means that the shard's parents are not finished yet. Problems are reported
	// for the parents.
	WaitsForParents
	// Paused means that an operator has paused the application or the stream.
	Paused
	// NoRoom means that all workers are at their limit of leases.
	NoRoom
	// NoWorker means that no worker is alive.
	NoWorker
	// Unassigned means that workers are alive, but that the shard has no owner yet.
	Unassigned
	// OwnerSilent means that the owner's heartbeats have stopped.
	OwnerSilent
	// NoReader means that workers are alive, but that none of them reads the shard's stream.
	NoReader

	// CheckpointHeld means that the checkpoint is kept in place on purpose although records are
	// handled; see weir.Puller.Hold.
	CheckpointHeld
	// DeadLettered means that the worker recently dead-lettered or skipped records of the shard,
	// which is healthy otherwise.
	DeadLettered
	// NeverObserved means that there was no observation of the shard yet.
	NeverObserved
	// StoreSilent means that the store does not answer, so nothing is known.
	StoreSilent
	// LagUnknown means that no lag of the shard is known.
	LagUnknown
	// RecordsExpired means that records have left the stream before they were handled.
	RecordsExpired
	// RecordsExpire means that unhandled records leave the stream soon.
	RecordsExpire
	// SetBack means that the shard was reset to an earlier position and handles its records again.
	SetBack
	// NoProgress means that records wait and none is handled, for no known reason.
	NoProgress
	// BehindBriefly means that the lag became larger than allowed a moment ago.
	BehindBriefly
	// WatchedBriefly means that there are too few observations to compare lags.
	WatchedBriefly
	// LagSteady means that records wait, and that the lag neither grows nor falls.
	LagSteady
	// LagFalls means that records wait, and that the lag falls.
	LagFalls
	// LagGrows means that records wait, and that the lag grows.
	LagGrows
)

// Reasons returns all reasons except [NoReason] and [OtherReason], in the order of their constants.
// The caller owns the slice.
func Reasons() []Reason {
	all := make([]Reason, 0, len(reasons))
	for r := OtherReason + 1; int(r) < len(reasons); r++ {
		all = append(all, r)
	}
	return all
}

// ReportedReason returns the reason whose word a worker has reported in a heartbeat; see
// lease.Trouble. It returns [OtherReason] for a word that this version does not know, and
// [NoReason] for "".
func ReportedReason(word string) Reason {
	if word == "" {
		return NoReason
	}
	for r := range reasons {
		if reasons[r].report == word {
			return Reason(r) //nolint:gosec // fewer than a hundred
		}
	}
	return OtherReason
}

// ReportedWords returns the words for a reason that a worker has reported in a heartbeat. If this
// version does not know the word, ReportedWords returns word itself, as the worker spelled it.
func ReportedWords(word string) string {
	if r := ReportedReason(word); r > OtherReason {
		return r.String()
	}
	return word
}

// Reported returns the word with which workers report the reason in their heartbeats, of at most
// lease.MaxStateBytes. It returns "" for a reason that is never reported. The words stay as they
// are, because workers of different versions share a store.
func (r Reason) Reported() string { return r.row().report }

// String returns the reason in words, such as "waiting for memory". It returns "" for [NoReason].
func (r Reason) String() string { return r.row().words }

// Label returns the reason as it is used in JSON, such as "awaiting_memory". It returns "" for
// [NoReason].
func (r Reason) Label() string { return r.row().label }

// Activity returns what the worker of the shard does. It returns [NoActivity] for a reason that
// does not describe a worker.
func (r Reason) Activity() Activity { return r.row().activity }

// Trouble reports whether the reason needs attention if it lasts: it keeps records from being
// handled, and no operator chose it.
func (r Reason) Trouble() bool { return r.row().trouble }

// Remedy returns what an operator can do about the reason if it lasts. It returns "" if there is
// nothing to do.
func (r Reason) Remedy() string { return r.row().remedy }

// MarshalText returns the label.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.Label()), nil }

// UnmarshalText parses a label. It returns an error for any other text.
func (r *Reason) UnmarshalText(text []byte) error {
	for i := range reasons {
		if reasons[i].label == string(text) {
			*r = Reason(i) //nolint:gosec // fewer than a hundred
			return nil
		}
	}
	return fmt.Errorf("health: no reason %.40q", text)
}

// row returns the row of the reason. A value that is no constant has the row of [OtherReason].
func (r Reason) row() *reasonRow {
	if int(r) >= len(reasons) {
		r = OtherReason
	}
	return &reasons[r]
}
