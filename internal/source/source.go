// Package source talks to Kinesis to read: it lists shards and reads them. It knows no lease, no
// checkpoint and no handler.
//
// Every call has a deadline and is made without the SDK's own retries, which would hide throttling
// for seconds: pacing, back-off and the mending of expired iterators happen here, where they can be
// seen.
package source

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
)

// Stream names a stream in calls: by ARN where that is known, else by name.
type Stream struct{ Name, ARN string }

func (s Stream) nameAndARN() (name, arn *string) {
	if s.ARN != "" {
		return nil, aws.String(s.ARN)
	}
	return aws.String(s.Name), nil
}

var (
	// ErrNoStream is wrapped by errors that say that the stream does not exist.
	ErrNoStream = errors.New("the stream does not exist")
	// ErrNoShard is wrapped when the stream exists but a shard has left it: its last record
	// expired.
	ErrNoShard = errors.New("the shard has left the stream")
	// ErrNoPosition is wrapped when the service refuses the position to read from: it does not
	// belong to the shard, or its records have expired.
	ErrNoPosition = errors.New("the service refuses the position")
)

// callTimeout bounds one call, its body included. A page of 10 MiB over a slow line fits.
const callTimeout = 20 * time.Second

func once(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} }

// code is the service's name of an error, "" for one that did not come from the service. Emulators
// and proxies return codes that the SDK has no type for, so codes are what is compared.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// Throttled reports whether err says that calls come too fast.
func Throttled(err error) bool {
	switch code(err) {
	case "ProvisionedThroughputExceededException", "LimitExceededException", "ThrottlingException", "Throttling",
		"KMSThrottlingException", "RequestLimitExceeded", "TooManyRequestsException":
		return true
	}
	return false
}
