package source

import (
	"errors"
	"time"

	"github.com/weir-go/weir/shard"
)

// ErrNoPosition is wrapped by errors about a position that Kinesis refuses. Either the position
// does not belong to the shard, or its records have expired.
var ErrNoPosition = errors.New("the service refuses the position")

// IfExpired determines how reading continues from a position that Kinesis refuses.
type IfExpired uint8

const (
	StayExpired   IfExpired = iota // retry and report it, because no record may be lost
	OldestExpired                  // continue with the oldest record
	// LatestExpired continues with records that arrive from now on, by Kinesis' clock.
	LatestExpired
)

// Expiry describes a position whose records have left the stream.
type Expiry struct {
	At   shard.Position // where reading was to continue
	Next shard.Position // where reading continues
	// From and To limit the arrival times of records that may be lost. From is zero if the arrival
	// time of the record at the position is unknown.
	From, To time.Time
	// Err is the error from Kinesis. It is nil if Kinesis continued with the oldest record.
	Err error
}
