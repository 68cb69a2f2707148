// Package streams is what is known of streams: how they are named, which shards they have, when
// they were created, and whether they can be read at all. It knows no lease, no checkpoint and no
// handler.
//
// Every call has a deadline and is made without the SDK's own retries, which would hide throttling
// for seconds.
package streams

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
)

var (
	// ErrNoStream is wrapped by errors that say that the stream does not exist.
	ErrNoStream = errors.New("the stream does not exist")
	// ErrNoShard is wrapped when the stream exists but a shard has left it: its last record
	// expired.
	ErrNoShard = errors.New("the shard has left the stream")
)

// CallTimeout bounds one call, its body included. A page of 10 MiB over a slow line fits.
const CallTimeout = 20 * time.Second

// Once has the SDK make a call once.
func Once(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} }

// Code is the service's name of an error, "" for one that did not come from the service. Emulators
// and proxies return codes that the SDK has no type for, so codes are what is compared.
func Code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// Throttled reports whether err says that calls come too fast.
func Throttled(err error) bool {
	switch Code(err) {
	case "ProvisionedThroughputExceededException", "LimitExceededException", "ThrottlingException", "Throttling",
		"KMSThrottlingException", "RequestLimitExceeded", "TooManyRequestsException":
		return true
	}
	return false
}
