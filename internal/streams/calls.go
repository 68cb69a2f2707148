// Package streams describes streams: their names, their shards, their creation times, and whether
// they can be read. It does not use leases, checkpoints or handlers.
//
// Every call has a deadline. The SDK's own retries are disabled, because they would hide throttling
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
	// ErrNoStream is wrapped by errors if the stream does not exist.
	ErrNoStream = errors.New("the stream does not exist")
	// ErrNoShard is wrapped by errors if the stream exists, but the shard has left it because its
	// last record expired.
	ErrNoShard = errors.New("the shard has left the stream")
)

// CallTimeout limits one call including its body. It allows 10 MiB over a slow line.
const CallTimeout = 20 * time.Second

// Once disables the SDK's retries.
func Once(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} }

// Code returns the service's error code. It returns "" if the error did not come from the service.
// Compare the text, because emulators and proxies return codes without a type in the SDK.
func Code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// Throttled reports whether err means that calls come too fast.
func Throttled(err error) bool {
	switch Code(err) {
	case "ProvisionedThroughputExceededException", "LimitExceededException", "ThrottlingException", "Throttling",
		"KMSThrottlingException", "RequestLimitExceeded", "TooManyRequestsException":
		return true
	}
	return false
}
