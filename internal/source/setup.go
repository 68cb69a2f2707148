package source

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
)

// Setup is what the shards of a stream are read with. They share it.
type Setup struct {
	Client *kinesis.Client
	Caller *wire.Caller // of Client
	Stream streams.Stream
	Idle   time.Duration // between two reads at the tip that bring nothing
	// ReadShare is this application's share of what a shard gives to all who poll it, more than 0
	// and up to 1; 0 is 1.
	ReadShare float64
	// IfExpired says what becomes of a From that the service refuses.
	IfExpired IfExpired
}

// Listener hears what becomes of reading a shard.
type Listener interface {
	// Failed hears of each failure that is going to be tried again.
	Failed(err error, throttled bool, next time.Duration)
	// Expired hears when records after where reading began have left the stream, or may have.
	Expired(Expiry)
}

// ListenerFuncs is a Listener made of functions, each of which may be nil.
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
