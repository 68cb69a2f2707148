package source

import (
	"errors"
	"time"

	"github.com/weir-go/weir/shard"
)

// ErrNoPosition is wrapped by the error about a position that the service refuses: it does not
// belong to the shard, or its records have expired.
var ErrNoPosition = errors.New("the service refuses the position")

// IfExpired determines how reading continues from a position that the service refuses.
type IfExpired uint8

const (
	StayExpired   IfExpired = iota // retry and report it, because the user does not allow lost records
	OldestExpired                  // continue with the oldest record
	// continue with records that arrive from now on, by the service's clock
	LatestExpired
)

// Expiry describes a position whose records have left the stream.
type Expiry struct {
	At   shard.Position // the position from which reading was to continue
	Next shard.Position // where reading continues
	// From and To limit the arrival times of records that may be lost. From is zero if the position
	// does not contain the arrival time of its record.
	From, To time.Time
	// Err is the service's error; nil if the service continued with the oldest record.
	Err error
}
