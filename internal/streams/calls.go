// Package streams describes streams: their names, their shards, when they were created, and whether
// they can be read at all. It does not use leases, checkpoints or handlers.
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
	// ErrNoShard is wrapped if the stream exists but a shard has left it, because its last record
	// expired.
	ErrNoShard = errors.New("the shard has left the stream")
)

// CallTimeout limits one call, including its body. It allows 10 MiB over a slow line.
const CallTimeout = 20 * time.Second

// Once turns off the SDK's retries.
func Once(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} }

// Code returns the service's error code, or "" if the error did not come from the service.
// Emulators and proxies return codes that the SDK has no type for, so code compares the text.
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
