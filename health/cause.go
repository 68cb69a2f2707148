package health

import "fmt"

// Cause is why an application is in its state, as far as the facts show it. Package health has one
// table of causes, and all tools take their words from it. A Cause is a plain value, and all its
// methods may be called concurrently.
type Cause uint8

// The causes are in the order of the table. If several causes explain a shard, a verdict names the
// first.
const (
	// NoCause is the zero value. It means that no cause is known, or that there is nothing to
	// explain.
	NoCause Cause = iota
	// CauseStoreSilent means that the store does not answer the observer.
	CauseStoreSilent
	// CauseNoWorker means that no worker is alive.
	CauseNoWorker
	// CauseWorkerSilent means that the owner of a shard sends no heartbeats.
	CauseWorkerSilent
	// CauseNoReader means that workers are alive, and that none of them reads the stream.
	CauseNoReader
	// CauseNoRoom means that all workers are at their limit of leases.
	CauseNoRoom
	// CauseUnassigned means that workers are alive and have room, but that a shard has no owner.
	CauseUnassigned
	// CauseDenied means that AWS refuses calls of a worker for lack of a permission.
	CauseDenied
	// CauseCredentials means that AWS does not accept the credentials of a worker.
	CauseCredentials
	// CauseStreamGone means that a stream does not exist, or does not exist any more.
	CauseStreamGone
	// CausePosition means that Kinesis refuses the position of a shard, because the stream was
	// deleted and created again, or because the records at the position have expired.
	CausePosition
	// CauseCutOff means that a worker can read none of its shards.
	CauseCutOff
	// CauseReadFails means that reading a shard fails, but not because of throttling.
	CauseReadFails
	// CauseSuspected means that workers died one after the other while they had a shard.
	CauseSuspected
	// CauseRecordsFail means that the handler fails at records.
	CauseRecordsFail
	// CauseDeadLetters means that dead letters cannot be stored.
	CauseDeadLetters
	// CauseMemory means that shards wait for memory.
	CauseMemory
	// CauseHandlerHangs means that a call of the handler does not return.
	CauseHandlerHangs
	// CauseReset means that the checkpoint was moved back.
	CauseReset
	// CauseThrottled means that Kinesis throttles the reads of a shard.
	CauseThrottled
	// CauseHotShard means that one shard gets much more work than the others.
	CauseHotShard
	// CauseHandlerBusy means that the handler runs nearly all the time.
	CauseHandlerBusy
	// CauseExpired means that records left the stream before they were handled.
	CauseExpired
	// CausePaused means that an operator has paused the application or the stream.
	CausePaused
	// CauseParents means that shards wait for the end of their parents.
	CauseParents
	// CauseLagUnknown means that the observer cannot read the lag.
	CauseLagUnknown
)

// Causes returns all causes in the order of the table, without [NoCause]. The caller owns the
// slice.
func Causes() []Cause {
	all := make([]Cause, 0, len(causeRows))
	for i := range causeRows[1:] {
		all = append(all, Cause(i+1)) //nolint:gosec // there are few
	}
	return all
}

// String returns the cause in words, such as "the handler is busy". It returns "" for [NoCause].
func (c Cause) String() string { return c.row().words }

// Label returns the cause as it is used in JSON, such as "handler_busy". It returns "" for
// [NoCause].
func (c Cause) Label() string { return c.row().label }

// When returns the condition under which a verdict names the cause, in words. It returns "" for
// [NoCause].
func (c Cause) When() string { return c.row().when }

// MarshalText returns the label. The error is always nil.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.Label()), nil }

// UnmarshalText parses a label. It returns an error for any other text.
func (c *Cause) UnmarshalText(text []byte) error {
	for i := range causeRows {
		if causeRows[i].label == string(text) {
			*c = Cause(i) //nolint:gosec // there are few
			return nil
		}
	}
	return fmt.Errorf("health: no cause %.40q", text)
}

func (c Cause) row() *causeRow {
	if int(c) >= len(causeRows) {
		c = NoCause
	}
	return &causeRows[c]
}
