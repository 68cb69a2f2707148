package source

import (
	"errors"
	"time"

	"github.com/weir-go/weir/shard"
)

// ErrNoPosition is wrapped by the error about a position that the service refuses: it does not
// belong to the shard, or its records have expired.
var ErrNoPosition = errors.New("the service refuses the position")

// IfExpired says what becomes of a position that the service refuses.
type IfExpired uint8

const (
	StayExpired   IfExpired = iota // it is tried again, loudly: nobody has agreed to lose records
	OldestExpired                  // reading goes on with the oldest record
	// reading goes on with what arrives from now on, by the service's clock
	LatestExpired
)

// Expiry tells of a position whose records have left the stream.
type Expiry struct {
	At   shard.Position // that was to be read on from
	Next shard.Position // where reading goes on
	// From and To bound the arrival of what may be lost. From is zero when the position does not
	// say when its record arrived.
	From, To time.Time
	// Err is what the service said; nil when it went on with the oldest record by itself.
	Err error
}
