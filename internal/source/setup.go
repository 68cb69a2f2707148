package source

import (
	"time"

	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
)

// Setup is the common configuration for reading the shards of a stream.
type Setup struct {
	Client wire.Kinesis
	Caller *wire.Caller // for Client
	Stream streams.Stream
	Idle   time.Duration // time between two reads at the tip that return no records
	// ReadShare is this application's share of a shard's read limits. It is above 0 and at most 1.
	// 0 means 1.
	ReadShare float64
	// IfExpired determines how reading continues if Kinesis refuses the position where it begins.
	IfExpired IfExpired
}

// Listener receives events about reading a shard.
type Listener interface {
	// Failed is called for each failure that will be retried.
	Failed(err error, throttled bool, next time.Duration)
	// Expired is called if records after the start position have left the stream, or may have left
	// it.
	Expired(Expiry)
}

// ListenerFuncs implements Listener with functions. Nil functions are ignored.
type ListenerFuncs struct {
	OnFailed  func(err error, throttled bool, next time.Duration)
	OnExpired func(Expiry)
}

// Failed calls OnFailed.
func (h *ListenerFuncs) Failed(err error, throttled bool, next time.Duration) {
	if h.OnFailed != nil {
		h.OnFailed(err, throttled, next)
	}
}

// Expired calls OnExpired.
func (h *ListenerFuncs) Expired(e Expiry) {
	if h.OnExpired != nil {
		h.OnExpired(e)
	}
}
